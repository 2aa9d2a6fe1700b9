// `connect`: a page without messages connects to a thread, and then holds the same as a page that stayed.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { HttpAgent } from "@ag-ui/client";

import { asJson } from "./ids.mjs";
import { CONTINUE, Page, countTo, deltas, follow, post, readThread, request, said } from "./threads.mjs";
import { textOf, typesOf, useServer } from "./threads.mjs";

const server = useServer();

const COUNT = 40;
const SLOW = `count to ${COUNT}`;
const RESTATED = ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"];

/** Returns the messages, state and open interrupts of a page. */
const shown = ({ messages, state, pendingInterrupts }) => asJson({ messages, state, pendingInterrupts });

/** Requires that all pages and the server hold the same thread. */
async function requireSame(page, ...others) {
  await page.requireStored();
  for (const other of others) assert.deepEqual(shown(other), shown(page));
}

/** Returns a page whose thread has state, an activity, a tool result and two runs. */
async function conversation() {
  const page = new Page(server);
  await page.say("plan a trip");
  await page.say("What's the weather like in Beijing today?");
  return page;
}

test("connect to an idle thread gives its messages and its state", async () => {
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
  assert.equal(runs.length, 2, "connect does not create a run");
});

test("a page that connected continues the thread like a page that stayed", async () => {
  const page = await conversation();
  const other = new Page(server, { threadId: page.threadId });
  await other.comeBack();
  await other.say("Hello");
  await page.comeBack();
  await requireSame(other, page);
});

test("connect removes messages and state that the stored thread does not have", async () => {
  const page = await conversation();
  const other = new Page(server, {
    threadId: page.threadId,
    initialMessages: [said("never sent")],
    initialState: { draft: true },
  });
  await other.comeBack();
  await requireSame(page, other);
});

test("an agent whose url is the thread's connect route needs no other setting", async () => {
  const page = await conversation();
  const url = `${server.url}/threads/${page.threadId}/connect`;
  const agent = new HttpAgent({ url, threadId: page.threadId });
  await agent.runAgent();
  assert.deepEqual(shown(agent), shown(page));
});

test("connect during a detached run follows the run to its end", async () => {
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
  assert.deepEqual(came.events[1].messages.at(-1).content, SLOW, "the snapshot is the thread at the start of the run");
  assert.deepEqual(came.events.slice(3), stayed.events.slice(1), "the events of the run follow");
  assert.equal(textOf(came.events), countTo(COUNT));
  const times = arrivals.filter(([type]) => type === "TEXT_MESSAGE_CONTENT").map(([, time]) => time);
  assert.ok(times.at(-1) - times[0] > 200, "new events arrive while the run continues, not all at its end");
  await requireSame(page, other);
});

test("a page that left a detached run can connect to it", async () => {
  const page = await conversation();
  const had = await page.leaveAfter(3, SLOW, { forwardedProps: CONTINUE });
  const { events } = await page.comeBack();
  assert.deepEqual(events.slice(3, 3 + had.length - 1), had.slice(1), "the run is sent from its first event");
  assert.equal(page.messages.at(-1).content, countTo(COUNT), "no text is there twice");
  await requireSame(page);
});

test("connect while a run changes the state receives the changes", async () => {
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

test("after connect a page can answer the open interrupts of the thread", async () => {
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
  assert.deepEqual(third.pendingInterrupts, [], "an answered interrupt is not open any more");
  await requireSame(other, third);
});

test("if two pages show an interrupt, the first answer counts", async () => {
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

test("connect to a thread that does not exist gives an empty thread and stores nothing", async () => {
  const page = new Page(server);
  const { events } = await page.comeBack();
  assert.deepEqual(typesOf(events), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]);
  assert.deepEqual([page.messages, page.state], [[], {}]);
  const { status } = await request(server, "GET", `/threads/${page.threadId}`);
  assert.equal(status, 404);
  await page.say("Hello");
  await page.requireStored();
});

test("connect needs no request body", async () => {
  const page = await conversation();
  const response = await fetch(`${server.url}/threads/${page.threadId}/connect`, { method: "POST" });
  assert.equal(response.status, 200);
  assert.match(await response.text(), /"type":"MESSAGES_SNAPSHOT"/);
});

test("plain fetch connects during a run, and continues after the last number when its connection breaks", async () => {
  const page = await conversation();
  const runId = randomUUID();
  await page.leaveAfter(3, SLOW, { runId, forwardedProps: CONTINUE });
  const connected = await fetch(`${server.url}/threads/${page.threadId}/connect`, { method: "POST" });
  let received = "";
  for await (const text of connected.body.pipeThrough(new TextDecoderStream())) {
    received += text;
    if (received.split("TEXT_MESSAGE_CONTENT").length > 5) break;
  }
  const frames = received.split("\n\n").slice(0, -1).filter((frame) => !frame.startsWith(":"));
  const had = frames.map((frame) => JSON.parse(frame.split("data: ")[1]));
  assert.deepEqual(typesOf(had).slice(0, 4), [...RESTATED, "TEXT_MESSAGE_START"]);
  const [, last] = /^id: (\d+)/.exec(frames.at(-1));
  const { events } = await follow(server, page.threadId, runId, undefined, { "Last-Event-ID": last });
  assert.equal(textOf([...had, ...events]), countTo(COUNT));
  assert.equal(events.at(-1).type, "RUN_FINISHED");
});
