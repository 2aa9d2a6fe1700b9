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
});
