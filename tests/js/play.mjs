// Plays a demo conversation over plain HTTP, one request a turn, as a client without a library would.

import { randomUUID } from "node:crypto";

import { identify, mapIds } from "./ids.mjs";
import { run as runSse } from "./sse.mjs";
import { eventsOf } from "./scenarios.mjs";

/**
 * @param request sends one run: (url, input) => answer with `events`
 * @returns for each turn: the input, the answer, and the expected events (with named ids)
 */
export async function play(url, scenario, request = runSse) {
  const threadId = randomUUID();
  const played = [];
  let messages = [];
  let called = new Map();
  for (const turn of scenario.turns) {
    messages = [...messages, asked(turn, called)];
    const input = { threadId, runId: randomUUID(), messages, tools: turn.tools ?? [], context: [], state: {} };
    const answer = await request(url, input);
    const expected = eventsOf(turn, input);
    played.push({ turn, input, answer, expected });
    called = new Map([...called, ...namesToIds(expected, answer.events ?? [])]);
    messages = [...messages, ...mapIds(turn.adds, (name) => called.get(name) ?? name)];
  }
  return played;
}

/** Returns the message of the user, or of the application's tool, in a turn. */
export function asked({ user, answer }, called) {
  if (user !== undefined) return { id: randomUUID(), role: "user", content: user };
  return { id: randomUUID(), role: "tool", ...answer, toolCallId: called.get(answer.toolCallId) };
}

/** Maps the scenario's names to the server's ids: both appear in the same order. */
export function namesToIds(expected, events) {
  const { ids } = identify(events);
  return new Map(identify(expected).ids.map((name, index) => [name, ids[index]]));
}
