// An MCP server of the revision 2026-07-28 alone, made with the official SDK, for tests/tools: node modern-mcp.mjs stdio | http PORT
// | json PORT, and `record FILE` after it; with `slow` its first start takes 11 s. It appends each request to the file: its method, its headers of the protocol, and its
// parameters. It has no state beside the file: a call that asks continues in any process.

import { appendFileSync, existsSync } from "node:fs";
import { createServer } from "node:http";
import { PassThrough } from "node:stream";

import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, createRequestStateCodec, inputRequired, McpServer } from "@modelcontextprotocol/server";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import * as z from "zod/v4";

const [mode, ...rest] = process.argv.slice(2);
const option = (name) => rest[rest.indexOf(name) + 1];
const states = createRequestStateCodec({ key: "0123456789abcdef0123456789abcdef" });

/** Returns the text of a tool's result. */
const text = (text) => ({ content: [{ type: "text", text }] });
const isFirstStart = !existsSync(option("record"));
const record = (entry) => appendFileSync(option("record"), `${JSON.stringify(entry)}\n`);

/** Asks for one text. */
const ask = (message, field) =>
  inputRequired.elicit({ message, requestedSchema: z.object({ [field]: z.string().min(1) }) });

function mcpServer() {
  const cacheHints = { "tools/list": { ttlMs: 3_600_000, cacheScope: "public" } };
  const options = { cacheHints, requestState: { verify: states.verify } };
  const server = new McpServer({ name: "modern", version: "0" }, { capabilities: { tools: { listChanged: true } }, ...options });
  const none = { readOnlyHint: true, openWorldHint: false };

  server.registerTool("echo", { annotations: none, inputSchema: z.object({ text: z.string() }) }, async (args) => text(args.text));

  // Two questions, one of them in a round with a page to visit. What is known so far is in the state.
  server.registerTool("book", { inputSchema: z.object({ day: z.string() }) }, async ({ day }, ctx) => {
    const { inputResponses: given } = ctx.mcpReq;
    const state = ctx.mcpReq.requestState();
    if (!state) {
      record({ method: "begin", day });
      const inputRequests = {
        who: ask("Who travels?", "name"),
        terms: inputRequired.elicitUrl({ message: "Read the terms", url: "https://example.com/terms" }),
      };
      return inputRequired({ inputRequests, requestState: await states.mint({ day }) });
    }
    if (!state.name) {
      if (given.who?.action !== "accept") return text(`not booked: ${given.who?.action}`);
      if (given.terms?.action !== "accept") return text(`terms: ${given.terms?.action}`);
      const { name } = given.who.content;
      return inputRequired({
        inputRequests: { meal: ask(`Which meal for ${name}?`, "meal") },
        requestState: await states.mint({ day, name }),
      });
    }
    record({ method: "end", day: state.day });
    return text(`booked: ${state.day}, ${state.name}, ${given.meal.content?.meal ?? given.meal.action}`);
  });

  // It is busy twice, and asks nothing.
  server.registerTool("busy", {}, async (ctx) => {
    const rounds = (ctx.mcpReq.requestState()?.rounds ?? 0) + 1;
    return rounds > 2 ? text(`done in round ${rounds}`) : inputRequired({ requestState: await states.mint({ rounds }) });
  });
  // It never ends.
  server.registerTool("endless", {}, async () => inputRequired({ requestState: await states.mint({}) }));
  server.registerTool("sample", {}, async () =>
    inputRequired({ inputRequests: { s: inputRequired.createMessage({ messages: [], maxTokens: 1 }) } }),
  );

  server.registerTool("steps", { inputSchema: z.object({ count: z.number(), millis: z.number() }) }, async (args, ctx) => {
    for (let step = 1; step <= args.count; step += 1) {
      await new Promise((done) => setTimeout(done, args.millis));
      if (ctx.mcpReq.signal.aborted) return record({ method: "aborted" });
      const params = { progressToken: ctx.mcpReq._meta.progressToken, progress: step, total: args.count, message: `step ${step}` };
      await ctx.mcpReq.notify({ method: "notifications/progress", params });
    }
    return text("done");
  });

  // Its list of tools grows.
  const addLeaf = () => server.registerTool("leaf", {}, async () => text("leaf"));
  if (grown) addLeaf();
  server.registerTool("grow", {}, async () => {
    grown = true;
    if (handler) handler.notify.toolsChanged();
    else addLeaf();
    return text("grown");
  });

  server.registerResource("rules", "house://rules", { mimeType: "text/plain" }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: "No shoes." }],
  }));
  server.registerPrompt("greet", { description: "Greets", argsSchema: z.object({ who: z.string() }) }, ({ who }, ctx) => {
    const how = ctx.mcpReq.inputResponses?.how;
    if (!how) return inputRequired({ inputRequests: { how: ask("How?", "how") } });
    return { messages: [{ role: "user", content: { type: "text", text: `Say ${how.content.how} to ${who}.` } }] };
  });
  return server;
}

let grown = false;
let handler;

if (rest.includes("slow") && isFirstStart) {
  record({ method: "start" });
  await new Promise((done) => setTimeout(done, 11_000));
}
if (mode === "stdio") {
  const seen = new PassThrough();
  process.stdin.on("data", (piece) => {
    for (const line of piece.toString().split("\n").filter(Boolean)) {
      const { method, params } = JSON.parse(line);
      record({ method, params, headers: {} });
    }
  });
  process.stdin.pipe(seen);
  serveStdio(mcpServer, { legacy: "reject", transport: new StdioServerTransport(seen, process.stdout) });
} else {
  handler = createMcpHandler(mcpServer, { legacy: "reject", responseMode: mode === "json" ? "json" : "auto" });
  const serve = toNodeHandler(handler);
  const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const body = Buffer.concat(pieces).toString();
    const { method, params } = body ? JSON.parse(body) : {};
    const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => /^(mcp|x)-/.test(name)));
    record({ method: method ?? request.method, params, headers });
    await serve(request, response, body ? JSON.parse(body) : undefined);
  });
  server.listen(Number(rest[0]), "127.0.0.1", () => console.log(server.address().port));
}
