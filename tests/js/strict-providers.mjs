// Refusals of the real providers, by the rules of the Rust tests (tests/support/strict.rs).

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

import { example } from "./server.mjs";

const processes = new Map();

/** Starts the program of the rules, once for each kind. It ends with this process, when its input does. */
function rules(kind) {
  if (!processes.has(kind)) {
    const child = spawn(example("strict_providers"), [kind], { stdio: ["pipe", "pipe", "inherit"] });
    const waiting = [];
    createInterface(child.stdout).on("line", (line) => waiting.shift().resolve(JSON.parse(line)));
    child.once("exit", (code) => waiting.forEach(({ reject }) => reject(new Error(`the rules ended with ${code}`))));
    for (const handle of [child, child.stdin, child.stdout]) handle.unref();
    processes.set(kind, { child, waiting });
  }
  return processes.get(kind);
}

/**
 * Answers a request with 400 if the real provider would refuse it. Returns whether it did.
 * @param {"plain" | "known"} kind a server without strict tools and other paths, or one of the four APIs
 */
export async function refused(request, response, body, kind = "known") {
  const { child, waiting } = rules(kind);
  child.stdin.write(`${JSON.stringify({ path: request.url, headers: request.headers, body })}\n`);
  const reason = await new Promise((resolve, reject) => waiting.push({ resolve, reject }));
  if (reason === null) return false;
  console.error(`refused by the strict provider: ${reason}`);
  // A parameter that no request has: otherwise it would be asked again without it, which would hide the refusal.
  const error = { type: "invalid_request_error", message: reason, param: "request" };
  response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ type: "error", error }));
  return true;
}
