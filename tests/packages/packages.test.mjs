// The packages of a release, made from the built binary: each is installed from its file into an empty folder, without
// network and without Rust, started and asked. Needs Node, and Python with `venv`; tests/.venv-packages (tests/run.sh
// makes it) has the tools that check the wheel.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { binary, startServer } from "../js/server.mjs";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const manifest = readFileSync(join(root, "Cargo.toml"), "utf8");
const [, version] = /^version = "(.*)"$/m.exec(manifest);
const targets = JSON.parse(readFileSync(join(root, "scripts/targets.json"), "utf8"));
const [machine, cpu] = process.arch === "arm64" ? ["aarch64", "arm64"] : ["x86_64", "x64"];
const target = `${machine}-unknown-linux-gnu`;
const archiveName = `agui-server-v${version}-${target}`;

const work = mkdtempSync(join(tmpdir(), "agui-packages-"));
const out = join(work, "out");
const small = join(work, "agui-server");
const files = () => readdirSync(out);
const find = (pattern) => join(out, files().find((file) => pattern.test(file)));
/** No `cargo` and no other `agui-server` can be found, but Node. */
const variables = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, HOME: work };
const env = { ...process.env, ...variables };

before(async () => {
  await run("strip", ["-o", small, binary()]);
  await run(join(root, "scripts/package.sh"), [target, small, out]);
});
after(() => rmSync(work, { recursive: true }));

/** Starts an installed program, asks it, and stops it by a signal. */
async function starts(program) {
  const server = await startServer({ program, args: ["--listen", "127.0.0.1:0"], variables });
  try {
    const health = await (await fetch(`${server.url}/healthz`)).json();
    assert.equal(health.status, "ok");
    const input = { threadId: randomUUID(), runId: randomUUID(), messages: [{ id: "m", role: "user", content: "hello" }] };
    const headers = { "Content-Type": "application/json" };
    const response = await fetch(`${server.url}/send-message`, { method: "POST", headers, body: JSON.stringify(input) });
    const text = await response.text();
    assert.match(text, /"type":"RUN_FINISHED"/);
  } finally {
    await server.stop();
  }
}

const isProgram = (path) => (statSync(path).mode & 0o111) === 0o111;

test("the archive has the server and the files that belong to it, under the name that cargo-binstall asks for", async () => {
  await run("tar", ["-xzf", join(out, `${archiveName}.tar.gz`), "-C", work]);
  const folder = join(work, archiveName);
  const packed = ["LICENSE", "README.md", "THIRD-PARTY-LICENSES.txt", "agui-server", "config", "config/default.toml", "config/scripts", "config/scripts/demo.toml"];
  assert.deepEqual(readdirSync(folder, { recursive: true }).sort(), packed);
  const values = { repo: /^repository = "(.*)"$/m.exec(manifest)[1], name: "agui-server", bin: "agui-server", version, target, "binary-ext": "" };
  const expand = (key) =>
    new RegExp(`^${key} = "(.*)"$`, "m").exec(manifest)[1].replace(/\{ ([a-z-]+) \}/g, (_, name) => values[name]);
  assert.equal(expand("pkg-url"), `${values.repo}/releases/download/v${version}/${archiveName}.tar.gz`);
  const program = join(work, expand("bin-dir"));
  assert.ok(isProgram(program));
  await run(program, ["check", join(folder, "config/default.toml")], { env });
  await starts(program);
});

test("archive, npm package and wheel have the licences of the crates and of the page", async () => {
  const name = "THIRD-PARTY-LICENSES.txt";
  const read = (program, ...args) => run(program, args, { encoding: "buffer", maxBuffer: 2 ** 24 }).then(({ stdout }) => stdout);
  const text = await read("tar", "-xzOf", join(out, `${archiveName}.tar.gz`), `${archiveName}/${name}`);
  for (const linked of ["axum", "tikv-jemalloc-sys", "ring", "sqlx-postgres", "preact", "zod"]) {
    assert.match(text.toString(), new RegExp(`^${linked} \\d.*\\(.*(MIT|ISC|Apache).*\\)$`, "m"), linked);
  }
  assert.match(text.toString(), /Redistributions in binary form must reproduce the above copyright/);
  assert.doesNotMatch(text.toString(), /^(proptest|esbuild) \d/m, "what tests and builds need is in no binary");
  const ofNpm = await read("tar", "-xzOf", find(new RegExp(`^agui-server-linux-${cpu}-.*\\.tgz$`)), `package/${name}`);
  const unzip = "import sys, zipfile; it = zipfile.ZipFile(sys.argv[1]); name, = [n for n in it.namelist() if n.endswith(sys.argv[2])]; sys.stdout.buffer.write(it.read(name))";
  const ofWheel = await read("python3", "-c", unzip, find(/\.whl$/), `/licenses/${name}`);
  assert.ok(text.equals(ofNpm) && text.equals(ofWheel));
});

test("the same binary makes the same archive, npm packages and wheel", async () => {
  const [first, second, file] = ["first", "second", "any-file"].map((name) => join(work, name));
  writeFileSync(file, "Packing starts no binary.");
  for (const folder of [first, second]) await run(join(root, "scripts/package.sh"), [`${machine}-unknown-linux-musl`, file, folder]);
  const names = readdirSync(first);
  assert.deepEqual(names, [
    `agui-server-${version}.tgz`,
    `agui-server-linux-${cpu}-musl-${version}.tgz`,
    `agui-server-v${version}-${machine}-unknown-linux-musl.tar.gz`,
    `agui_server-${version}-py3-none-musllinux_1_1_${machine}.whl`,
  ]);
  for (const name of names) assert.ok(readFileSync(join(first, name)).equals(readFileSync(join(second, name))), name);
});

test("the sums name every file, and match", async () => {
  await run(join(root, "scripts/checksums.sh"), [out]);
  const sums = readFileSync(join(out, "SHA256SUMS"), "utf8").trim().split("\n");
  assert.deepEqual(sums.map((line) => line.split("  ")[1]), files().filter((file) => file !== "SHA256SUMS"));
  await run("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: out });
  rmSync(join(out, "SHA256SUMS"));
});

/** Installs npm packages into an empty folder. */
async function npmInstall(name, packages) {
  const folder = join(work, name);
  mkdirSync(folder);
  const options = ["--offline", "--no-audit", "--no-fund", "--cache", join(work, "npm-cache")];
  await run("npm", ["install", ...options, ...packages], { cwd: folder, env });
  return folder;
}

const LAUNCHER = /^agui-server-\d.*\.tgz$/;

test("npm installs the launcher and the binary of this platform, and npx starts it", async () => {
  const folder = await npmInstall("npm", [find(LAUNCHER), find(new RegExp(`^agui-server-linux-${cpu}-.*\\.tgz$`))]);
  const { name, os, cpu: cpus, libc, scripts } = JSON.parse(
    readFileSync(join(folder, `node_modules/@agui-server/linux-${cpu}/package.json`), "utf8"),
  );
  assert.deepEqual([name, os, cpus, libc, scripts], [`@agui-server/linux-${cpu}`, ["linux"], [cpu], ["glibc"], undefined]);
  const { stdout } = await run("npx", ["--offline", "agui-server", "--version"], { cwd: folder, env });
  assert.equal(stdout, `agui-server ${version}\n`);
  await starts(join(folder, "node_modules/.bin/agui-server"));
  // The server's exit code is that of the command.
  await assert.rejects(run("npx", ["--offline", "agui-server", "check", "absent.toml"], { cwd: folder, env }), { code: 2 });
});

test("the launcher names every target as optional, and says which package is missing", async () => {
  const folder = await npmInstall("npm-alone", [find(LAUNCHER)]);
  const description = JSON.parse(readFileSync(join(folder, "node_modules/agui-server/package.json"), "utf8"));
  const expected = targets.map(({ npm }) => [`@agui-server/${npm}`, version]);
  assert.deepEqual(description.optionalDependencies, Object.fromEntries(expected));
  assert.equal(description.scripts, undefined);
  const failure = await run(join(folder, "node_modules/.bin/agui-server"), { env }).catch((error) => error);
  assert.equal(failure.code, 1);
  assert.match(failure.stderr, new RegExp(`@agui-server/linux-${cpu} is not installed`));
});

test("pip installs the wheel, and the command starts", async () => {
  const folder = join(work, "python");
  await run("python3", ["-m", "venv", folder]);
  await run(join(folder, "bin/pip"), ["install", "--no-index", "--disable-pip-version-check", find(/\.whl$/)], { env });
  const program = join(folder, "bin/agui-server");
  assert.ok(isProgram(program));
  await starts(program);
});

test("the tools of Python's index accept the wheel and its platform", async (t) => {
  const tools = join(root, "tests/.venv-packages/bin");
  if (!existsSync(tools)) {
    assert.notEqual(process.env.CI, "true", "tests/.venv-packages is missing: see tests/run.sh");
    return t.skip("tests/.venv-packages is missing: see tests/run.sh");
  }
  const wheel = find(/\.whl$/);
  await run(join(tools, "twine"), ["check", "--strict", wheel]);
  // W007: there is no Python code.
  await run(join(tools, "check-wheel-contents"), ["--ignore", "W007", wheel]);
  const [, platform] = /-py3-none-(.*)\.whl$/.exec(wheel);
  const { stdout } = await run(join(tools, "auditwheel"), ["show", wheel]);
  assert.match(stdout.replace(/\s+/g, " "), new RegExp(`constrains the platform tag to "${platform}"`));
});
