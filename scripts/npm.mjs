// Makes the npm packages.
//
//   node scripts/npm.mjs OUT                  `agui-server`, with the launcher
//   node scripts/npm.mjs OUT TARGET BINARY LICENSES
//                                             `@agui-server/PLATFORM`, with the binary of a target and what scripts/licenses.mjs writes
//
// `agui-server` names all the others as optional: npm installs those whose `os`, `cpu` and `libc` fit. No package has an
// install script.

import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const targets = JSON.parse(readFileSync(join(root, "scripts/targets.json"), "utf8"));
const manifest = readFileSync(join(root, "Cargo.toml"), "utf8");
const field = (name) => new RegExp(`^${name} = "(.*)"$`, "m").exec(manifest)[1];
const common = {
  version: field("version"),
  description: field("description"),
  license: field("license"),
  homepage: field("homepage"),
  repository: { type: "git", url: `git+${field("repository")}.git` },
};
const packageName = (platform) => `@agui-server/${platform}`;
const [out, target, binary, licenses] = process.argv.slice(2);
const license = ["LICENSE", join(root, "LICENSE")];

/** Packs a folder with a package.json and `files`: pairs of a name and a path. The first one is a program. */
function pack(description, files) {
  const folder = mkdtempSync(join(tmpdir(), "agui-npm-"));
  try {
    writeFileSync(join(folder, "package.json"), `${JSON.stringify(description, null, 2)}\n`);
    for (const [name, path] of files) copyFileSync(path, join(folder, name));
    chmodSync(join(folder, files[0][0]), 0o755);
    execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", resolve(out), folder]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (target) {
  const platform = targets.find((it) => it.target === target)?.npm;
  if (!platform) throw new Error(`${target} is not in scripts/targets.json`);
  const [os, cpu, musl] = platform.split("-");
  const libc = os === "linux" ? { libc: [musl ?? "glibc"] } : {};
  const program = os === "win32" ? "agui-server.exe" : "agui-server";
  // Yarn unpacks the package, so that the binary can be started.
  const description = { name: packageName(platform), ...common, os: [os], cpu: [cpu], ...libc, preferUnplugged: true };
  pack(description, [[program, resolve(binary)], license, ["THIRD-PARTY-LICENSES.txt", resolve(licenses)]]);
} else {
  const launcher = "agui-server.cjs";
  const description = {
    name: "agui-server",
    ...common,
    keywords: ["ag-ui", "agent", "copilotkit", "llm", "sse"],
    engines: { node: ">=18" },
    bin: { "agui-server": launcher },
    optionalDependencies: Object.fromEntries(targets.map(({ npm }) => [packageName(npm), common.version])),
  };
  pack(description, [[launcher, join(root, "scripts/npm", launcher)], ["README.md", join(root, "README.md")], license]);
}
