// Coming back to a thread: a page that has nothing connects, and holds what a page holds that never left.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { HttpAgent } from "@ag-ui/client";

import { asJson } from "./ids.mjs";
import { CONTINUE, Page, countTo, deltas, post, readThread, request, said } from "./threads.mjs";
import { textOf, typesOf, useServer } from "./threads.mjs";

const server = useServer();

const COUNT = 12;
const SLOW = `count to ${COUNT}`;
const RESTATED = ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"];

/** What a page shows. */
const shown = ({ messages, state, pendingInterrupts }) => asJson({ messages, state, pendingInterrupts });

/** Pages on one thread hold the same, and so does the server. */
async function requireSame(page, ...others) {
  await page.requireStored();
  for (const other of others) assert.deepEqual(shown(other), shown(page));
}

/** A page of a thread that has something of everything: state, an activity, a tool's result, several runs. */
async function conversation() {
  const page = new Page(server);
  await page.say("plan a trip");
  await page.say("What's the weather like in Beijing today?");
  return page;
}

test("a page that comes back to an idle thread holds its messages and its state", async () => {
  const page = await conversation();
  const other = new Page(server, { threadId: page.threadId });
  const { events, finished } = await other.comeBack();
  assert.deepEqual(typesOf(events), [...RESTATED, "RUN_FINISHED"]);
  assert.deepEqual(finished, ["success"]);
  assert.deepEqual(other.state.finished, true);
  const roles = ["user", "activity", "assistant", "user", "assistant", "tool", "assistant"];
  assert.deepEqual(other.messages.map(({ role }) => role), roles);
  await requireSame(page, other);
  const { runs } = await readThread(server, page.threadId);
  assert.equal(runs.length, 2, "coming back is no run");
});

test("a page that comes back goes on with the thread as if it had never left", async () => {
  const page = await conversation();
  const other = new Page(server, { threadId: page.threadId });
  await other.comeBack();
  await other.say("Hello");
  await page.comeBack();
  await requireSame(other, page);
});

test("what a page has and the thread has not is gone once it comes back", async () => {
  const page = await conversation();
  const other = new Page(server, {
    threadId: page.threadId,
    initialMessages: [said("never sent")],
    initialState: { draft: true },
  });
  await other.comeBack();
  await requireSame(page, other);
});

test("an agent whose address is the thread's connection needs to know nothing else", async () => {
  const page = await conversation();
  const url = `${server.url}/threads/${page.threadId}/connect`;
  const agent = new HttpAgent({ url, threadId: page.threadId });
  await agent.runAgent();
  assert.deepEqual(shown(agent), shown(page));
});

test("a page that comes back in the middle of a run sees it to its end, like the one that stayed", async () => {
  const page = await conversation();
  const heard = deltas(4);
  const runId = randomUUID();
  const staying = page.say(SLOW, { runId, forwardedProps: CONTINUE }, heard);
  await heard.kept;
  const other = new Page(server, { threadId: page.threadId });
  const arrivals = [];
  const [stayed, came] = await Promise.all([
    staying,
    other.comeBack({ onEvent: ({ type }) => void arrivals.push([type, performance.now()]) }),
  ]);
  assert.deepEqual(typesOf(came.events).slice(0, 4), [...RESTATED, "TEXT_MESSAGE_START"]);
  assert.equal(came.events[0].runId, runId);
  assert.deepEqual(came.events[1].messages.at(-1).content, SLOW, "the snapshot is how the run found the thread");
  assert.deepEqual(came.events.slice(3), stayed.events.slice(1), "and then comes the run");
  assert.equal(textOf(came.events), countTo(COUNT));
  const times = arrivals.filter(([type]) => type === "TEXT_MESSAGE_CONTENT").map(([, time]) => time);
  assert.ok(times.at(-1) - times[0] > 200, "what is new comes when it is said, not all at the end");
  await requireSame(page, other);
});

test("a page that has left a run comes back to it", async () => {
  const page = await conversation();
  const had = await page.leaveAfter(3, SLOW, { forwardedProps: CONTINUE });
  const { events } = await page.comeBack();
  assert.deepEqual(events.slice(3, 3 + had.length - 1), had.slice(1), "the run is told from its beginning");
  assert.equal(page.messages.at(-1).content, countTo(COUNT), "and nothing of it is there twice");
  await requireSame(page);
});

test("a page that comes while a run changes the state follows the changes", async () => {
  const page = await conversation();
  const first = new Promise((resolve) => {
    page.subscribe({ onStateDeltaEvent: () => void resolve() });
  });
  const staying = page.say("plan a party", { forwardedProps: CONTINUE });
  await first;
  const other = new Page(server, { threadId: page.threadId });
  await Promise.all([staying, other.comeBack()]);
  assert.equal(other.state.goal, "a party");
  assert.equal(other.state.finished, true);
  await requireSame(page, other);
});

test("a page that comes to a thread with open questions can answer them", async () => {
  const page = new Page(server, { initialState: { theme: "dark" } });
  await page.say("approve two");
  const other = new Page(server, { threadId: page.threadId });
  const { finished } = await other.comeBack();
  assert.deepEqual(finished, ["interrupt"]);
  await requireSame(page, other);
  assert.equal(other.pendingInterrupts.length, 2);
  const { events } = await other.answer([{ approved: true }, "cancelled"]);
  assert.equal(textOf(events), "Done: a train to Beijing is booked; declined, so no hotel is booked.");
  await requireSame(other);

  const third = new Page(server, { threadId: page.threadId });
  await third.comeBack();
  assert.deepEqual(third.pendingInterrupts, [], "what was answered is not asked again");
  await requireSame(other, third);
});

test("of two pages that hold a question the first to answer decides", async () => {
  const page = new Page(server);
  await page.say("approve");
  const other = new Page(server, { threadId: page.threadId });
  await other.comeBack();
  await other.answer({ approved: false });
  const before = await readThread(server, page.threadId);
  const { events } = await page.answer({ approved: true });
  assert.deepEqual(events.filter(({ type }) => type === "TOOL_CALL_RESULT"), []);
  const { messages } = await readThread(server, page.threadId);
  assert.deepEqual(messages.slice(0, before.messages.length), before.messages);
});

test("a first visitor can connect: the thread is empty, and nothing is stored", async () => {
  const page = new Page(server);
  const { events } = await page.comeBack();
  assert.deepEqual(typesOf(events), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]);
  assert.deepEqual([page.messages, page.state], [[], {}]);
  const { status } = await request(server, "GET", `/threads/${page.threadId}`);
  assert.equal(status, 404);
  await page.say("Hello");
  await page.requireStored();
});

test("to come back needs no body", async () => {
  const page = await conversation();
  const response = await fetch(`${server.url}/threads/${page.threadId}/connect`, { method: "POST" });
  assert.equal(response.status, 200);
  assert.match(await response.text(), /"type":"MESSAGES_SNAPSHOT"/);
});
