// @ag-ui/client 0.0.59, the last release before 1.0. Deployed pages still use it: the demo must work without the
// additions of 1.0.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";

import { HttpAgent } from "client-0-0-59";

import { testConversations } from "./conversations.mjs";
import { entry, readThread, said, useServer } from "./threads.mjs";

/** This client parses events with the schemas of 0.0.59, and fills in one default. It gets no outcome with newer members. */
function presents({ outcome, ...event }) {
  if (event.type === "ACTIVITY_SNAPSHOT") return { ...event, replace: true };
  return outcome && !outcome.pendingToolCallIds ? { ...event, outcome } : event;
}

testConversations((options) => new HttpAgent(options), { presents, reportsPending: false, version: "1.1" });

describe("interrupts", () => {
  const server = useServer();

  for (const [answer, says] of [
    [{ approved: true }, "sent to ada@example.com"],
    [{ approved: false }, "declined, so it was not sent"],
    ["cancelled", "declined, so it was not sent"],
  ]) {
    test(`the client holds an interrupt, and its answer continues the run: ${JSON.stringify(answer)}`, async () => {
      const agent = new HttpAgent({ url: `${server.url}/send-message`, threadId: randomUUID() });
      agent.addMessage(said("approve"));
      await agent.runAgent();
      const [{ id, message }, ...more] = agent.pendingInterrupts;
      assert.deepEqual([message, more], ['Send the e-mail "Lunch" to ada@example.com?', []]);
      await agent.runAgent({ resume: [entry(id, answer)] });
      assert.deepEqual(agent.pendingInterrupts, []);
      assert.equal(agent.messages.at(-1).content, `The e-mail "Lunch": ${says}.`);
      assert.deepEqual((await readThread(server, agent.threadId)).interrupts, []);
    });
  }

  test("a client that answers after another one holds no interrupt any more, and shows what was decided", async () => {
    const first = new HttpAgent({ url: `${server.url}/send-message`, threadId: randomUUID() });
    first.addMessage(said("approve"));
    await first.runAgent();
    const other = first.clone();
    const [{ id }] = other.pendingInterrupts;
    await first.runAgent({ resume: [entry(id, { approved: false })] });
    await other.runAgent({ resume: [entry(id, { approved: true })] });
    assert.deepEqual(other.pendingInterrupts, []);
    assert.equal(other.messages.at(-1).content, 'The e-mail "Lunch": declined, so it was not sent.');
    other.addMessage(said("Hello"));
    await other.runAgent();
    assert.equal(other.messages.at(-1).content, "Hello! How can I help you?");
  });
});

describe("results with pictures", () => {
  const server = useServer();

  test("a thread whose tool has shown a picture opens, and the result is a text", async () => {
    const first = new HttpAgent({ url: `${server.url}/send-message`, threadId: randomUUID() });
    first.addMessage(said("approve"));
    await first.runAgent();
    await first.runAgent({ resume: [entry(first.pendingInterrupts[0].id, { approved: true })] });
    const exported = await (await fetch(`${server.url}/threads/${first.threadId}/export`)).text();
    const picture = { type: "image", source: { type: "data", value: "iVBORw0KGgo=", mimeType: "image/png" } };
    const threadId = randomUUID();
    const withPicture = JSON.parse(exported.replaceAll(first.threadId, threadId), (_, value) =>
      value?.role === "tool" ? { ...value, content: [{ type: "text", text: "Sent." }, picture] } : value,
    );
    const body = JSON.stringify(withPicture);
    assert.match(body, /iVBORw0KGgo=/);
    const headers = { "content-type": "application/json" };
    const imported = await fetch(`${server.url}/threads/import`, { method: "POST", headers, body });
    assert.equal(imported.status, 201, await imported.clone().text());
    const second = new HttpAgent({ url: `${server.url}/send-message`, threadId });
    second.addMessage(said("hello"));
    await second.runAgent();
    const results = second.messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    assert.deepEqual(results, ["Sent.\n\n[image: image/png]"]);
  });
});
