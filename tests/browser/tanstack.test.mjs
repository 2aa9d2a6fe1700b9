// The page with TanStack AI, examples/web/tanstack.

import assert from "node:assert/strict";
import { test } from "node:test";

import { answerDialogs, endedRuns, useBrowser } from "./browser.mjs";
import { button, labelled, testApproval, testFailure, testForms, testPageTool, testReload, testStop } from "./chat.mjs";

const used = useBrowser();
const open = () => used.open("tanstack");
const { send, shows } = labelled;
const chat = { used, open, ...labelled };

test("a message is answered, with the calls of the server's tools", async () => {
  const page = await open();
  await send(page, "What's the weather like in Beijing today?");
  await shows(page, "Beijing is sunny today with a temperature of 25°C.");
  await shows(page, '[get_weather {"city":"Beijing"}] Sunny, 25°C');
});

testPageTool(chat);
testReload(chat);
testApproval(chat);
testForms(chat);
testFailure(chat);
testStop(chat);

test("an edited message starts a branch", async () => {
  const page = await open();
  await send(page, "hello");
  await shows(page, "Hello! How can I help you?");
  await send(page, "count to 3");
  await shows(page, "1 2 3");
  answerDialogs(page, "count to 4");
  // A click waits until the button is enabled, that is, until the page knows that the run has ended.
  await button(page, "Edit").last().click();
  await shows(page, "1 2 3 4");
  const { messages } = await endedRuns(used, page, 3);
  assert.deepEqual(messages.map(({ content }) => content), ["hello", "Hello! How can I help you?", "count to 4", "1 2 3 4"]);
});

test("Repeat makes a new answer", async () => {
  const page = await open();
  await send(page, "hello");
  await shows(page, "Hello! How can I help you?");
  const before = await endedRuns(used, page);
  await button(page, "Repeat").click();
  const { messages } = await endedRuns(used, page, 2);
  assert.deepEqual(messages.map(({ content }) => content), ["hello", "Hello! How can I help you?"]);
  assert.notEqual(messages[1].id, before.messages[1].id);
  await shows(page, "Hello! How can I help you?");
});
