// Starts the server under test, and stops it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const START_TIMEOUT_MS = 15_000;
// Longer than the server's drain_secs: a server that is still running then is stuck.
const STOP_TIMEOUT_MS = 20_000;

/** The folder of the built programs: that of AGUI_SERVER_BIN, or this checkout's. */
function built(path, command) {
  const named = process.env.AGUI_SERVER_BIN;
  const profile = (name) => fileURLToPath(new URL(`../../target/${name}`, import.meta.url));
  const folders = named ? [dirname(resolve(named))] : ["release", "debug"].map(profile);
  const found = folders.map((folder) => join(folder, path)).find(existsSync);
  assert.ok(found, `there is no ${path} to test: run \`${command}\`, or name a server in AGUI_SERVER_BIN`);
  return found;
}

/** Returns the path of the server under test. */
export const binary = () =>
  process.env.AGUI_SERVER_BIN ? resolve(process.env.AGUI_SERVER_BIN) : built("agui-server", "cargo build --release");

/** Returns the path of a built example. */
export const example = (name) => built(join("examples", name), `cargo build --example ${name}`);

/** The environment without the developer's settings. Threads are kept in memory, so they end with the server. */
function environment() {
  const isSetting = (name) => /^AGUI_[A-Z]+__/.test(name) || name === "RUST_LOG";
  const entries = Object.entries(process.env).filter(([name]) => !isSetting(name));
  return { ...Object.fromEntries(entries), NO_COLOR: "1", AGUI_STORE__URL: "memory:" };
}

/**
 * Calls `kill` if the test process exits or is interrupted, so that no server is left running.
 * @returns a function that removes the handlers
 */
function outlivedBy(kill) {
  // A signal or a closed standard output (`| head`) does not emit "exit", unless a handler calls process.exit().
  const leave = () => process.exit(1);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  process.once("exit", kill);
  process.stdout.once("error", leave);
  for (const signal of signals) process.once(signal, leave);
  return () => {
    process.removeListener("exit", kill);
    process.stdout.removeListener("error", leave);
    for (const signal of signals) process.removeListener(signal, leave);
  };
}

/** Waits for the log line with the address. The kernel chooses the port, so suites can run in parallel. */
function listening(child, log) {
  return new Promise((done, fail) => {
    const giveUp = (reason) => {
      clearTimeout(timer);
      fail(new Error(`the server ${reason}. Its log:\n${log()}`));
    };
    const timer = setTimeout(() => giveUp(`did not listen within ${START_TIMEOUT_MS} ms`), START_TIMEOUT_MS);
    child.once("error", (error) => giveUp(`could not be started: ${error.message}`));
    child.once("exit", (code) => giveUp(`ended with ${code} before it listened`));
    child.stderr.on("data", () => {
      const url = /listening on (http:\/\/[\d.]+:\d+)/.exec(log())?.[1];
      if (!url) return;
      clearTimeout(timer);
      done(url);
    });
  });
}

/**
 * Starts a server on a free loopback port.
 * @param {{ config?: string, program?: string, args?: string[], variables?: object }} options `config`: the path of a configuration file;
 *   `program`: another program with its arguments in `args`, which logs its address in the same way; `variables`: further
 *   environment variables
 */
export async function startServer({ config, program, args, variables } = {}) {
  const child = spawn(program ?? binary(), args ?? ["--listen", "127.0.0.1:0", ...(config ? ["--config", config] : [])], {
    env: { ...environment(), ...variables },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let text = "";
  child.stderr.setEncoding("utf8").on("data", (chunk) => (text += chunk));
  const log = () => text;
  const kill = () => child.kill("SIGKILL");
  const forget = outlivedBy(kill);

  let url;
  try {
    url = await listening(child, log);
  } catch (error) {
    kill();
    forget();
    throw error;
  }
  const exited = once(child, "exit");

  /** Sends SIGTERM and requires that the server exits by itself with 0. */
  async function stop() {
    child.kill("SIGTERM");
    const timer = setTimeout(kill, STOP_TIMEOUT_MS);
    const [code, signal] = await exited;
    clearTimeout(timer);
    forget();
    assert.deepEqual({ code, signal }, { code: 0, signal: null }, `the server did not stop cleanly:\n${log()}`);
  }

  /** Ends the server as a crash does. */
  async function crash() {
    kill();
    await exited;
    forget();
  }

  return { url, stop, crash, log };
}
