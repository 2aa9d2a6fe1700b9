// Pages that send their newest message alone, as CopilotKit's `messageFilter` does, get the others as snapshots. All clients
// must then show them in the order of the thread.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { HttpAgent } from "@ag-ui/client";
import { HttpAgent as HttpAgent0_0_57 } from "client-0-0-57";
import { HttpAgent as HttpAgent0_0_58 } from "client-0-0-58";
import { HttpAgent as HttpAgent0_0_59 } from "client-0-0-59";

import { readThread, said, useServer } from "./threads.mjs";

const server = useServer();

const CALL = { id: "c", type: "function", function: { name: "look", arguments: "{}" } };
/** A thread with a message of each role. */
const MESSAGES = [
  { id: "s", role: "system", content: "Be brief." },
  { id: "d", role: "developer", content: "Be kind." },
  { id: "u", role: "user", content: "Look" },
  { id: "r", role: "reasoning", content: "I look." },
  { id: "a", role: "assistant", toolCalls: [CALL] },
  { id: "t", role: "tool", toolCallId: "c", content: "seen" },
  { id: "x", role: "activity", activityType: "PLAN", content: { done: 1 } },
  { id: "b", role: "assistant", content: "I have looked." },
  { id: "r2", role: "reasoning", content: "That is all." },
];

/** The name of a client, its class, and whether snapshots move its activities. Those of 0.0.57 stay where they are. */
const CLIENTS = [
  ["0.0.57", HttpAgent0_0_57, false],
  ["0.0.58", HttpAgent0_0_58, true],
  ["0.0.59", HttpAgent0_0_59, true],
  ["1.0.0", HttpAgent, true],
];

async function importThread() {
  const times = { createdAt: "2026-01-01T00:00:00Z", updatedAt: "2026-01-01T00:00:00Z" };
  const messages = MESSAGES.map((message, parent) => ({ parent, message }));
  const thread = { threadId: randomUUID(), agent: "demo", head: messages.length, messages, states: [], runs: [] };
  const body = JSON.stringify({ ...thread, ...times });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${server.url}/threads/import`, { method: "POST", headers, body });
  assert.equal(response.status, 201, await response.clone().text());
  return (await response.json()).threadId;
}

for (const [version, Client, movesActivities] of CLIENTS) {
  class NewestAlone extends Client {
    requestInit(input) {
      return super.requestInit({ ...input, messages: input.messages.slice(-1) });
    }
  }

  test(`${version} shows the messages of each role in the order of the thread, run after run`, async () => {
    const threadId = await importThread();
    const agent = new NewestAlone({ url: `${server.url}/send-message`, threadId });
    agent.setMessages(structuredClone(MESSAGES));
    const order = (messages) =>
      messages.filter(({ role }) => movesActivities || role !== "activity").map(({ id }) => id);
    for (const text of ["hello", "count to 2", "plan a trip"]) {
      agent.addMessage(said(text));
      await agent.runAgent();
      const { messages } = await readThread(server, threadId);
      assert.deepEqual(order(agent.messages), order(messages), text);
    }
  });
}

test("what 0.0.57 keeps of the snapshots does not become a part of the thread", async () => {
  const threadId = await importThread();
  const agent = new HttpAgent0_0_57({ url: `${server.url}/send-message`, threadId });
  agent.setMessages([said("hello")]);
  await agent.runAgent();
  assert.ok(agent.messages.some(({ activityType }) => activityType === "agui-server.placeholder"));
  agent.addMessage(said("count to 2"));
  await agent.runAgent();
  const { messages } = await readThread(server, threadId);
  assert.deepEqual(messages.slice(0, MESSAGES.length).map(({ id }) => id), MESSAGES.map(({ id }) => id));
  assert.ok(!JSON.stringify(messages).includes("placeholder"));
});
