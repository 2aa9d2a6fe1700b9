// The page with CopilotKit's components, examples/web/copilotkit.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { answerDialogs, endedRuns, runOutside, shot, statuses, storedThread, useBrowser } from "./browser.mjs";
import { button, testApproval, testForms, testPageTool, testStop, testStopAfterReload } from "./chat.mjs";

const used = useBrowser();
const open = (options) => used.open("copilotkit", options);

async function send(page, text) {
  await page.getByTestId("copilot-chat-textarea").fill(text);
  await page.getByTestId("copilot-chat-textarea").press("Enter");
}

const users = (page) => page.getByTestId("copilot-user-message");
const assistants = (page) => page.getByTestId("copilot-assistant-message");
/** Waits until the assistant's last message has the text. */
const ended = (page, text) => assistants(page).last().filter({ hasText: text }).waitFor();
/** Waits until the page knows that the run has ended. During a run the button means Stop and needs no text. */
const idle = (page) => page.getByTestId("copilot-send-button").and(page.locator(":disabled")).waitFor();
const stop = (page) => page.getByTestId("copilot-send-button").click();
const chat = { used, open, send, shows: ended, stop, field: (page) => page.getByTestId("copilot-chat-textarea") };

/** Does `load`, which loads the page, and waits until the page's lists and chat receive changes from the server. */
async function joined(page, load) {
  const isJoin = ({ payload }) => {
    const [, , topic, event, { status } = {}] = JSON.parse(payload);
    return topic.startsWith("user_meta:") && event === "phx_reply" && status === "ok";
  };
  // A socket of the page that was there before closes without a join.
  const joins = (socket) => socket.waitForEvent("framereceived", isJoin).then(() => true, () => false);
  await Promise.all([page.waitForEvent("websocket", joins), load()]);
}

/** Presses a button that changes a thread. Waits until the server has done it, because the page shows it earlier. */
async function change(page, target) {
  const isChange = (response) => {
    const method = response.request().method();
    return (method === "PATCH" || method === "POST") && /\/threads\/[^/]+(\/archive)?$/.test(response.url());
  };
  const [response] = await Promise.all([page.waitForResponse(isChange), target.click()]);
  assert.ok(response.ok(), `${response.status()} ${response.url()}`);
}

test("a message is answered, and the call of the server's tool is drawn by the page", async () => {
  const page = await open();
  await send(page, "What's the weather like in Beijing today?");
  await ended(page, "Beijing is sunny today with a temperature of 25°C.");
  await page.getByText("Weather in Beijing: Sunny, 25°C").waitFor();
  assert.deepEqual(statuses(await endedRuns(used, page)), ["finished"]);
});

test("a message is not lost while the page learns the server's agents", async () => {
  const page = await used.newPage();
  await page.route("**/copilotkit/info", async (route) => {
    await new Promise((done) => setTimeout(done, 1000));
    await route.continue();
  });
  await used.load(page, "copilotkit");
  await send(page, "hello");
  await ended(page, "Hello! How can I help you?");
});

testPageTool(chat);
testApproval(chat);

test("two interrupts are answered in one run", async () => {
  const page = await open();
  await send(page, "approve two");
  await button(page, "Approve").first().click();
  await button(page, "Decline").last().click();
  await ended(page, "Done: a train to Beijing is booked; declined, so no hotel is booked.");
});

testForms(chat);

test("the demo agent draws a form, its button reaches the agent, and a reload shows the form again", async () => {
  const page = await open();
  await send(page, "show a form");
  const title = page.getByText("A table for two");
  await title.waitFor();
  await page.getByLabel("Your name").fill("Ada");
  await page.getByRole("button", { name: "Book" }).click();
  await ended(page, "Thank you, Ada! A table is booked for Friday.");
  await shot(page, "9-form");
  await page.reload();
  await ended(page, "Thank you, Ada! A table is booked for Friday.");
  await title.waitFor();
  assert.equal(await title.count(), 1);
});

testStop(chat);
testStopAfterReload(chat);

test("a reload during a run shows the conversation and the rest of the run", async () => {
  const page = await open();
  await send(page, "hello");
  await ended(page, "Hello! How can I help you?");
  await send(page, "count to 20");
  await ended(page, "1 2 3");
  await page.reload();
  await ended(page, "18 19 20");
  assert.equal(await users(page).count(), 2);
  assert.equal(await assistants(page).count(), 2);
  assert.deepEqual(statuses(await endedRuns(used, page, 2)), ["finished", "finished"]);
});

test("a question that is open when the page is loaded can be answered", async () => {
  const threadId = randomUUID();
  await runOutside(used, threadId, "approve");
  const page = await open({ threadId });
  await button(page, "Approve").click();
  await ended(page, "sent to ada@example.com");
});

test("an edited message starts a branch", async () => {
  const page = await open();
  await send(page, "count to 3");
  await ended(page, "1 2 3");
  await send(page, "hello");
  await ended(page, "Hello!");
  await idle(page);
  const asked = answerDialogs(page, false, "count to 4");
  for (const _ of ["dismissed", "answered"]) {
    await users(page).first().hover();
    await page.getByTestId("copilot-edit-button").first().click();
  }
  await ended(page, "1 2 3 4");
  assert.equal(asked.length, 2);
  assert.equal(await users(page).count(), 1);
  const { messages, runs } = await endedRuns(used, page, 3);
  assert.equal(runs.length, 3, "a dismissed dialog starts no run");
  assert.deepEqual(messages.map(({ content }) => content), ["count to 4", "1 2 3 4"]);
});

test("Regenerate makes a new answer", async () => {
  const page = await open();
  await send(page, "hello");
  await ended(page, "Hello!");
  await send(page, "count to 3");
  await ended(page, "1 2 3");
  const before = await endedRuns(used, page, 2);
  await idle(page);
  await assistants(page).last().hover();
  await page.getByTestId("copilot-regenerate-button").last().click();
  const after = await endedRuns(used, page, 3);
  assert.deepEqual(after.messages.map(({ content }) => content), before.messages.map(({ content }) => content));
  assert.notEqual(after.messages.at(-1).id, before.messages.at(-1).id);
  await ended(page, "1 2 3");
  assert.equal(await assistants(page).count(), 2);
});

test("threads are listed, opened, renamed and archived", async () => {
  const page = await used.newPage();
  const nav = page.getByRole("navigation");
  const row = (name) => nav.locator("span", { has: button(page, name) });
  await joined(page, () => used.load(page, "copilotkit"));
  await send(page, "hello, list");
  await ended(page, "Hello!");
  const threadId = await page.evaluate(() => sessionStorage.thread);
  answerDialogs(page, "Greetings");
  await change(page, row("hello, list").getByRole("button", { name: "Rename" }));
  await row("Greetings").waitFor();

  await button(nav, "New").click();
  await users(page).waitFor({ state: "detached" });
  await send(page, "count to 3");
  await ended(page, "1 2 3");
  await button(row("Greetings"), "Greetings").click();
  await ended(page, "Hello!");
  assert.equal(await page.evaluate(() => sessionStorage.thread), threadId);
  // A second tab shows the same list, and changes it.
  const other = await open();
  const there = other.getByRole("navigation").locator("span");
  await there.filter({ has: button(other, "Greetings") }).waitFor();
  await send(other, "hello, tab");
  await row("hello, tab").waitFor();
  await other.close();
  await change(page, row("Greetings").getByRole("button", { name: "Archive" }));
  await row("Greetings").waitFor({ state: "detached" });
  const { title, archived } = await storedThread(used, page);
  assert.deepEqual([title, archived], ["Greetings", true]);
});

test("a tab shows the run that another tab starts on its thread", async () => {
  const page = await open();
  await send(page, "hello");
  await ended(page, "Hello!");
  await joined(page, () => page.reload());
  const threadId = await page.evaluate(() => sessionStorage.thread);
  const other = await open({ threadId });
  await ended(other, "Hello!");
  await send(other, "count to 20");
  await ended(other, "1 2 3");
  await ended(page, "18 19 20");
  await ended(other, "18 19 20");
  assert.deepEqual([await users(page).count(), await assistants(page).count()], [2, 2]);
});
