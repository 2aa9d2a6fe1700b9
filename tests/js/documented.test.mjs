// Runs programs that the documentation prints against a server.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { HttpAgent } from "@ag-ui/client";

import { cuttingProxy } from "./cut.mjs";
import { restartableServer } from "./restart.mjs";
import { CONTINUE, countTo, follow, readThread, said, useServer } from "./threads.mjs";

const server = useServer();

/** Runs the first program of a document's section against `url`. Returns its `names`. */
async function run(document, heading, url, names) {
  const text = await readFile(new URL(`../../docs/${document}`, import.meta.url), "utf8");
  const section = text.split(`## ${heading}\n`)[1];
  const [, program] = /```js\n(.*?)```/s.exec(section);
  const here = program
    .replaceAll("http://127.0.0.1:8080", url)
    .replaceAll(/ from "(@[^"]+)"/g, (_, name) => ` from "${import.meta.resolve(name)}"`);
  const folder = await mkdtemp(join(tmpdir(), "agui-documented-"));
  try {
    const file = join(folder, "program.mjs");
    await writeFile(file, `${here}\nexport { ${names.join(", ")} };\n`);
    return await import(pathToFileURL(file));
  } finally {
    await rm(folder, { recursive: true });
  }
}

test("an HttpAgent with the documented fetch receives the rest of a run whose connection breaks", async (t) => {
  // The second connection breaks before its response begins, as all do while a network is down.
  const cuts = [3, 0, 2, 4];
  const proxy = await cuttingProxy(server.url, cuts);
  t.after(proxy.close);
  const { agent } = await run("protocol.md", "Resume a broken stream", proxy.url, ["agent"]);
  assert.deepEqual(agent.messages.map(({ content }) => content), ["count to 20", countTo(20)]);
  assert.equal(proxy.requests.length, cuts.length + 1);
  const { messages, runs } = await readThread(server, agent.threadId);
  assert.deepEqual(messages.map(({ content }) => content), ["count to 20", countTo(20)]);
  assert.equal(runs.length, 1);
});

test("the documented upload makes the parts of a message", async (t) => {
  const agent = new HttpAgent({ url: `${server.url}/send-message`, threadId: randomUUID() });
  const files = ["one.txt", "two.txt"].map((name) => new File([name], name, { type: "text/plain" }));
  Object.assign(globalThis, { agent, input: { files } });
  t.after(() => void (delete globalThis.agent, delete globalThis.input));
  const { upload } = await run("files.md", "In a page", server.url, ["upload"]);
  await agent.runAgent();
  const [{ content }] = (await readThread(server, agent.threadId)).messages;
  assert.deepEqual(content.map(({ type, text, metadata }) => [type, text ?? metadata.filename]), [["text", "What is this?"], ["document", "one.txt"], ["document", "two.txt"]]);
  for (const { source } of content.slice(1)) assert.ok(source.value.startsWith(`${server.url}/files/`), source.value);
  await assert.rejects(upload(new File([], "empty.txt")), /the file is empty/);
});

test("the documented fetch sends no request after its response was cancelled", async (t) => {
  const proxy = await cuttingProxy(server.url, []);
  t.after(proxy.close);
  const { resumingFetch } = await run("protocol.md", "Resume a broken stream", server.url, ["resumingFetch"]);
  const input = { threadId: randomUUID(), runId: randomUUID(), messages: [said("count to 10")], forwardedProps: CONTINUE };
  const headers = { "Content-Type": "application/json" };
  const { signal } = new AbortController();
  const init = { method: "POST", headers, body: JSON.stringify(input), signal };
  const reader = (await resumingFetch(`${proxy.url}/send-message`, init)).body.getReader();
  await reader.read();
  await reader.cancel();
  assert.equal((await follow(server, input.threadId, input.runId)).events.at(-1).type, "RUN_FINISHED");
  assert.equal(proxy.requests.join("").split("POST /").length - 1, 1);
});

test("an HttpAgent with the documented fetch succeeds if only the end of the response is missing", async (t) => {
  const resumedAfter = [];
  const proxy = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    const id = request.headers["last-event-id"];
    resumedAfter.push(id);
    const headers = { "content-type": "application/json", ...(id && { "last-event-id": id }) };
    const answer = await fetch(server.url + request.url, { method: "POST", headers, body });
    response.writeHead(answer.status, { "content-type": "text/event-stream" });
    if (resumedAfter.length > 1) return void response.end(await answer.text());
    response.write(await answer.text(), () => response.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  t.after(() => (proxy.closeAllConnections(), proxy.close()));
  const { agent } = await run("protocol.md", "Resume a broken stream", `http://127.0.0.1:${proxy.address().port}`, ["agent"]);
  assert.equal(agent.messages.at(-1).content, countTo(20));
  assert.equal(resumedAfter.length, 2);
  const { runs } = await readThread(server, agent.threadId);
  // A break may drop events that have arrived and that the client has not read.
  assert.ok(resumedAfter[1] >= 1 && resumedAfter[1] <= runs[0].events, resumedAfter[1]);
  assert.equal(runs.length, 1);
});

test("an HttpAgent with the documented fetch has the whole answer when its server is restarted during the run", async (t) => {
  const service = await restartableServer(t);
  const answered = run("protocol.md", "Resume a broken stream", service.url, ["agent"]);
  await service.heard("id: 4\n");
  await service.restart();
  const { agent } = await answered;
  assert.deepEqual(agent.messages.map(({ content }) => content), ["count to 20", countTo(20)]);
  const { messages, runs } = await readThread(service, agent.threadId);
  assert.deepEqual(messages.map(({ content }) => content), ["count to 20", countTo(20)]);
  assert.deepEqual(runs.map(({ status }) => status), ["finished"]);
});

test("the documented agent connects to its thread", async () => {
  const input = { threadId: "numbers", runId: "r", messages: [{ id: "m", role: "user", content: "count to 3" }] };
  const headers = { "Content-Type": "application/json" };
  await (await fetch(`${server.url}/send-message`, { method: "POST", headers, body: JSON.stringify(input) })).text();
  const { agent } = await run("protocol.md", "Connect to a thread", server.url, ["agent"]);
  assert.deepEqual(agent.messages.map(({ content }) => content), ["count to 3", countTo(3)]);
});
