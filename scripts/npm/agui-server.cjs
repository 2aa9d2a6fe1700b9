#!/usr/bin/env node
// Runs the binary of the package for this platform.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { dirname, join } = require("node:path");

const { platform, arch } = process;
// Systems with musl have no version of glibc.
const isMusl = platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
const name = `@agui-server/${platform}-${arch}${isMusl ? "-musl" : ""}`;

/** Returns the folder of the package with the binary. */
function installed() {
  try {
    return dirname(require.resolve(`${name}/package.json`));
  } catch {
    console.error(`agui-server: ${name} is not installed. If npm was run with --omit=optional, install again without it;`);
    console.error("otherwise there is no package for this platform: https://github.com/agui-server/agui-server#first-minute");
    process.exit(1);
  }
}

const program = join(installed(), platform === "win32" ? "agui-server.exe" : "agui-server");
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  // A terminal sends SIGINT and SIGHUP to the server as well, whose shutdown a second signal would cut short.
  process.on(signal, () => (signal !== "SIGTERM" && process.stdin.isTTY) || child.kill(signal));
}
child.on("error", (error) => {
  console.error(`agui-server: cannot start ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
