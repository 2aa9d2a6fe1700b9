// Published versions of @ag-ui/client from 0.0.35 on: pages that were deployed years ago. Each version stands for those
// up to the next one in this list, which read more.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { HttpAgent as HttpAgent1_0_0 } from "@ag-ui/client";
import { HttpAgent as HttpAgent0_0_35 } from "client-0-0-35";
import { HttpAgent as HttpAgent0_0_40 } from "client-0-0-40";
import { HttpAgent as HttpAgent0_0_42 } from "client-0-0-42";
import { HttpAgent as HttpAgent0_0_45 } from "client-0-0-45";
import { HttpAgent as HttpAgent0_0_49 } from "client-0-0-49";
import { HttpAgent as HttpAgent0_0_57 } from "client-0-0-57";
import { HttpAgent as HttpAgent0_0_58 } from "client-0-0-58";
import { HttpAgent as HttpAgent0_0_59 } from "client-0-0-59";

import { startServer } from "./server.mjs";
import { SSE, post } from "./sse.mjs";

const IMAGE = { type: "image", source: { type: "url", value: "https://a.test/b.png" } };

/** Events of a remote agent with what old clients do not know. */
const EVENTS = [
  { type: "REASONING_START", messageId: "r" },
  { type: "REASONING_MESSAGE_START", messageId: "r", role: "reasoning" },
  { type: "REASONING_MESSAGE_CONTENT", messageId: "r", delta: "Hm" },
  { type: "REASONING_MESSAGE_END", messageId: "r" },
  { type: "REASONING_ENCRYPTED_VALUE", subtype: "message", entityId: "r", encryptedValue: "sealed" },
  { type: "REASONING_END", messageId: "r" },
  { type: "ACTIVITY_SNAPSHOT", messageId: "p", activityType: "PLAN", content: { steps: [] } },
  { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "look" },
  { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{}" },
  { type: "TOOL_CALL_END", toolCallId: "c" },
  { type: "TOOL_CALL_RESULT", messageId: "t", toolCallId: "c", content: [IMAGE] },
  { type: "TEXT_MESSAGE_START", messageId: "a", role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: "Done" },
  { type: "TEXT_MESSAGE_END", messageId: "a" },
];

const remote = createServer((_, response) => {
  const [begin, end] = ["RUN_STARTED", "RUN_FINISHED"].map((type) => ({ type, threadId: "t", runId: "r" }));
  response.writeHead(200, { "Content-Type": SSE });
  response.end([begin, ...EVENTS, end].map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
});
remote.listen(0, "127.0.0.1");
await once(remote, "listening");
const folder = await mkdtemp(join(tmpdir(), "agui-old-clients-"));
const servers = new Map();
after(async () => {
  await Promise.all([...servers.values()].map((server) => server.stop()));
  remote.close();
  await rm(folder, { recursive: true });
});

/** Returns the server whose oldest client has this version; without one, the server's default. */
async function serverFor(oldest) {
  if (!servers.has(oldest)) {
    const config = join(folder, `${oldest}.toml`);
    const agents = `default_agent = "echo"
[agents.echo]
kind = "echo"
[agents.thinking]
kind = "remote"
url = "http://127.0.0.1:${remote.address().port}/"
`;
    await writeFile(config, agents + (oldest ? `[clients]\noldest = "${oldest}"\n` : ""));
    servers.set(oldest, await startServer({ config }));
  }
  return servers.get(oldest);
}

/** Lets a page ask, and another page connect to the thread. Returns what they hold. */
async function conversation(Agent, server, content) {
  const threadId = randomUUID();
  const url = `${server.url}/agents/thinking/send-message`;
  const first = new Agent({ url, threadId, initialMessages: [{ id: "u", role: "user", content }] });
  const types = [];
  await first.runAgent({}, { onEvent: ({ event }) => void types.push(event.type) });
  const other = new Agent({ url: `${server.url}/threads/${threadId}/connect`, threadId });
  await other.runAgent();
  return { first: first.messages, other: other.messages, types };
}

const shown = (messages) => messages.map(({ role, content }) => [role, content]);

for (const [version, Agent, knows] of [
  ["0.0.35", HttpAgent0_0_35, "texts"],
  ["0.0.40", HttpAgent0_0_40, "texts"],
  ["0.0.42", HttpAgent0_0_42, "activities"],
  ["0.0.45", HttpAgent0_0_45, "reasoning"],
  ["0.0.49", HttpAgent0_0_49, "media"],
  ["0.0.57", HttpAgent0_0_57, "media"],
  ["0.0.58", HttpAgent0_0_58, "media"],
  ["0.0.59", HttpAgent0_0_59, "media"],
  ["1.0.0", HttpAgent1_0_0, "media"],
]) {
  test(`@ag-ui/client ${version} shows what an agent thinks, calls and says, and opens the thread again`, async (t) => {
    for (const method of ["warn", "error"]) t.mock.method(console, method, () => {});
    const server = await serverFor(knows === "media" ? undefined : version);
    const { first, other, types } = await conversation(Agent, server, "Hello");
    const told = { "0.0.35": [], "0.0.40": ["THINKING"], "0.0.42": ["THINKING"] }[version] ?? ["REASONING"];
    const content = types.filter((type) => /^(THINKING|REASONING)_.*_CONTENT$/.test(type));
    assert.deepEqual(content.map((type) => type.split("_")[0]), told);
    assert.equal(first.at(-1).content, "Done");
    const result = first.find(({ role }) => role === "tool").content;
    assert.deepEqual(result, version === "1.0.0" ? [IMAGE] : "![image](https://a.test/b.png)");
    const roles = other.map(({ role }) => role);
    assert.equal(roles.includes("activity"), knows !== "texts");
    assert.equal(roles.includes("reasoning"), ["reasoning", "media"].includes(knows));
    const plain = (messages) => shown(messages.filter(({ role }) => !["activity", "reasoning"].includes(role)));
    assert.deepEqual(plain(other), plain(first));
  });

  test(`@ag-ui/client ${version} opens a thread with a picture of the user`, async (t) => {
    for (const method of ["warn", "error"]) t.mock.method(console, method, () => {});
    const server = await serverFor(knows === "media" ? undefined : version);
    const threadId = randomUUID();
    const content = [{ type: "text", text: "Look:" }, IMAGE];
    const messages = [{ id: "u", role: "user", content }];
    await post(`${server.url}/agents/echo`, { threadId, runId: randomUUID(), messages });
    const page = new Agent({ url: `${server.url}/threads/${threadId}/connect`, threadId });
    await page.runAgent();
    assert.equal(page.messages.at(-1).role, "assistant");
    const seen = page.messages[0].content;
    if (knows === "media") assert.deepEqual(seen, content);
    else assert.equal(seen, "Look:\n\n[image]");
    // What it shows is known by its id: the thread keeps the picture.
    const next = new Agent({ url: `${server.url}/agents/echo/send-message`, threadId, initialMessages: page.messages });
    next.addMessage?.({ id: "u2", role: "user", content: "And?" });
    await next.runAgent();
    const stored = await (await fetch(`${server.url}/threads/${threadId}`)).json();
    assert.deepEqual(stored.messages[0].content, content);
  });
}
