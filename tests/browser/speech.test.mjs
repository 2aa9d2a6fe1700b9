// Microphones: CopilotKit's own, and that of the playground. Chromium's fake device beeps.

import assert from "node:assert/strict";
import { test } from "node:test";

import { startSpeech, withSpeech } from "../js/speech.mjs";
import { shot, useBrowser } from "./browser.mjs";
import { button } from "./chat.mjs";
import { AGENTS, field } from "./playground.mjs";

const service = await startSpeech();
const flags = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];
const used = useBrowser({ flags, variables: { ...AGENTS, ...withSpeech(service.url) } });

const SAID = /^en: \d+ bytes\.$/;
test("CopilotKit's microphone appears, and what is said becomes the text of the field", async () => {
  const page = await used.newPage();
  await page.addInitScript(() => {
    const { start } = MediaRecorder.prototype;
    MediaRecorder.prototype.start = function (...all) {
      this.addEventListener("start", () => (window.isRecording = true));
      start.apply(this, all);
    };
  });
  await used.load(page, "copilotkit");
  await page.getByTestId("copilot-start-transcribe-button").click();
  // Before that, the page throws the recording away.
  await page.waitForFunction(() => window.isRecording);
  await page.getByTestId("copilot-finish-transcribe-button").click();
  const text = page.getByTestId("copilot-chat-textarea");
  await page.waitForFunction(() => /^en: \d+ bytes\.$/.test(document.querySelector("[data-testid=copilot-chat-textarea]")?.value.trim()));
  assert.match((await text.inputValue()).trim(), SAID);
});

test("the playground's microphone adds what is said to the message, and says why there is no text", async () => {
  const page = await used.newPage();
  await page.goto(`${used.server.url}/playground`);
  await field(page).fill("I say:");
  const speak = async () => {
    await button(page, "Speak").click();
    await button(page, "Finish speaking").click();
  };
  await speak();
  await page.waitForFunction(() => /^I say: en: \d+ bytes\.$/.test(document.querySelector(".composer textarea").value));
  await shot(page, "speech");
  service.next = { status: 401, body: "no" };
  await speak();
  await page.getByRole("alert").getByText("No text: the transcription service refuses the server's key").waitFor();
  assert.match(await field(page).inputValue(), /^I say: en: \d+ bytes\.$/);
  assert.ok(used.problems.splice(0).every((problem) => problem.includes("502")));
});
