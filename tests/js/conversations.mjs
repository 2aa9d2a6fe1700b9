// Plays the demo's conversations with an AG-UI client: the same checks for each client version and both encodings.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, mock, test } from "node:test";

import { asJson, identify } from "./ids.mjs";
import { asked, namesToIds } from "./play.mjs";
import { eventsOf, scenarios, title } from "./scenarios.mjs";
import { startServer } from "./server.mjs";

/**
 * Declares one test per conversation.
 * @param createAgent ({url, threadId}) => an agent, used for one conversation
 * @param client differences of the client: `presents` maps an event to the form in which subscribers get it;
 *   `reportsPending` is false if subscribers do not get pendingToolCallIds; `version` is that of its streams
 */
export function testConversations(createAgent, client = {}) {
  const { presents = (event) => event, reportsPending = true, version = "1.0" } = client;
  let server;
  before(async () => (server = await startServer()));
  after(() => server?.stop());

  for (const scenario of scenarios) {
    test(`${title(scenario)}: messages, state and events are those of the scenario`, async () => {
      const agent = createAgent({ url: `${server.url}/send-message`, threadId: randomUUID() });
      await converse(agent, scenario, { presents, reportsPending, version });
    });
  }
}

async function converse(agent, scenario, { presents, reportsPending, version }) {
  const conversation = [];
  let called = new Map();
  let state = {};
  for (const turn of scenario.turns) {
    const question = asked(turn, called);
    agent.addMessage(question);
    const input = { threadId: agent.threadId, runId: randomUUID() };
    const seen = await runRecorded(agent, { runId: input.runId, tools: turn.tools ?? [] });

    const expected = eventsOf(turn, input, version).map(presents);
    called = new Map([...called, ...namesToIds(expected, seen.events)]);
    assert.deepEqual(seen.events.map(typeOf), expected.map(typeOf), "the sequence of event types");
    assert.deepEqual(identify(seen.events).value, identify(expected).value, "the events");

    conversation.push({ ...question, ...turn.answer }, ...turn.adds);
    const messages = asJson(agent.messages);
    assert.deepEqual(identify(messages).value, identify(conversation).value, "agent.messages");
    assert.deepEqual(asJson(seen.result.newMessages), messages.slice(-turn.adds.length), "newMessages");
    state = turn.state ?? state;
    assert.deepEqual(asJson(agent.state), state, "agent.state");

    checkEnd(turn, seen, called, reportsPending);
    if (turn.paced) checkPace(seen.deltas, turn.paced);
    assert.deepEqual(seen.console, [], "the client wrote no warnings");
  }
}

const typeOf = (event) => event.type;

/** Runs the agent and records what its subscribers receive and what the client writes to the console. */
async function runRecorded(agent, parameters) {
  const seen = { events: [], deltas: [], finished: [], errors: [], failures: [], finalized: 0, console: [] };
  const listen = (method) =>
    mock.method(console, method, (...words) => seen.console.push(`console.${method}: ${words.map(String).join(" ")}`));
  const mocks = [listen("warn"), listen("error")];
  try {
    seen.result = await agent.runAgent(parameters, {
      onEvent: ({ event }) => void seen.events.push(asJson(event)),
      onTextMessageContentEvent: () => void seen.deltas.push(performance.now()),
      onRunFinishedEvent: ({ outcome, pendingToolCallIds }) => void seen.finished.push({ outcome, pendingToolCallIds }),
      onRunErrorEvent: ({ event }) => void seen.errors.push(asJson(event)),
      onRunFailed: ({ error }) => void seen.failures.push(String(error)),
      onRunFinalized: () => void seen.finalized++,
    });
  } finally {
    for (const each of mocks) each.mock.restore();
  }
  return seen;
}

/**
 * Checks how the client reports the end. In both versions a run that failed on the server calls onRunErrorEvent only,
 * and runAgent() resolves; onRunFailed reports failures of the client and of the connection.
 */
function checkEnd(turn, seen, called, reportsPending) {
  assert.deepEqual(seen.failures, [], "onRunFailed");
  assert.equal(seen.finalized, 1, "onRunFinalized");
  assert.equal(seen.result.result, undefined, "the demo's runs have no result");
  if (turn.error) {
    assert.deepEqual(seen.errors, [{ type: "RUN_ERROR", ...turn.error }], "onRunErrorEvent");
    assert.deepEqual(seen.finished, [], "a run that failed did not finish");
    return;
  }
  assert.deepEqual(seen.errors, [], "onRunErrorEvent");
  const pending = (turn.pending ?? []).map((name) => called.get(name));
  const expected = { outcome: "success", pendingToolCallIds: reportsPending ? pending : undefined };
  assert.deepEqual(seen.finished, [expected], "onRunFinishedEvent");
}

/**
 * Requires that the first delta arrives long before the last one, and not all at the end. Other tests use the machine, so
 * single ones may be late.
 */
function checkPace(times, everyMs) {
  const span = times.at(-1) - times[0];
  const expected = (times.length - 1) * everyMs;
  assert.ok(span >= expected / 2, `deltas that take ${expected} ms arrived within ${Math.round(span)} ms`);
}
