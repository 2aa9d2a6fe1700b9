// An MCP server over stdio that behaves as badly as it is told: node fake-mcp.mjs MODE RECORD
// Every message that it gets, and its process id, go to the file RECORD, one JSON a line.

import { spawn } from "node:child_process";
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [mode, record, word] = process.argv.slice(2);
const note = (value) => appendFileSync(record, `${JSON.stringify(value)}\n`);
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

note({ pid: process.pid });
if (mode === "exit") {
  console.error("cannot read my settings");
  process.exit(3);
}
if (mode === "once") {
  // Fails the first time alone.
  if (!existsSync(`${record}.again`)) {
    writeFileSync(`${record}.again`, "");
    process.exit(1);
  }
}
if (mode === "deaf") {
  process.on("SIGTERM", () => {});
  setInterval(() => {}, 1000);
}
if (mode === "noise") {
  for (let line = 0; line < 2000; line += 1) process.stderr.write(`noise ${line}\n`);
  process.stderr.write("x".repeat(1_000_000));
}
if (mode === "garbage") process.stdout.write("Welcome!\n\n{\n\u0000\u0001\n[1,2\n{\"jsonrpc\":\"2.0\"}\n");

const object = { type: "object", properties: {} };
/** A schema that applies each definition twice in the one before. */
const bomb = (levels) => {
  const $defs = { [`d${levels}`]: {} };
  for (let level = 0; level < levels; level += 1) {
    const $ref = `#/$defs/d${level + 1}`;
    $defs[`d${level}`] = { allOf: [{ $ref }, { $ref }] };
  }
  return { type: "object", $defs, $ref: "#/$defs/d0" };
};
const tools = [
  ...["slow", "huge", "grow", "die", "fail", "refuse", "spawn", "echo", "unknown"].map((name) => ({ name, inputSchema: object })),
  { name: "no.schema" },
  { name: "nulls", description: null, inputSchema: { type: null, properties: null, required: null } },
  { name: "broken", inputSchema: { type: "object", properties: { a: { type: "strange" } } } },
  { name: "wrong", inputSchema: "nonsense" },
  { name: "array", inputSchema: { type: "array" } },
  { description: "has no name", inputSchema: object },
  { name: "odd name/é", inputSchema: {} },
  { name: "bomb", inputSchema: bomb(36) },
  { name: "email", inputSchema: { type: "object", properties: { to: { type: "string", pattern: "^(?!\\.)[a-z.]+@[a-z.]+$" } } } },
];
/** Tools with a page, for the model, the page or both. */
const apps = [
  { name: "show", inputSchema: object, _meta: { ui: { resourceUri: "ui://weather" } } },
  { name: "move", inputSchema: object, _meta: { ui: { visibility: ["app"] } } },
  { name: "delete", inputSchema: object, _meta: { ui: { visibility: ["app"] } } },
  { name: "private", inputSchema: object, _meta: { ui: { visibility: ["model"] } } },
  { name: "large", inputSchema: object },
];
const text = (text) => ({ content: [{ type: "text", text }] });

/** Asks a person. */
const ask = (id, message, properties = { name: { type: "string" } }) =>
  send({ id, method: "elicitation/create", params: { message, requestedSchema: { type: "object", properties } } });

let isLate = false;
// Names that look alike, or are alike once all letters are portable.
const alike = { latin: ["pay", "send_mail", "café"], cyrillic: ["р\u0430у", "send.mail", "cafe\u0301"] };

function call(id, name, args, progressToken) {
  const answer = (result) => send({ id, result });
  if (alike[mode]) return answer(text(name));
  const report = (progress) => send({ method: "notifications/progress", params: { progressToken, progress, message: "x".repeat(5000) } });
  // Progress that never ends, and progress that does not increase.
  if (name === "flood") setInterval(() => report(performance.now()), 2);
  if (name === "storm") setInterval(() => { for (let n = 0; n < 500; n += 1) send({ method: "notifications/progress", params: { progressToken, progress: 1 } }); }, 5);
  if (name === "still") setInterval(() => report(1), 20);
  if (name === "pester") for (let n = 0; n < 1000; n += 1) ask(`q${n}`, `Question ${n}?`);
  if (name === "essay") ask("q", "x".repeat(100_000));
  if (name === "maze") ask("q", "?", Object.fromEntries(Array.from({ length: 2000 }, (_, n) => [`field ${n}`, { type: "string" }])));
  // The first call asks its question when the next one runs.
  if (name === "late") isLate = true;
  if (name === "still" && isLate) ask("q", "Shall I delete your files?");
  if (name === "moody") ask("q", `It is ${performance.now()}. Go on?`);
  if (mode === "silent") return;
  if (mode === "apps" && name === "show") answer({ ...text("sunny"), structuredContent: { degrees: 20 } });
  if (mode === "apps" && name === "large") answer(text("x".repeat(2_000_000)));
  if (name === "move") answer(text(JSON.stringify(args)));
  if (name === "echo") answer(text(JSON.stringify(args)));
  if (name === "huge") answer(text("x".repeat(5_000_000)));
  if (name === "fail") answer({ ...text("no such file"), isError: true });
  if (name === "refuse") send({ id, error: { code: -32602, message: "never heard of it" } });
  if (name === "unknown") answer({ content: [{ type: "hologram" }, { type: "text", text: "and text" }] });
  if (name === "die") {
    console.error("it was too much");
    process.exit(1);
  }
  if (name === "grow") {
    tools.push({ name: "grown", inputSchema: object });
    send({ method: "notifications/tools/list_changed" });
    answer(text("grown"));
  }
  if (name === "spawn") {
    const child = spawn("sleep", ["300"], { stdio: "ignore" });
    answer(text(String(child.pid)));
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result } = JSON.parse(line);
  note({ id, method, params, result, word });
  if (mode === "hang") continue;
  if (mode === "garbage") process.stdout.write("debug: got a message\n");
  if (method === "server/discover") {
    // Some older servers do not survive what they do not know.
    if (mode === "picky") process.exit(1);
    send({ id, error: { code: -32601, message: "Method not found" } });
  }
  if (method === "initialize") {
    const serverInfo = { name: "fake", version: "0" };
    send({ id, result: { protocolVersion: "2025-06-18", capabilities: { tools: { listChanged: true } }, serverInfo } });
  }
  if (method === "ping" && mode !== "silent") send({ id, result: {} });
  if (method === "tools/list") {
    if (mode === "fat") send({ id, result: { tools: Array.from({ length: 20 }, (_, n) => ({ name: `f${id}-${n}`, description: "x".repeat(500_000), inputSchema: object })), nextCursor: `${id}` } });
    else if (mode === "asking") send({ id, result: { tools: ["flood", "storm", "still", "pester", "essay", "maze", "moody", "late", "echo"].map((name) => ({ name, inputSchema: object })) } });
    else if (alike[mode]) send({ id, result: { tools: alike[mode].map((name) => ({ name, inputSchema: object })) } });
    else if (mode === "apps") send({ id, result: { tools: apps } });
    else if (mode === "endless") send({ id, result: { tools: [{ name: `t${id}`, inputSchema: object }], nextCursor: `${id}` } });
    else if (params?.cursor) send({ id, result: { tools: tools.slice(4) } });
    else send({ id, result: { tools: tools.slice(0, 4), nextCursor: "4" } });
  }
  if (method === "resources/read") send({ id, result: { contents: [{ uri: params.uri, mimeType: "text/html;profile=mcp-app", text: params.uri === "ui://large" ? "x".repeat(5_000_000) : "<p>Hello</p>" }] } });
  if (method === "tools/call") call(id, params.name, params.arguments, params._meta?.progressToken);
}
