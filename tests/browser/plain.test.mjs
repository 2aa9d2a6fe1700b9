// The page of the README, examples/web/plain.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { answerDialogs, endedRuns, runOutside, statuses, storedThread, useBrowser } from "./browser.mjs";
import { button, testStop, testStopAfterReload } from "./chat.mjs";

const file = (path) => fileURLToPath(new URL(path, import.meta.url));
const used = useBrowser({
  variables: {
    AGUI_DEFAULT_AGENT: "demo",
    AGUI_AGENTS__DEMO__KIND: "script",
    AGUI_AGENTS__DEMO__SCRIPT: file("../../config/scripts/demo.toml"),
    AGUI_AGENTS__ASKER__KIND: "script",
    AGUI_AGENTS__ASKER__SCRIPT: file("asker.toml"),
  },
});
const open = (options) => used.open("plain", options);

async function send(page, text) {
  await page.getByRole("textbox").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

/** Returns what the page shows, without the buttons. */
async function lines(page) {
  const texts = await page.getByRole("listitem").allInnerTexts();
  return texts.map((text) => text.replace(/ *(Edit|Repeat) */g, ""));
}

/** Waits until the last line of the page is `text`. */
const ended = (page, text) => page.locator("li:last-child", { hasText: text }).waitFor();
const chat = { used, open, send, shows: ended, stop: (page) => button(page, "Stop").click() };

test("a message is answered, with the calls of the server's tools", async () => {
  const page = await open();
  await page.getByRole("button", { name: "Send" }).click();
  await ended(page, "25°C.");
  assert.deepEqual(await lines(page), [
    "user: What's the weather like in Beijing today?",
    'assistant: Let me check[get_weather {"city":"Beijing"}]',
    "tool: Sunny, 25°C",
    "assistant: Beijing is sunny today with a temperature of 25°C.",
  ]);
});

for (const [answer, says] of [[true, "Successfully deleted 15 temporary files."], [false, "All right, nothing was deleted."]]) {
  test(`the page's tool asks the user, who says ${answer ? "yes" : "no"}`, async () => {
    const page = await open();
    const asked = answerDialogs(page, answer);
    await send(page, "delete all temporary files");
    await ended(page, says);
    assert.deepEqual(asked.map(JSON.parse), [{ action: "delete temporary files", count: 15 }]);
    assert.equal((await lines(page)).length, 4);
  });
}

for (const [answer, says] of [[true, "sent to ada@example.com"], [false, "declined, so it was not sent"]]) {
  test(`"approve" asks the user, who says ${answer ? "yes" : "no"}`, async () => {
    const page = await open();
    const asked = answerDialogs(page, answer);
    await send(page, "approve");
    await ended(page, `The e-mail "Lunch": ${says}.`);
    const args = { to: "ada@example.com", subject: "Lunch", body: "At noon?" };
    assert.deepEqual(asked, [`Send the e-mail "Lunch" to ada@example.com? ${JSON.stringify(args)}`]);
    assert.deepEqual((await endedRuns(used, page, 2)).interrupts, []);
  });
}

test("two interrupts are answered in one run", async () => {
  const page = await open();
  answerDialogs(page, true, false);
  await send(page, "approve two");
  await ended(page, "Done: a train to Beijing is booked; declined, so no hotel is booked.");
  assert.equal((await endedRuns(used, page, 2)).runs.length, 2);
});

test("a form asks for each member", async () => {
  const page = await open();
  const asked = answerDialogs(page, "Ada", "ada@example.com", "M");
  await send(page, "form");
  await ended(page, "Thank you, Ada! Your T-shirt in size M is set aside");
  assert.equal(asked.length, 3);
});

test("a form can be left", async () => {
  const page = await open();
  answerDialogs(page, "Ada", false);
  await send(page, "form");
  await ended(page, "All right, no T-shirt then.");
});

for (const [answer, says] of [[true, "It was confirmed."], [false, "It was left."]]) {
  test(`an interrupt without a schema asks the user, who says ${answer ? "yes" : "no"}`, async () => {
    const page = await open();
    const asked = answerDialogs(page, answer);
    await page.route("**/send-message", (route) =>
      route.continue({ url: route.request().url().replace("/send-message", "/agents/asker/send-message") }),
    );
    await send(page, "go");
    await ended(page, says);
    assert.deepEqual(asked, ["Go on?"]);
  });
}

test("a run that fails shows its error", async () => {
  const page = await open();
  await send(page, "fail");
  await page.getByText("demo_failure: The demo was asked to fail.").waitFor();
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
  assert.deepEqual(await lines(page), [
    "user: hello",
    "assistant: Hello! How can I help you?",
    "user: count to 20",
    `assistant: ${Array.from({ length: 20 }, (_, index) => index + 1).join(" ")}`,
  ]);
  assert.deepEqual(statuses(await endedRuns(used, page, 2)), ["finished", "finished"]);
});

for (const [text, says] of [
  ["approve", "sent to ada@example.com"],
  ["delete all temporary files", "Successfully deleted 15 temporary files."],
]) {
  test(`a question that is open when the page is loaded is asked: ${text}`, async () => {
    const threadId = randomUUID();
    const tools = [{ name: "confirmAction", description: "Asks", parameters: { type: "object" } }];
    await runOutside(used, threadId, text, { tools });
    const page = await open({ threadId, answers: [true] });
    await ended(page, says);
  });
}

test("an edited message starts a branch", async () => {
  const page = await open();
  await send(page, "count to 3");
  await ended(page, "1 2 3");
  await send(page, "hello");
  await ended(page, "Hello!");
  const asked = answerDialogs(page, false, "count to 4");
  for (const _ of ["dismissed", "answered"]) await button(page, "Edit").first().click();
  await ended(page, "1 2 3 4");
  assert.equal(asked.length, 2);
  assert.deepEqual(await lines(page), ["user: count to 4", "assistant: 1 2 3 4"]);
  const { messages, runs } = await endedRuns(used, page, 3);
  assert.equal(runs.length, 3, "a dismissed dialog starts no run");
  assert.deepEqual(messages.map(({ content }) => content), ["count to 4", "1 2 3 4"]);
});

test("a repeated message gets a new answer", async () => {
  const page = await open();
  await send(page, "hello");
  await ended(page, "Hello!");
  await send(page, "count to 3");
  await ended(page, "1 2 3");
  const before = await endedRuns(used, page, 2);
  await page.getByRole("button", { name: "Repeat" }).last().click();
  const after = await endedRuns(used, page, 3);
  assert.deepEqual(after.messages.map(({ content }) => content), before.messages.map(({ content }) => content));
  assert.notEqual(after.messages.at(-1).id, before.messages.at(-1).id);
  assert.equal((await lines(page)).length, 4);
});

test("threads are listed, opened, renamed and archived", async () => {
  const page = await open();
  const nav = page.getByRole("navigation");
  await send(page, "hello");
  await ended(page, "Hello!");
  answerDialogs(page, "Greetings");
  await nav.getByRole("button", { name: "Rename" }).click();
  await nav.getByRole("button", { name: "Greetings" }).waitFor();

  await nav.getByRole("button", { name: "New" }).click();
  await page.locator("li").waitFor({ state: "detached" });
  await send(page, "hello, list");
  await ended(page, "Hello!");
  await button(nav, "hello, list").waitFor();
  await nav.getByRole("button", { name: "Greetings" }).click();
  await ended(page, "Hello!");
  await nav.getByRole("button", { name: "Archive" }).click();
  await nav.getByRole("button", { name: "Greetings" }).waitFor({ state: "detached" });
  const { title, archived } = await storedThread(used, page);
  assert.deepEqual([title, archived], ["Greetings", true]);
});
