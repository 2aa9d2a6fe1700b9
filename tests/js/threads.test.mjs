// Threads: what is stored, and how runs are cancelled and threads listed and deleted.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { identify } from "./ids.mjs";
import { startServer } from "./server.mjs";
import { CONTINUE, Page, deltas, entry, post, range } from "./threads.mjs";
import { readThread, request, said, textOf, useServer } from "./threads.mjs";

const server = useServer();

const WEATHER = "What's the weather like in Beijing?";
const OFFERED = [{ name: "get_weather", description: "Looks it up", parameters: { type: "object" } }];
// Takes ten seconds; no test waits for more than a few words of it.
const LONG = "count to 100";

const cancel = (threadId, runId) => request(server, "POST", `/threads/${threadId}/runs/${runId}/cancel`);

/** Starts a run and waits for three deltas. `outcome` resolves when the run ends. */
async function running(parameters) {
  const page = new Page(server);
  const runId = randomUUID();
  const heard = deltas(3);
  const outcome = page.say(LONG, { runId, ...parameters }, heard);
  await Promise.race([heard.kept, outcome.then(() => assert.fail("the run ended by itself"))]);
  return { page, threadId: page.threadId, runId, outcome };
}

// --- Stored content -------------------------------------------------------------------------------

test("a client that sends only new messages gets the same thread as one that sends all", async () => {
  const page = new Page(server);
  const bare = randomUUID();
  const said1 = said("plan a trip");
  await page.say("plan a trip");
  await post(server, { threadId: bare, messages: [said1] });

  await page.say(WEATHER, { tools: OFFERED });
  const { events } = await post(server, { threadId: bare, messages: [said(WEATHER)], tools: OFFERED });
  const { toolCallId } = events.find(({ type }) => type === "TOOL_CALL_START");
  const answer = { role: "tool", content: "Rain, 12°C" };
  page.addMessage({ ...answer, id: randomUUID(), toolCallId: page.messages.at(-1).toolCalls[0].id });
  await page.say(undefined, { tools: OFFERED });
  const last = await post(server, { threadId: bare, messages: [{ ...answer, id: randomUUID(), toolCallId }] });
  assert.equal(textOf(last.events), "The weather in Beijing: Rain, 12°C");

  await page.say("approve");
  await page.answer({ approved: true });
  const asked = await post(server, { threadId: bare, messages: [said("approve")] });
  const [{ id }] = asked.events.at(-1).outcome.interrupts;
  await post(server, { threadId: bare, resume: [entry(id, { approved: true })] });

  const whole = await page.requireStored();
  const stored = await readThread(server, bare);
  assert.equal(stored.messages.length, 11);
  assert.deepEqual(identify(stored.messages).value, identify(whole.messages).value);
  assert.deepEqual(stored.state, whole.state);
});

test("a request without state gets the stored state as a snapshot and does not change it", async () => {
  const threadId = randomUUID();
  await post(server, { threadId, messages: [said("plan a trip")] });
  const { state } = await readThread(server, threadId);
  const { events } = await post(server, { threadId, messages: [said("Hello")] });
  assert.deepEqual(events[1], { type: "STATE_SNAPSHOT", snapshot: state });
  assert.deepEqual((await readThread(server, threadId)).state, state);
  await post(server, { threadId, messages: [said("Hello")], state: { mine: 1 } });
  assert.deepEqual((await readThread(server, threadId)).state, { mine: 1 }, "the state of the request is stored");
});

test("a request without effects that comes again is another attempt", async () => {
  const input = { threadId: randomUUID(), runId: randomUUID(), messages: [said("Hello")] };
  const first = await post(server, input);
  const second = await post(server, input);
  assert.equal(textOf(second.events), textOf(first.events));
  const { messages, runs } = await readThread(server, input.threadId);
  assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant"]);
  assert.deepEqual(runs.map(({ runId, status, attempt }) => [runId, status, attempt]), [[input.runId, "finished", 2], [input.runId, "finished", 1]]);
});

test("concurrent runs of one thread run one after the other", async () => {
  const threadId = randomUUID();
  const counts = [3, 4, 5].map((n) => said(`count to ${n}`));
  const answers = await Promise.all(counts.map((message) => post(server, { threadId, messages: [message] })));
  const texts = ["1 2 3", "1 2 3 4", "1 2 3 4 5"];
  assert.deepEqual(answers.map(({ events }) => textOf(events)), texts);
  const { messages } = await readThread(server, threadId);
  assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant", "user", "assistant", "user", "assistant"]);
  const pairs = range(0, 2).map((at) => messages.slice(2 * at, 2 * at + 2).map(({ content }) => content));
  assert.deepEqual(pairs.sort(), counts.map(({ content }, at) => [content, texts[at]]));
});

test("a failed run keeps its text, and its record has the error", async () => {
  const page = new Page(server);
  const { errors } = await page.say("fail");
  assert.deepEqual(errors, ["demo_failure"]);
  const { runs } = await page.requireStored();
  assert.equal(runs[0].status, "failed");
  assert.deepEqual(runs[0].error, { code: "demo_failure", message: "The demo was asked to fail." });
});

test("a thread id may contain any characters", async () => {
  const threadId = "a/b?c=d e#f%2F.é/../";
  const page = new Page(server, { threadId });
  await page.say("Hello");
  await page.requireStored();
  const { threads } = (await request(server, "GET", "/threads?limit=1")).body;
  assert.deepEqual(threads.map((thread) => thread.threadId), [threadId]);
});

// --- Cancel ---------------------------------------------------------------------------------------

for (const [what, parameters] of [["a run", {}], ["a detached run", { forwardedProps: CONTINUE }]]) {
  test(`${what} that another client cancels ends with the outcome cancelled for its page`, async () => {
    const { page, threadId, runId, outcome } = await running(parameters);
    const { status, body } = await cancel(threadId, runId);
    assert.equal(status, 202);
    assert.deepEqual({ runId: body.runId, status: body.status }, { runId, status: "cancelling" });
    const { finished, errors } = await outcome;
    assert.deepEqual({ finished, errors }, { finished: ["cancelled"], errors: [] });
    assert.match(page.messages[1].content, /^1 2 3 /);
    assert.doesNotMatch(page.messages[1].content, / 50 /);
    const { runs } = await page.requireStored();
    assert.equal(runs[0].status, "cancelled");

    const again = await cancel(threadId, runId);
    assert.deepEqual([again.status, again.body.status], [200, "cancelled"], "a second cancel reports the end");
    await page.say("Hello");
    await page.requireStored();
  });
}

test("cancel of an ended run returns its status, and of an unknown run 404", async () => {
  const page = new Page(server);
  const runId = randomUUID();
  await page.say("Hello", { runId });
  const ended = await cancel(page.threadId, runId);
  assert.deepEqual([ended.status, ended.body.status], [200, "finished"]);
  const none = await cancel(page.threadId, randomUUID());
  assert.deepEqual([none.status, none.body.error.code], [404, "unknown_run"]);
  const nowhere = await cancel(randomUUID(), runId);
  assert.deepEqual([nowhere.status, nowhere.body.error.code], [404, "unknown_thread"]);
});

// --- Delete ---------------------------------------------------------------------------------------

test("after its deletion a thread is unknown, and its id starts a new thread", async () => {
  const page = new Page(server);
  await page.say("plan a trip");
  const path = `/threads/${page.threadId}`;
  assert.deepEqual(await request(server, "DELETE", path), { status: 204, body: undefined });
  for (const method of ["GET", "DELETE"]) {
    const { status, body } = await request(server, method, path);
    assert.deepEqual([status, body.error.code], [404, "unknown_thread"], method);
  }
  await post(server, { threadId: page.threadId, messages: [said("Hello")] });
  const { messages, state, runs } = await readThread(server, page.threadId);
  assert.deepEqual([messages.length, state, runs.length], [2, {}, 1]);
});

for (const [what, parameters] of [["a run", {}], ["a detached run", { forwardedProps: CONTINUE }]]) {
  test(`deleting a thread during ${what} ends its stream with an error of its own`, async () => {
    const { threadId, outcome } = await running(parameters);
    assert.equal((await request(server, "DELETE", `/threads/${threadId}`)).status, 204);
    const { finished, errors } = await outcome;
    assert.deepEqual({ finished, errors }, { finished: [], errors: ["thread_deleted"] });
    assert.equal((await request(server, "GET", `/threads/${threadId}`)).status, 404);
  });
}

// --- List -----------------------------------------------------------------------------------------

test("threads are listed in pages, the most recently changed first, each once", async () => {
  const own = await startServer();
  try {
    const none = await request(own, "GET", "/threads");
    assert.deepEqual(none, { status: 200, body: { threads: [] } });
    const ids = [];
    for (let count = 0; count < 7; count++) {
      const page = new Page(own);
      await page.say(count === 3 ? "approve two" : "Hello");
      ids.unshift(page.threadId);
    }
    const pages = [];
    let next = "";
    do {
      const { status, body } = await request(own, "GET", `/threads?limit=3${next}`);
      assert.equal(status, 200);
      pages.push(body.threads);
      next = body.next && `&cursor=${encodeURIComponent(body.next)}`;
    } while (next);
    assert.deepEqual(pages.map(({ length }) => length), [3, 3, 1]);
    const listed = pages.flat();
    const times = listed.map(({ updatedAt }) => updatedAt);
    for (const time of times) assert.match(time, /T\d\d:\d\d:\d\d\.\d{3}Z$/, "times sort as strings");
    assert.deepEqual(times, times.toSorted().reverse());
    assert.deepEqual(listed.map(({ threadId }) => threadId).sort(), ids.toSorted(), "each thread once");
    const asking = listed.filter(({ openInterrupts }) => openInterrupts > 0);
    assert.deepEqual(asking.map(({ threadId, openInterrupts }) => [threadId, openInterrupts]), [[ids[3], 2]]);
    assert.deepEqual(new Set(listed.map(({ agent }) => agent)), new Set(["demo"]));
    for (const query of ["limit=0", "limit=201", "limit=x", "cursor=x"]) {
      const { status, body } = await request(own, "GET", `/threads?${query}`);
      assert.deepEqual([status, body.error.code], [400, "invalid_parameter"], query);
    }
  } finally {
    await own.stop();
  }
});
