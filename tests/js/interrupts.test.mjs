// Interrupts: a run ends with questions, and the next run of the thread brings the answers. The server stores the open
// interrupts, so that no call runs without an answer, or twice.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { Page, entry, post, readThread, said, textOf, typesOf, useServer } from "./threads.mjs";

const server = useServer();

const YES = { approved: true };
const NO = { approved: false };
const EDITED = { to: "grace@example.com", subject: "Dinner", body: "At eight?" };
const FORM = { name: "Ada", email: "ada@example.com", size: "M" };

const results = (events) => events.filter(({ type }) => type === "TOOL_CALL_RESULT");
const callsOf = (messages) => messages.flatMap(({ toolCalls }) => toolCalls ?? []);

/** Returns a page whose run ended with interrupts. */
async function asked(content) {
  const page = new Page(server, { initialState: { theme: "dark" } });
  const seen = await page.say(content);
  assert.deepEqual({ finished: seen.finished, errors: seen.errors }, { finished: ["interrupt"], errors: [] });
  return page;
}

/** Requires that no interrupt is open, on the page and on the server, and that each call has one result. */
async function requireClosed(page) {
  const stored = await page.requireStored();
  assert.deepEqual(stored.interrupts, []);
  const answered = stored.messages.filter(({ role }) => role === "tool").map(({ toolCallId }) => toolCallId);
  assert.deepEqual(answered, callsOf(stored.messages).map(({ id }) => id), "each call has one result");
  return stored;
}

test("a run that raises an interrupt ends with it, and both page and server hold it", async () => {
  const page = await asked("approve");
  const [interrupt, ...more] = page.pendingInterrupts;
  assert.deepEqual(more, []);
  const [call] = callsOf(page.messages);
  assert.equal(interrupt.toolCallId, call.id);
  assert.equal(interrupt.reason, "tool_call");
  assert.equal(interrupt.message, 'Send the e-mail "Lunch" to ada@example.com?');
  const stored = await page.requireStored();
  assert.deepEqual(stored.messages.map(({ role }) => role), ["user", "assistant"]);
  assert.deepEqual(stored.runs.map(({ status }) => status), ["interrupted"]);
  assert.equal(stored.activeRunId, undefined);
});

for (const [what, answer, says] of [
  ["yes", YES, 'The e-mail "Lunch": sent to ada@example.com.'],
  ["yes, but edited", { ...YES, editedArgs: EDITED }, 'The e-mail "Dinner": sent to grace@example.com.'],
  ["no", NO, 'The e-mail "Lunch": declined, so it was not sent.'],
  ["cancelled", "cancelled", 'The e-mail "Lunch": declined, so it was not sent.'],
]) {
  test(`an answer that is ${what} gives the call one result, and the run continues`, async () => {
    const page = await asked("approve");
    const [call] = callsOf(page.messages);
    const { events, finished } = await page.answer(answer);
    assert.deepEqual(results(events).map(({ toolCallId }) => toolCallId), [call.id]);
    const told = typesOf(events).filter((type) => /^TOOL_CALL_(START|ARGS|END)$/.test(type));
    assert.deepEqual(told, [], "the call is not sent again");
    assert.deepEqual(finished, ["success"]);
    assert.equal(textOf(events), says);
    assert.deepEqual(page.pendingInterrupts, []);
    const stored = await requireClosed(page);
    assert.deepEqual(stored.messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
    assert.deepEqual(callsOf(stored.messages), [call], "the stored call keeps its original arguments");
    assert.deepEqual(stored.runs.map(({ status }) => status), ["finished", "interrupted"]);
  });
}

test("two interrupts each get their own answer", async () => {
  const page = await asked("approve two");
  const calls = callsOf(page.messages);
  assert.deepEqual(calls.map(({ function: { name } }) => name), ["book_train", "book_hotel"]);
  assert.deepEqual(page.pendingInterrupts.map(({ toolCallId }) => toolCallId), calls.map(({ id }) => id));
  const { events } = await page.answer([NO, YES]);
  assert.deepEqual(results(events).map(({ toolCallId }) => toolCallId), calls.map(({ id }) => id));
  assert.equal(textOf(events), "Done: declined, so no train is booked; a hotel in Beijing is booked for 2 nights.");
  await requireClosed(page);
});

test("with an answer to one of two interrupts no call runs, and both stay open", async () => {
  const page = await asked("approve two");
  const open = structuredClone(page.pendingInterrupts);
  const { events } = await post(server, { threadId: page.threadId, resume: [entry(open[0].id, YES)] });
  assert.deepEqual(events.at(-1).outcome, { type: "interrupt", interrupts: open });
  assert.deepEqual(results(events), []);
  await page.requireStored();
  await page.answer(YES);
  await requireClosed(page);
});

test("a run without answers ends at once with the same interrupts", async () => {
  const page = await asked("approve");
  const { threadId } = page;
  const hurry = said("Hurry up!");
  const { events } = await post(server, { threadId, messages: [hurry] });
  const types = ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"];
  assert.deepEqual([...new Set(typesOf(events))], types, "snapshots only");
  const stored = await readThread(server, threadId);
  assert.deepEqual(events.at(-1).outcome, { type: "interrupt", interrupts: page.pendingInterrupts });
  assert.deepEqual(stored.interrupts, page.pendingInterrupts);
  assert.deepEqual(stored.messages, [...page.messages, hurry], "the new message is stored");
  assert.deepEqual(events.at(-2).messages, stored.messages, "the snapshot has it, too");

  page.addMessage(hurry);
  const answered = await page.answer(YES);
  assert.equal(results(answered.events).length, 1);
  await requireClosed(page);
});

test("an answer that fits the form's schema is accepted", async () => {
  const page = await asked("form");
  const [interrupt] = page.pendingInterrupts;
  assert.equal(interrupt.reason, "input_required");
  assert.deepEqual(interrupt.responseSchema.required, ["name", "email", "size"]);
  assert.ok(new Date(interrupt.expiresAt) > new Date(), "it has not expired");
  const { events } = await page.answer(FORM);
  assert.match(textOf(events), /^Thank you, Ada! Your T-shirt in size M /);
  await requireClosed(page);
});

for (const [what, payload] of [
  ["lacks a member", { name: "Ada", email: "ada@example.com" }],
  ["has a value that is not on offer", { ...FORM, size: "XXL" }],
  ["is no object", "M"],
]) {
  test(`an answer that ${what} is refused, and the interrupt stays open`, async () => {
    const page = await asked("form");
    const open = structuredClone(page.pendingInterrupts);
    const refused = await page.answer(payload);
    assert.deepEqual(typesOf(refused.events), ["RUN_STARTED", "RUN_ERROR"]);
    assert.deepEqual(refused.errors, ["invalid_resume_payload"]);
    assert.deepEqual(page.pendingInterrupts, open, "the page still shows the interrupt");
    const stored = await page.requireStored();
    assert.deepEqual(stored.runs[0].error.code, "invalid_resume_payload");
    const { events } = await page.answer(FORM);
    assert.match(textOf(events), /^Thank you, Ada!/);
    await requireClosed(page);
  });
}

test("a repeated answer does not give the call a second result", async () => {
  const page = await asked("approve");
  const { threadId, pendingInterrupts: [interrupt] } = page;
  const [call] = callsOf(page.messages);
  const answer = { threadId, runId: randomUUID(), resume: [entry(interrupt.id, YES)] };
  const first = await post(server, answer);
  assert.deepEqual(results(first.events).map(({ toolCallId }) => toolCallId), [call.id]);
  for (const again of [answer, { ...answer, runId: randomUUID() }]) {
    const { events } = await post(server, again);
    assert.deepEqual(results(events), []);
    const { messages } = await readThread(server, threadId);
    assert.deepEqual(messages.filter(({ toolCallId }) => toolCallId === call.id).length, 1);
  }
});

test("answers to unknown interrupts are ignored", async () => {
  const page = await asked("approve");
  const { threadId, pendingInterrupts: [{ id }] } = page;
  const strange = [entry("int_never", YES), entry(`${id}x`, "cancelled")];
  const { events } = await post(server, { threadId, resume: [...strange, entry(id, YES)] });
  assert.equal(results(events).length, 1);
  assert.equal(textOf(events), 'The e-mail "Lunch": sent to ada@example.com.');
  const idle = await post(server, { threadId: randomUUID(), messages: [said("Hello")], resume: strange });
  assert.equal(textOf(idle.events), "Hello! How can I help you?");
});

test("two contradictory answers to one interrupt are refused", async () => {
  const page = await asked("approve");
  const [{ id }] = page.pendingInterrupts;
  const { events } = await post(server, { threadId: page.threadId, resume: [entry(id, YES), entry(id, NO)] });
  assert.deepEqual(typesOf(events).at(-1), "RUN_ERROR");
  assert.equal(events.at(-1).code, "contradictory_resume");
  await page.requireStored();
});

for (const [first, second, decision] of [[NO, YES, "declined"], [YES, NO, "approved"], ["cancelled", YES, "cancelled"]]) {
  test(`a second page that answers after a call was ${decision} learns so, shows the thread, and continues`, async () => {
    const page = await asked("approve");
    const { threadId } = page;
    const other = new Page(server, { threadId });
    await other.comeBack();
    assert.deepEqual(other.pendingInterrupts, page.pendingInterrupts);
    const [{ id }] = page.pendingInterrupts;
    await page.answer(first);
    const stored = await requireClosed(page);

    const { events, finished, errors } = await other.answer(second);
    const [{ value }] = events.filter(({ type }) => type === "CUSTOM");
    const [call] = callsOf(stored.messages);
    assert.deepEqual(value, { answers: [{ interruptId: id, toolCallId: call.id, decision }] });
    assert.deepEqual({ finished, errors, open: other.pendingInterrupts }, { finished: ["success"], errors: [], open: [] });
    assert.deepEqual(other.messages, stored.messages);
    // As CopilotKit answers: under the id of the run that asked.
    for (const run of stored.runs) {
      await post(server, { threadId, runId: run.runId, messages: page.messages.slice(0, 2), resume: [entry(id, second)] });
    }
    assert.deepEqual(await readThread(server, threadId), stored, "no run, no branch, no result");
    const { events: next } = await other.say("Hello");
    assert.equal(textOf(next), "Hello! How can I help you?");
    await requireClosed(other);
  });
}
