// The page with the AI SDK, examples/web/ai-sdk.

import assert from "node:assert/strict";
import { test } from "node:test";

import { answerDialogs, endedRuns, useBrowser } from "./browser.mjs";
import { button, labelled, testApproval, testFailure, testPageTool, testReload, testStop, testStopAfterReload } from "./chat.mjs";

const used = useBrowser();
const open = () => used.open("ai-sdk");
const { send, shows } = labelled;
const chat = { used, open, ...labelled };

test("a message is answered, with the calls of the server's tools", async () => {
  const page = await open();
  await send(page, "What's the weather like in Beijing today?");
  await shows(page, "Beijing is sunny today with a temperature of 25°C.");
  await shows(page, '[tool-get_weather {"city":"Beijing"}] "Sunny, 25°C"');
});

testPageTool(chat);
testReload(chat);
testApproval(chat);
testFailure(chat);
testStop(chat);
testStopAfterReload(chat);

test("an edit and another answer are branches", async () => {
  const page = await open();
  await send(page, "hello");
  await shows(page, "Hello! How can I help you?");
  await send(page, "count to 3");
  await shows(page, "1 2 3");
  answerDialogs(page, "count to 4");
  // A click waits until the button is enabled, that is, until the page knows that the run has ended.
  await button(page, "Edit").last().click();
  await shows(page, "1 2 3 4");
  const before = await endedRuns(used, page, 3);
  await button(page, "Repeat").click();
  const { messages } = await endedRuns(used, page, 4);
  assert.deepEqual(messages.map(({ content }) => content), ["hello", "Hello! How can I help you?", "count to 4", "1 2 3 4"]);
  assert.notEqual(messages[3].id, before.messages[3].id);
});
