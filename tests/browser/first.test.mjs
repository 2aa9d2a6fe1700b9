// The first pages of the READMEs, examples/web/first and examples/web/copilotkit-first.

import assert from "node:assert/strict";
import { test } from "node:test";

import { answerDialogs, useBrowser } from "./browser.mjs";
import { button } from "./chat.mjs";

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

for (const [answer, says] of [[true, "sent to ada@example.com"], [false, "declined, so it was not sent"]]) {
  test(`"approve" asks the user, who says ${answer ? "yes" : "no"}, and the next message is answered`, async () => {
    const page = await used.open("first", { answers: [answer] });
    await sendTo(page, "approve");
    await ended(page, `The e-mail "Lunch": ${says}.`);
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
  const asked = answerDialogs(page, true);
  const shown = page.waitForEvent("dialog");
  await sendTo(page, "fail");
  await shown;
  assert.deepEqual(asked, ["The demo was asked to fail."]);
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

test("CopilotKit: a form can be declined only", async () => {
  const page = await openCopilot();
  await sendToCopilot(page, "form");
  await button(page, "Decline").click();
  await copilotEnded(page, "All right, no T-shirt then.");
  assert.equal(await button(page, "Approve").count(), 0);
});
