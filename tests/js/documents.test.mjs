// Sends the requests printed in the specification documents, with their ids, to one server: English, Chinese, then both
// again. Each round has threads of its own: a request that comes again to a thread gets its first answer.

import assert from "node:assert/strict";
import { test } from "node:test";

import { identify } from "./ids.mjs";
import { namesToIds } from "./play.mjs";
import { eventsOf, scenarios } from "./scenarios.mjs";
import { post, typesOf, useServer } from "./threads.mjs";

const server = useServer();

/** The documents' conversations: ids of the thread, its runs and the tool call, as printed. */
const PRINTED = [
  ["hello", "thread_001", ["run_001"]],
  ["weather today, with a tool of that name offered", "550e8400-e29b-41d4-a716-446655440000", ["run_001"]],
  ["frontend tool", "thread_003", ["run_003", "run_004"], "call_002"],
  ["weather by the server's own tool", "thread_002", ["run_002"]],
  ["human in the loop, confirmed", "thread_004", ["run_005", "run_006"], "call_003"],
];

/** Sends a conversation as printed, after the first round in another thread. */
let round = 0;
async function send([name, printedThread, runIds, printedCall], language, readsEvents) {
  const threadId = round++ < PRINTED.length ? printedThread : `${printedThread}-${round}`;
  const { turns } = scenarios.find((scenario) => scenario.name === name && scenario.language === language);
  const messages = [];
  let callId = printedCall;
  for (const [at, turn] of turns.entries()) {
    const message = turn.user ? { role: "user", content: turn.user } : { role: "tool", ...turn.answer, toolCallId: callId };
    messages.push({ id: `msg_${messages.length + 1}`, ...message });
    const input = { threadId, runId: runIds[at], messages, tools: turn.tools ?? [], context: [] };
    const { events } = await post(server, input);
    const expected = eventsOf(turn, input);
    assert.deepEqual(typesOf(events), typesOf(expected), `${name} (${language})`);
    assert.deepEqual(identify(events).value, identify(expected).value, `${name} (${language})`);
    if (readsEvents) callId = namesToIds(expected, events).get("c");
    const [answer] = turn.adds;
    if (answer.toolCalls) {
      messages.push({ ...answer, id: "msg_2", toolCalls: [{ ...answer.toolCalls[0], id: callId }] });
    }
  }
}

test("the documents' requests get the documented events each time they are sent", async () => {
  for (const language of ["en", "zh", "en", "zh"]) {
    for (const conversation of PRINTED) await send(conversation, language, false);
  }
});

test("the documents' requests get the documented events with the tool call id of the stream", async () => {
  for (const language of ["en", "zh", "en", "zh"]) {
    for (const conversation of PRINTED) await send(conversation, language, true);
  }
});
