// Detached runs: a client that returns, from any event on, receives each event exactly once.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { EventSource } from "./eventsource.mjs";
import { CONTINUE, Page, countTo, deltas, eventsPath, follow, post, range, withoutVersion } from "./threads.mjs";
import { readThread, request, said, textOf, typesOf, useServer } from "./threads.mjs";

const server = useServer();

// One word every 100 ms: long enough to leave during the run and to return before its end.
const COUNT = 40;
const SLOW = `count to ${COUNT}`;
const EVENTS = COUNT + 4;

/** Starts a detached run that the page leaves. Returns it with the events that the page received. */
async function left(count = 3) {
  const page = new Page(server);
  const runId = randomUUID();
  const had = await page.leaveAfter(count, SLOW, { runId, forwardedProps: CONTINUE });
  return { page, threadId: page.threadId, runId, had };
}

async function requireRunning(threadId, runId) {
  const { activeRunId, runs } = await readThread(server, threadId);
  assert.equal(activeRunId, runId, "the run is still running");
  assert.equal(runs[0].status, "running");
}

/** Requires that `events` are all events of the run. */
async function requireWhole({ threadId, runId }, events) {
  const whole = await follow(server, threadId, runId, 0);
  assert.deepEqual(whole.ids, range(1, EVENTS));
  assert.deepEqual(withoutVersion(events), withoutVersion(whole.events));
  assert.equal(textOf(whole.events), countTo(COUNT));
  assert.deepEqual(whole.events.at(-1).outcome, { type: "success" });
}

test("following a run from the last received event gives every event once, also to a second follower", async () => {
  const run = await left();
  const { threadId, runId, had } = run;
  await requireRunning(threadId, runId);
  const [rest, beside, again] = await Promise.all([
    follow(server, threadId, runId, had.length),
    follow(server, threadId, runId),
    follow(server, threadId, runId, 0, { "Last-Event-ID": String(had.length) }),
  ]);
  assert.deepEqual(rest.ids, range(had.length + 1, EVENTS));
  assert.deepEqual(beside.ids, range(1, EVENTS));
  assert.deepEqual(again, rest, "the header takes precedence over the query");
  assert.deepEqual(withoutVersion(beside.events), withoutVersion([...had, ...rest.events]));
  await requireWhole(run, beside.events);
});

test("a run without followers is stored completely", async () => {
  const { page, threadId, runId, had } = await left();
  const { events } = await follow(server, threadId, runId, EVENTS - 1);
  assert.deepEqual(typesOf(events), ["RUN_FINISHED"]);
  const { messages, runs } = await readThread(server, threadId);
  assert.deepEqual(messages, [page.messages[0], { ...page.messages[1], content: countTo(COUNT) }]);
  assert.deepEqual(runs.map(({ runId, status, detached, events }) => ({ runId, status, detached, events })), [
    { runId, status: "finished", detached: true, events: EVENTS },
  ]);
  assert.ok(had.length < EVENTS);
});

test("following after the last event gives 204, after any other event the rest", async () => {
  const { threadId, runId } = await left();
  await follow(server, threadId, runId);
  for (const from of [EVENTS, EVENTS + 1]) {
    assert.deepEqual(await follow(server, threadId, runId, from), { status: 204, text: "" });
  }
  for (const from of [0, 1, COUNT, EVENTS - 1]) {
    assert.deepEqual((await follow(server, threadId, runId, from)).ids, range(from + 1, EVENTS));
  }
});

test("a run that cannot be followed is refused with an error code", async () => {
  const { threadId, runId } = await left();
  const reason = async (...where) => {
    const { status, text } = await follow(server, ...where);
    return [status, JSON.parse(text).error.code];
  };
  assert.deepEqual(await reason(threadId, runId, "soon"), [400, "invalid_parameter"]);
  assert.deepEqual(await reason(threadId, runId, -1), [400, "invalid_parameter"]);
  assert.deepEqual(await reason(threadId, runId, 0, { "Last-Event-ID": "x" }), [400, "invalid_parameter"]);
  assert.deepEqual(await reason(threadId, randomUUID()), [404, "unknown_run"]);
  assert.deepEqual(await reason(randomUUID(), runId), [404, "unknown_thread"]);
  const foreground = { threadId: randomUUID(), runId: randomUUID(), messages: [said("Hello")] };
  await post(server, foreground);
  assert.deepEqual(await reason(foreground.threadId, foreground.runId), [404, "run_has_no_log"]);
});

test("an EventSource whose connection breaks receives the rest, and stops after the last event", async () => {
  const run = await left();
  const messages = [];
  const breaks = [5, 9];
  const source = new EventSource(server.url + eventsPath(run.threadId, run.runId), (message) => {
    messages.push(message);
    if (breaks.includes(messages.length)) source.breakConnection();
  });
  await source.closed;
  assert.deepEqual(messages.map(({ lastEventId }) => Number(lastEventId)), range(1, EVENTS));
  // One connection at the start, one after each break, and one after the end of the stream, which gets 204.
  assert.deepEqual(source.connections, ["", "5", "9", String(EVENTS)]);
  assert.equal(source.endedBy, 204);
  await requireWhole(run, messages.map(({ data }) => JSON.parse(data)));
});

test("posting a running detached run follows it from its first event, and it runs only once", async () => {
  const run = await left();
  const { page, threadId, runId } = run;
  const again = await post(server, { threadId, runId, messages: [page.messages[0]], forwardedProps: CONTINUE });
  await requireWhole(run, again.events);
  const { messages, runs } = await readThread(server, threadId);
  assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant"]);
  assert.equal(runs.length, 1);
});

test("a page that stays receives a detached run like any other run", async () => {
  const page = new Page(server);
  const runId = randomUUID();
  const { events, finished } = await page.say(SLOW, { runId, forwardedProps: CONTINUE });
  assert.deepEqual(finished, ["success"]);
  assert.equal(page.messages[1].content, countTo(COUNT));
  await page.requireStored();
  await requireWhole({ threadId: page.threadId, runId }, events);
});

test("the interrupt of a detached run can be answered by a page that connects later", async () => {
  const page = new Page(server);
  const { finished } = await page.say("approve", { forwardedProps: CONTINUE });
  assert.deepEqual(finished, ["interrupt"]);
  await page.requireStored();
  const other = new Page(server, { threadId: page.threadId });
  await other.comeBack();
  const { events } = await other.answer({ approved: true });
  assert.equal(textOf(events), 'The e-mail "Lunch": sent to ada@example.com.');
  await other.requireStored();
});

test("a run that is not detached ends with its connection, and its text is stored", async () => {
  const page = new Page(server);
  const runId = randomUUID();
  await page.leaveAfter(3, "count to 200", { runId });
  // The next run waits until the cancelled one has ended.
  const next = new Page(server, { threadId: page.threadId });
  await next.say("Hello");
  const { messages, runs } = await readThread(server, page.threadId);
  assert.deepEqual(runs.map(({ status }) => status), ["finished", "cancelled"]);
  assert.match(messages[1].content, /^1 2 3( |$)/);
  assert.notEqual(messages[1].content, countTo(200));
});

test("an unknown onDisconnect value is refused with the allowed values", async () => {
  const input = { threadId: randomUUID(), messages: [said("Hello")], forwardedProps: { onDisconnect: "stay" } };
  const { status, text } = await post(server, input);
  assert.equal(status, 400);
  const { code, path } = JSON.parse(text).error;
  assert.deepEqual({ code, path }, { code: "invalid_input", path: "forwardedProps.onDisconnect" });
  assert.equal((await request(server, "GET", `/threads/${input.threadId}`)).status, 404, "no thread was created");
});

test("a running run that is not detached is shared with the same request", async () => {
  const page = new Page(server);
  const runId = randomUUID();
  const heard = deltas(2);
  const saying = page.say(SLOW, { runId }, heard);
  await heard.kept;
  const same = { threadId: page.threadId, runId, messages: page.messages.slice(0, 1) };
  const { status, events } = await post(server, same);
  assert.equal(status, 200);
  await saying;
  assert.equal(textOf(events), page.messages.at(-1).content);
  const { runs } = await page.requireStored();
  assert.equal(runs.length, 1);
});

// Two requests for one run, for example a retry, while both wait for another run of the thread.
test("a run that is posted twice while it is queued runs once", async () => {
  const { threadId } = await left();
  const body = JSON.stringify({ threadId, runId: randomUUID(), messages: [said("Hello")], forwardedProps: CONTINUE });
  const request = { method: "POST", headers: { "content-type": "application/json" }, body };
  const answers = await Promise.all([1, 2].map(() => fetch(`${server.url}/send-message`, request)));
  await Promise.all(answers.map((answer) => answer.text()));
  assert.deepEqual(answers.map(({ status }) => status), [200, 200]);
  const { messages } = await readThread(server, threadId);
  assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant", "user", "assistant"]);
});
