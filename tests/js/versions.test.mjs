// Peers of other versions of AG-UI. No release on npm speaks 1.1 yet: 1.0.0 declares 1.0 and gets a stream of 1.0;
// 0.0.59 declares nothing and gets one of 1.1.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { HttpAgent } from "@ag-ui/client";
import { AGUI_MEDIA_TYPE, decode } from "@ag-ui/proto";
import { HttpAgent as HttpAgent0_0_57 } from "client-0-0-57";
import { HttpAgent as HttpAgent0_0_58 } from "client-0-0-58";
import { HttpAgent as HttpAgent0_0_59 } from "client-0-0-59";

import { asJson } from "./ids.mjs";
import { startServer } from "./server.mjs";
import { SSE, post, run } from "./sse.mjs";
import { without1_1 } from "./strict.mjs";

const CALL = { id: "c", type: "function", function: { name: "look", arguments: "{}" } };

/** Events of a remote agent with a typed encrypted value in each place that can have one. */
const SEALED = [
  { type: "REASONING_MESSAGE_START", messageId: "r", role: "reasoning" },
  { type: "REASONING_MESSAGE_END", messageId: "r" },
  {
    type: "REASONING_ENCRYPTED_VALUE",
    subtype: "message",
    entityId: "r",
    encryptedValue: "sealed",
    encryptedValueType: "acme.thought",
  },
  {
    type: "MESSAGES_SNAPSHOT",
    messages: [
      { id: "u", role: "user", content: "Hello" },
      { id: "r", role: "reasoning", content: "", encryptedValue: "sealed", encryptedValueType: "acme.thought" },
      {
        id: "a",
        role: "assistant",
        content: "Hi",
        toolCalls: [{ ...CALL, encryptedValue: "signed", encryptedValueType: "acme.call" }],
      },
    ],
  },
];

/** Events of a remote agent with a subagent that says one text. */
const TEAM = [
  { type: "SUBAGENT_STARTED", subagentRunId: "s", name: "writer" },
  { type: "TEXT_MESSAGE_START", messageId: "w", role: "assistant", subagentRunId: "s" },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "w", delta: "Dear Ada", subagentRunId: "s" },
  { type: "TEXT_MESSAGE_END", messageId: "w", subagentRunId: "s" },
  { type: "SUBAGENT_FINISHED", subagentRunId: "s" },
];

const remote = createServer((request, response) => {
  const ends = ["RUN_STARTED", "RUN_FINISHED"].map((type) => ({ type, threadId: "t", runId: "r" }));
  const events = [ends[0], ...(request.url === "/team" ? TEAM : SEALED), ends[1]];
  response.writeHead(200, { "Content-Type": SSE });
  response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
});
remote.listen(0, "127.0.0.1");
await once(remote, "listening");
const folder = await mkdtemp(join(tmpdir(), "agui-versions-"));
const config = join(folder, "versions.toml");
const url = `http://127.0.0.1:${remote.address().port}/`;
const agents = `[agents.echo]
kind = "echo"

[agents.sealing]
kind = "remote"
url = "${url}"

[agents.team]
kind = "remote"
url = "${url}team"

[agents.team_for_old_clients]
kind = "remote"
url = "${url}team"
subagent_events = false
`;
await writeFile(config, `default_agent = "echo"\n\n${agents}`);
const server = await startServer({ config });
after(async () => {
  await server.stop();
  remote.close();
  await rm(folder, { recursive: true });
});

const asked = () => ({
  threadId: randomUUID(),
  runId: randomUUID(),
  messages: [{ id: "u", role: "user", content: "Hello" }],
});

for (const [version, Agent, declares, gets] of [
  ["1.0.0", HttpAgent, "1.0", "1.0"],
  ["0.0.59", HttpAgent0_0_59, undefined, "1.1"],
]) {
  test(`@ag-ui/client ${version} gets a stream of ${gets}, and writes nothing to the console`, async (t) => {
    const [declared, answered, lines] = [[], [], []];
    for (const method of ["warn", "error"]) {
      t.mock.method(console, method, (...parts) => lines.push(parts.map(String).join(" ")));
    }
    class Declaring extends Agent {
      requestInit(input) {
        declared.push(input.protocolVersion);
        return super.requestInit(input);
      }
    }
    const agent = new Declaring({ url: `${server.url}/agents/echo/send-message`, threadId: randomUUID() });
    const seen = { onEvent: ({ event }) => event.type === "RUN_STARTED" && answered.push(event.protocolVersion) };
    for (const text of ["one", "two"]) {
      agent.addMessage({ id: randomUUID(), role: "user", content: text });
      await agent.runAgent({}, seen);
      assert.equal(agent.messages.at(-1).content, text);
    }
    assert.deepEqual(declared, [declares, declares]);
    assert.deepEqual(answered, [gets, gets]);
    assert.deepEqual(lines, []);
  });
}

test("the types of encrypted values are streamed as text, stored and returned", async () => {
  const input = asked();
  const { events } = await run(`${server.url}/agents/sealing`, input);
  assert.deepEqual(events.slice(1, -1), SEALED);
  const stored = await (await fetch(`${server.url}/threads/${input.threadId}`)).json();
  assert.deepEqual(stored.messages, SEALED.at(-1).messages);
});

test("a stream of 1.0 has no types of encrypted values, also when the thread is restored", async () => {
  const input = { ...asked(), protocolVersion: "1.0" };
  const { events } = await run(`${server.url}/agents/sealing`, input);
  assert.equal(events[0].protocolVersion, "1.0");
  assert.deepEqual(events.slice(1, -1), without1_1(SEALED));
  const connected = await run(`${server.url}/threads/${input.threadId}`, input, { path: "/connect" });
  assert.equal(connected.events[0].protocolVersion, "1.0");
  assert.deepEqual(connected.events[1], without1_1(SEALED).at(-1));
});

test("@ag-ui/proto 1.0.0 reads the binary events, without the types that it does not know", async () => {
  const { bytes } = await post(`${server.url}/agents/sealing`, asked(), { accept: `${AGUI_MEDIA_TYPE}, ${SSE}` });
  const events = [];
  for (let at = 0; at < bytes.length; ) {
    const length = new DataView(bytes.buffer, bytes.byteOffset + at).getUint32(0);
    events.push(asJson(decode(bytes.subarray(at + 4, at + 4 + length))));
    at += 4 + length;
  }
  assert.deepEqual(events.slice(1, -1), without1_1(SEALED));
  for (const type of ["acme.thought", "acme.call"]) assert.ok(Buffer.from(bytes).includes(type), type);
});

for (const [version, Agent, readsSubagents] of [
  ["1.0.0", HttpAgent, true],
  ["0.0.59", HttpAgent0_0_59, true],
  ["0.0.58", HttpAgent0_0_58, false],
  ["0.0.57", HttpAgent0_0_57, false],
]) {
  test(`@ag-ui/client ${version} shows what a subagent says, with subagent_events = false`, async (t) => {
    t.mock.method(console, "error", () => {});
    const ask = async (name, parameters) => {
      const agent = new Agent({ url: `${server.url}/agents/${name}/send-message`, threadId: randomUUID() });
      agent.addMessage({ id: "u", role: "user", content: "Hello" });
      const types = [];
      await agent.runAgent(parameters, { onEvent: ({ event }) => void types.push(event.type) });
      return { said: agent.messages.at(-1).content, frames: types.filter((type) => type.startsWith("SUBAGENT_")).length };
    };
    if (readsSubagents) assert.deepEqual(await ask("team"), { said: "Dear Ada", frames: 2 });
    else await assert.rejects(ask("team"));
    // The option is for clients that declare no version; what a request asks for goes before it.
    const frames = version === "1.0.0" ? 2 : 0;
    assert.deepEqual(await ask("team_for_old_clients"), { said: "Dear Ada", frames });
    const asks = { forwardedProps: { subagentEvents: false } };
    assert.deepEqual(await ask("team", asks), { said: "Dear Ada", frames: 0 });
  });
}

test("without events of subagents, a detached run has none for its followers either", async () => {
  const forwardedProps = { onDisconnect: "continue", subagentEvents: false };
  const input = { ...asked(), forwardedProps };
  const { events } = await run(`${server.url}/agents/team`, input);
  const resumed = await run(`${server.url}/agents/team`, input, { headers: { "Last-Event-ID": "1" } });
  const shown = TEAM.slice(1, -1).map(({ subagentRunId, ...event }) => event);
  for (const seen of [events.slice(1), resumed.events]) assert.deepEqual(seen.slice(0, -1), shown);
  const wrong = await fetch(`${server.url}/agents/team/send-message`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...asked(), forwardedProps: { subagentEvents: "no" } }),
  });
  assert.equal(wrong.status, 400);
  assert.equal((await wrong.json()).error.path, "forwardedProps.subagentEvents");
});
