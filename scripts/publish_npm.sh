#!/usr/bin/env bash
# Publishes the npm packages of a folder: scripts/publish_npm.sh OUT [OPTION…], such as --dry-run
#
# A version that the registry has already is skipped, so that the script can be run again. In GitHub's workflow, npm 11.5
# gets its permission from the workflow's identity, and adds the provenance.
set -euo pipefail
out=$(realpath "$1")
shift

# `agui-server` last: it needs the others.
for package in "$out"/agui-server-[a-z]*.tgz "$out"/agui-server-[0-9]*.tgz; do
    id=$(tar -xzOf "$package" package/package.json | node -p 'const it = JSON.parse(require("fs").readFileSync(0)); `${it.name}@${it.version}`')
    if [ -n "$(npm view "$id" version 2>/dev/null)" ]; then
        echo "$id is published"
    else
        npm publish "$package" --access public "$@"
    fi
done
