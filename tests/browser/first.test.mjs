// The first pages of the READMEs, examples/web/first and examples/web/copilotkit-first.

import assert from "node:assert/strict";
import { test } from "node:test";

import { answerDialogs, shot, useBrowser } from "./browser.mjs";
import { button } from "./chat.mjs";
import { photo } from "./pictures.mjs";

const used = useBrowser();

async function sendTo(page, text) {
  await page.getByRole("textbox").fill(text);
  await button(page, "Send").click();
}

/** Waits until the last line of the page is `text`. */
const ended = (page, text) => page.locator("li:last-child", { hasText: text }).waitFor();

test("a message is answered, with the calls of the server's tools", async () => {
  const page = await used.open("first");
  await button(page, "Send").click();
  await ended(page, "25°C.");
  assert.deepEqual(await page.getByRole("listitem").allInnerTexts(), [
    "user: What's the weather like in Beijing today?",
    'assistant: Let me check [get_weather {"city":"Beijing"}]',
    "tool: Sunny, 25°C",
    "assistant: Beijing is sunny today with a temperature of 25°C.",
  ]);
});

test("the stock client writes nothing to the console", async () => {
  const page = await used.newPage();
  const lines = [];
  page.on("console", (message) => void lines.push(message.text()));
  await used.load(page, "first");
  await button(page, "Send").click();
  await ended(page, "25°C.");
  await sendTo(page, "think about it");
  await ended(page, "this is my answer.");
  assert.deepEqual(lines.filter((line) => !line.includes("Download the React DevTools")), []);
});

for (const [answer, says] of [[true, "sent to ada@example.com"], [false, "declined, so it was not sent"]]) {
  test(`"approve" asks the user, who says ${answer ? "yes" : "no"}, and the next message is answered`, async () => {
    const page = await used.open("first");
    const asked = answerDialogs(page, answer);
    await sendTo(page, "approve");
    await ended(page, `The e-mail "Lunch": ${says}.`);
    assert.match(asked[0], /^Send the e-mail "Lunch" to ada@example\.com\? .*\[send_email \{"to":"ada@example\.com","subject":"Lunch","body":"At noon\?"\}\]$/);
    await sendTo(page, "hello");
    await ended(page, "Hello! How can I help you?");
  });
}

test("a form is left", async () => {
  const page = await used.open("first");
  await sendTo(page, "form");
  await ended(page, "All right, no T-shirt then.");
});

test("a run that fails shows its error", async () => {
  const page = await used.open("first");
  await sendTo(page, "fail");
  await page.getByRole("alert").filter({ hasText: "The demo was asked to fail." }).waitFor();
});

test("an unreachable server and refusals are shown, and the next message works", async () => {
  const page = await used.open("first");
  const headers = { "access-control-allow-origin": "*" };
  const refusals = [
    [(route) => route.abort("connectionrefused"), "Failed to fetch"],
    [(route) => route.fulfill({ status: 401, headers, body: "no credential" }), "401"],
    [(route) => route.fulfill({ status: 403, headers, body: "origin_not_allowed" }), "403"],
  ];
  for (const [refuse, shown] of refusals) {
    await page.route("**/send-message", refuse);
    await sendTo(page, "hello");
    await page.getByRole("alert").filter({ hasText: shown }).waitFor();
    await page.unroute("**/send-message");
  }
  // The browser and the client report them on the console, too.
  used.problems.splice(0);
  await sendTo(page, "hello");
  await ended(page, "Hello! How can I help you?");
  assert.equal(await page.getByRole("alert").innerText(), "");
});

test("a second submit does not cut the first answer, and the field is cleared", async () => {
  const page = await used.open("first");
  await sendTo(page, "count to 20");
  await ended(page, "1 2 3");
  assert.equal(await page.getByRole("textbox").inputValue(), "");
  await sendTo(page, "hello");
  await ended(page, "18 19 20");
  assert.equal(await page.getByRole("listitem").count(), 2);
});

test("an activity is shown as its content", async () => {
  const page = await used.open("first");
  await sendTo(page, "plan a trip");
  await ended(page, "The plan is done");
  const [activity] = (await page.getByRole("listitem").allInnerTexts()).filter((text) => text.startsWith("activity:"));
  assert.equal(activity, 'activity: {"goal":"a trip","done":2,"of":2}');
});

/** Opens the page, and waits until CopilotKit knows the agents: it loses a message that is sent before. */
async function openCopilot() {
  const connects = used.context.waitForEvent("request", (request) => request.url().endsWith("/connect"));
  const page = await used.open("copilotkit-first");
  await connects;
  return page;
}

async function sendToCopilot(page, text) {
  await page.getByTestId("copilot-chat-textarea").fill(text);
  await page.getByTestId("copilot-chat-textarea").press("Enter");
}

/** Waits until the assistant's last message has the text. */
const copilotEnded = (page, text) => page.getByTestId("copilot-assistant-message").last().filter({ hasText: text }).waitFor();

test("CopilotKit shows the calls of the server's tool, also after a reload", async () => {
  const page = await openCopilot();
  await sendToCopilot(page, "What's the weather like in Beijing today?");
  await copilotEnded(page, "Beijing is sunny today with a temperature of 25°C.");
  await page.getByText("Weather in Beijing: Sunny, 25°C").waitFor();
  await page.reload();
  await page.getByText("Weather in Beijing: Sunny, 25°C").waitFor();
  await copilotEnded(page, "Beijing is sunny today with a temperature of 25°C.");
});

test("CopilotKit: the agent calls the page's tool and continues with its result", async () => {
  const page = await openCopilot();
  await sendToCopilot(page, "search for report files locally");
  await copilotEnded(page, "Found 2 files: report-2025.pdf and report-2026.pdf");
});

for (const [name, says] of [["Approve", "sent to ada@example.com"], ["Decline", "declined, so it was not sent"]]) {
  test(`CopilotKit: "approve" asks the user, who presses ${name}`, async () => {
    const page = await openCopilot();
    await sendToCopilot(page, "approve");
    await button(page, name).click();
    await copilotEnded(page, `The e-mail "Lunch": ${says}.`);
  });
}

test("CopilotKit: a question has buttons and the arguments, and says what was answered while another is open", async () => {
  const page = await openCopilot();
  await sendToCopilot(page, "approve two");
  const questions = page.locator(".question");
  await button(page, "Approve").nth(1).waitFor();
  assert.match(await questions.first().innerText(), /Book a train to Beijing\? \{"to":"Beijing"\}/);
  const border = await button(page, "Approve").first().evaluate((node) => getComputedStyle(node).borderTopWidth);
  assert.equal(border, "1px");
  await button(page, "Approve").first().click();
  await questions.first().locator("strong", { hasText: "Approve" }).waitFor();
  assert.equal(await button(page, "Approve").count(), 1);
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/copilotkit-first.png` });
  await button(page, "Decline").click();
  await copilotEnded(page, "Done: a train to Beijing is booked; declined, so no hotel is booked.");
});

test("CopilotKit: a form can be declined only", async () => {
  const page = await openCopilot();
  await sendToCopilot(page, "form");
  await button(page, "Decline").click();
  await copilotEnded(page, "All right, no T-shirt then.");
  assert.equal(await button(page, "Approve").count(), 0);
});

test("a picture is uploaded and sent as its part, and a file that is refused shows why", async () => {
  const page = await used.open("first");
  await page.locator("input[type=file]").setInputFiles({ name: "beach.png", mimeType: "image/png", buffer: photo(1) });
  const posted = page.waitForRequest("**/send-message");
  await sendTo(page, "describe this");
  await ended(page, "I have no model to look at it with.");
  const [{ content }] = (await posted).postDataJSON().messages;
  assert.deepEqual(content.map(({ type, source }) => [type, source?.type]), [["text", undefined], ["image", "url"]]);
  await page.waitForFunction(() => document.querySelector("li img")?.naturalWidth > 1);
  assert.equal(await page.getByRole("listitem").first().innerText(), "user: describe this");
  assert.equal(await page.locator("input[type=file]").inputValue(), "");
  await shot(page, "first-with-a-picture");

  await page.locator("input[type=file]").setInputFiles({ name: "empty.png", mimeType: "image/png", buffer: Buffer.alloc(0) });
  await sendTo(page, "and this?");
  await page.getByRole("alert").filter({ hasText: "the file is empty" }).waitFor();
  used.problems.splice(0); // The browser reports the refusal on the console.
  await sendTo(page, "hello");
  await ended(page, "Hello! How can I help you?");
});
