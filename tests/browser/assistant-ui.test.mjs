// The page with assistant-ui, examples/web/assistant-ui.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { endedRuns, runOutside, useBrowser } from "./browser.mjs";
import { button, labelled, testApproval, testFailure, testForms, testPageTool, testStop } from "./chat.mjs";

const used = useBrowser();
const open = (options) => used.open("assistant-ui", options);
const { send, shows } = labelled;
/** Waits until the page knows that the run has ended, which is later than on the server. Before, clicks may be lost. */
const idle = (page) => page.getByRole("button", { name: "Stop", disabled: true }).waitFor();
const chat = { used, open, ...labelled };

test("a message is answered, with the calls of the server's tools", async () => {
  const page = await open();
  await send(page, "What's the weather like in Beijing today?");
  await shows(page, "Beijing is sunny today with a temperature of 25°C.");
  await shows(page, '[get_weather {"city":"Beijing"}] "Sunny, 25°C"');
});

testPageTool(chat);
testApproval(chat);
testForms(chat);
testFailure(chat);
testStop(chat);

test("a reloaded page shows the conversation and continues it", async () => {
  const page = await open();
  await send(page, "What's the weather like in Beijing today?");
  await shows(page, "25°C.");
  await page.reload();
  await shows(page, "Beijing is sunny today with a temperature of 25°C.");
  await send(page, "hello");
  await shows(page, "Hello! How can I help you?");
  const { messages } = await endedRuns(used, page, 2);
  assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant", "user", "assistant"]);
});

// The library gives the edited message a new id. The server cannot tell an edited first message from a new one.
test("an edited message starts a branch", async () => {
  const page = await open();
  await send(page, "hello");
  await shows(page, "Hello! How can I help you?");
  await send(page, "count to 3");
  await shows(page, "1 2 3");
  await endedRuns(used, page, 2);
  await idle(page);
  await button(page, "Edit").last().click();
  await page.getByLabel("Edit message").fill("count to 4");
  await button(page, "Send").first().click();
  await shows(page, "1 2 3 4");
  const { messages } = await endedRuns(used, page, 3);
  assert.deepEqual(messages.map(({ content }) => content), ["hello", "Hello! How can I help you?", "count to 4", "1 2 3 4"]);
});

test("a question that is open when the page is loaded can be answered", async () => {
  const threadId = randomUUID();
  await runOutside(used, threadId, "approve");
  const page = await open({ threadId });
  await button(page, "Approve").click();
  await shows(page, "sent to ada@example.com");
});

test("Repeat makes a new answer, and the page shows both", async () => {
  const page = await open();
  await send(page, "hello");
  await shows(page, "Hello! How can I help you?");
  const before = await endedRuns(used, page);
  await idle(page);
  await button(page, "Repeat").click();
  await shows(page, "2 / 2");
  const { messages } = await endedRuns(used, page, 2);
  assert.deepEqual(messages.map(({ content }) => content), ["hello", "Hello! How can I help you?"]);
  assert.notEqual(messages[1].id, before.messages[1].id);
});
