// An MCP server made with the official SDK, for tests/tools: node sdk-mcp.mjs stdio | http | json | oauth
// Over HTTP it prints its port, and answers with events, with `json` in one piece. With `oauth`, requests need a token of
// its token endpoint, and GET /record returns the requests to that endpoint; POST /revoke makes all tokens invalid.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { ElicitResultSchema, UrlElicitationRequiredError } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";

const mode = process.argv[2];
let bookings = 0;
let refusals = 0;

/** Returns the text of a tool's result. */
const text = (text) => ({ content: [{ type: "text", text }] });

function mcpServer() {
  const server = new McpServer({ name: "sdk", version: "0" });
  const none = { readOnlyHint: true, openWorldHint: false };

  server.registerTool("headers", { annotations: none }, async ({ requestInfo }) =>
    text(JSON.stringify(requestInfo?.headers ?? {})),
  );

  /** Asks a question with one text field. */
  const ask = async (extra, message, field) => {
    const requestedSchema = { type: "object", properties: { [field]: { type: "string", minLength: 1 } }, required: [field] };
    const params = { message, requestedSchema };
    return extra.sendRequest({ method: "elicitation/create", params }, ElicitResultSchema);
  };
  server.registerTool("book", { inputSchema: { day: z.string() } }, async ({ day }, extra) => {
    const who = await ask(extra, "Who travels?", "name");
    if (who.action !== "accept") return text(`not booked: ${who.action}`);
    const meal = await ask(extra, `Which meal for ${who.content.name}?`, "meal");
    if (meal.action !== "accept") return text(`no meal: ${meal.action}`);
    bookings += 1;
    return text(`booking ${bookings}: ${day}, ${who.content.name}, ${meal.content.meal}`);
  });

  // It refuses its first two calls until a page has been visited.
  server.registerTool("ledger", { annotations: none }, async () => {
    refusals += 1;
    if (refusals > 2) return text("the ledger is open");
    const url = `https://example.com/visit/${refusals}`;
    throw new UrlElicitationRequiredError([{ mode: "url", message: "Sign the ledger", url, elicitationId: `${refusals}` }]);
  });

  server.registerTool("steps", { inputSchema: { count: z.number(), millis: z.number() } }, async (args, extra) => {
    for (let step = 1; step <= args.count; step += 1) {
      await new Promise((done) => setTimeout(done, args.millis));
      const params = { progressToken: extra._meta.progressToken, progress: step, total: args.count, message: `step ${step}` };
      await extra.sendNotification({ method: "notifications/progress", params });
    }
    return text("done");
  });

  server.registerTool("echoing_steps", { annotations: none }, async (extra) => {
    const message = `sent ${extra.requestInfo?.headers?.authorization}`;
    const params = { progressToken: extra._meta.progressToken, progress: 1, message };
    await extra.sendNotification({ method: "notifications/progress", params });
    // A text that comes together with the result is not shown.
    await new Promise((done) => setTimeout(done, 500));
    return text("done");
  });

  server.registerTool("dense", { inputSchema: { count: z.number() } }, async ({ count }) => ({
    ...text("x".repeat(2_000_000)),
    structuredContent: { items: Array(count).fill({ a: 1 }) },
  }));

  const resource = { title: "House rules", description: "What is allowed", mimeType: "text/markdown" };
  server.registerResource("rules", "house://rules", resource, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/markdown", text: "No shoes." }],
  }));
  const greet = { description: "Greets", argsSchema: { who: z.string() } };
  server.registerPrompt("greet", greet, ({ who }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Say hello to ${who}.` } }],
  }));
  return server;
}

if (mode === "stdio") {
  await mcpServer().connect(new StdioServerTransport());
} else {
  const transports = new Map();
  const record = [];
  let tokens = new Map();

  const bodyOf = async (request) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  };

  const issueToken = async (request, response) => {
    const form = Object.fromEntries(new URLSearchParams(await bodyOf(request)));
    record.push(form);
    const basic = Buffer.from(request.headers.authorization.replace("Basic ", ""), "base64").toString();
    const [client, secret] = basic.split(":").map(decodeURIComponent);
    const refuse = (error) => {
      response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ error, error_description: `wrong secret: ${secret}` }));
    };
    // A variable that is in every environment.
    if (client !== "agui" || secret !== process.env.PATH) return refuse("invalid_client");
    if (form.grant_type === "refresh_token" && form.refresh_token !== `refresh-${record.length - 1}`) {
      return refuse("invalid_grant");
    }
    const token = `token-number-${record.length}`;
    tokens.set(token, true);
    response.writeHead(200, { "content-type": "application/json" });
    const lifetime = request.url.includes("short") ? 1 : 3600;
    const refresh = request.url.includes("refresh") ? { refresh_token: `refresh-${record.length}` } : {};
    response.end(JSON.stringify({ access_token: token, token_type: "Bearer", expires_in: lifetime, ...refresh }));
  };

  const serveMcp = async (request, response) => {
    const token = request.headers.authorization?.replace("Bearer ", "");
    if (mode === "oauth" && !tokens.has(token)) {
      response.writeHead(401, { "www-authenticate": 'Bearer error="invalid_token"' });
      return response.end();
    }
    const session = request.headers["mcp-session-id"];
    let transport = transports.get(session);
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        enableJsonResponse: mode === "json",
        onsessioninitialized: (id) => transports.set(id, transport),
      });
      await mcpServer().connect(transport);
    }
    await transport.handleRequest(request, response);
  };

  const server = createServer(async (request, response) => {
    if (request.url.startsWith("/token")) return issueToken(request, response);
    if (request.url === "/record") return response.end(JSON.stringify(record));
    if (request.url === "/revoke") {
      tokens = new Map();
      return response.end();
    }
    return serveMcp(request, response);
  });
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
}
