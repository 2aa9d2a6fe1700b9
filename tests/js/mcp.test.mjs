// Tools of an MCP server, from the model's call to the page: over stdio and over HTTP, including an image result.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { agentOn, configFile, startModel } from "./models.mjs";
import { Page, textOf, useServer } from "./threads.mjs";

const EVERYTHING = fileURLToPath(
  new URL("node_modules/@modelcontextprotocol/server-everything/dist/index.js", import.meta.url),
);

/** Returns a free port: the MCP server cannot choose one by itself. */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** Starts the MCP server with streamable HTTP. */
async function startHttp() {
  const port = await freePort();
  const child = spawn(process.execPath, [EVERYTHING, "streamableHttp"], {
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  for await (const chunk of child.stderr) if (/listening/i.test(chunk)) break;
  const stop = async () => {
    process.removeListener("exit", kill);
    kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  };
  return { url: `http://127.0.0.1:${port}/mcp`, stop };
}

for (const transport of ["stdio", "http"]) {
  describe(`over ${transport}`, () => {
    let model, remote, file;
    before(async () => {
      model = await startModel();
      remote = transport === "http" ? await startHttp() : undefined;
      const way = remote ? `url = "${remote.url}"` : `command = ["node", ${JSON.stringify(EVERYTHING)}, "stdio"]`;
      const agent = agentOn("openai", model.url, { tools: ["mcp:everything"] });
      file = await configFile(`${agent}\n[mcp.everything]\n${way}\napproval_of = { get-sum = "always" }\n`);
    });
    const server = useServer(() => ({ config: file.config }));
    after(() => Promise.all([model?.stop(), remote?.stop(), file?.remove()]));

    /** Has the model call a tool and then respond "So." */
    const teach = (name, args) => {
      const sentence = `call ${name} ${randomUUID()}`;
      // An image goes to the model in a message after the tool result, so the user message may not be the last.
      const asked = (hasResult) => ({
        predicate: ({ messages }) =>
          messages.some(({ content }) => JSON.stringify(content ?? "").includes(sentence)) &&
          messages.some(({ role }) => role === "tool") === hasResult,
      });
      model.on(asked(false), { toolCalls: [{ name, arguments: JSON.stringify(args) }] });
      model.on(asked(true), { content: "So." });
      return sentence;
    };
    const result = (events) => events.find(({ type }) => type === "TOOL_CALL_RESULT").content;

    test("a tool is called, and the model gets its result", async () => {
      const page = new Page(server, {});
      const { events } = await page.say(teach("echo", { message: "ahoy 👋" }));
      assert.equal(result(events), "Echo: ahoy 👋");
      assert.equal(textOf(events), "So.");
      await page.requireStored();
    });

    test("an image in a tool result reaches the page", async () => {
      const page = new Page(server, {});
      const { events } = await page.say(teach("get-tiny-image", {}));
      const image = result(events).find(({ type }) => type === "image");
      assert.equal(image.source.mimeType, "image/png");
      assert.equal(Buffer.from(image.source.value, "base64").subarray(1, 4).toString(), "PNG");
      assert.equal(textOf(events), "So.");
      await page.requireStored();
    });

    test("a call that needs approval waits for it", async () => {
      const page = new Page(server, {});
      const { finished } = await page.say(teach("get-sum", { a: 1, b: 2 }));
      assert.deepEqual(finished, ["interrupt"]);
      const { events } = await page.answer({ approved: true, editedArgs: { a: 40, b: 2 } });
      assert.match(result(events), /42/);
      await page.requireStored();
    });
  });
}
