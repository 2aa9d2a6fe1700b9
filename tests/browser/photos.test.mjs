// Ten photos of 4 MB in one thread: each is sent once, whatever the pages send again.

import assert from "node:assert/strict";
import { test } from "node:test";

import { answerDialogs, endedThread, shot, useBrowser } from "./browser.mjs";
import { button } from "./chat.mjs";
import { photo } from "./pictures.mjs";
import { AGENTS, chat, field, shows } from "./playground.mjs";

const PHOTOS = 10;
const MAX_BODY_BYTES = 100_000;

const used = useBrowser({ variables: AGENTS });

const file = (number) => ({ name: `photo-${number}.png`, mimeType: "image/png", buffer: photo(number) });

/** Returns the size of the newest request for a run that the page has sent. */
function bodies(page) {
  const sizes = [];
  page.on("request", (request) => {
    if (request.method() === "POST" && /send-message|\/run$/.test(new URL(request.url()).pathname)) sizes.push(request.postDataBuffer().length);
  });
  return sizes;
}

/** Waits until the page shows as many photos, in their size. */
const showsPhotos = (page, count) =>
  page.waitForFunction(
    (count) => [...document.images].filter(({ complete, naturalWidth }) => complete && naturalWidth === 600).length === count,
    count,
  );

/** Returns the URLs of a thread's photos, without their signatures. */
const stored = ({ messages }) =>
  messages.flatMap(({ content }) => (Array.isArray(content) ? content : [])).flatMap(({ source }) => source?.value.split("?")[0] ?? []);

test("in the playground, with an edit, a reload and another device", async () => {
  const page = await used.newPage();
  const sizes = bodies(page);
  await page.goto(`${used.server.url}/playground`);
  for (let number = 1; number <= PHOTOS; number++) {
    await page.locator(".composer input[type=file]").setInputFiles(file(number));
    await field(page).fill(`count to ${number + 1}`);
    await page.locator(".attachments small").waitFor();
    await field(page).press("Enter");
    await shows(page, `${number} ${number + 1}`);
    await button(page, "Stop").waitFor({ state: "detached" });
  }
  await showsPhotos(page, PHOTOS);
  assert.equal(sizes.length, PHOTOS);
  assert.ok(sizes.at(-1) <= MAX_BODY_BYTES, `${sizes} bytes`);
  const threadId = new URL(page.url()).hash.split("/")[2];
  const files = stored(await endedThread(used.server, threadId, PHOTOS));
  assert.equal(new Set(files).size, PHOTOS);

  const last = page.locator(".message.is-user").last();
  await last.hover();
  await button(last, "Edit").click();
  await last.locator("textarea").fill("hello");
  await button(last, "Save").click();
  await shows(page, "How can I help you?");
  assert.ok(sizes.at(-1) <= MAX_BODY_BYTES, `${sizes} bytes`);
  assert.deepEqual(stored(await endedThread(used.server, threadId, PHOTOS + 1)), files);
  await page.reload();
  await showsPhotos(page, PHOTOS);
  await shot(page, "photos");

  const device = await used.browser.newContext({ viewport: { width: 390, height: 844 } });
  try {
    const other = await used.newPage(device);
    await other.goto(`${used.server.url}/playground#/demo/${threadId}`);
    await showsPhotos(other, PHOTOS);
    await chat(other).getByText("How can I help you?").waitFor();
    await shot(other, "photos-phone");
  } finally {
    await device.close();
  }
});

test("in the CopilotKit page to copy, with an edit, a reload and another device", async () => {
  const page = await used.open("copilotkit");
  const sizes = bodies(page);
  const [textarea, answers] = ["copilot-chat-textarea", "copilot-assistant-message"].map((id) => page.getByTestId(id));
  const ended = async (text) => {
    await answers.last().filter({ hasText: text }).waitFor();
    await page.getByTestId("copilot-send-button").and(page.locator(":disabled")).waitFor();
  };
  for (let number = 1; number <= PHOTOS; number++) {
    await page.locator("input[type=file]").setInputFiles(file(number));
    await page.waitForFunction((count) => document.querySelectorAll("main img[src*='/files/']").length === count, number);
    await textarea.fill(`count to ${number + 1}`);
    await textarea.press("Enter");
    await ended(`${number} ${number + 1}`);
  }
  await showsPhotos(page, PHOTOS);
  assert.equal(sizes.length, PHOTOS);
  assert.ok(sizes.at(-1) <= MAX_BODY_BYTES, `${sizes} bytes`);
  const threadId = await page.evaluate(() => sessionStorage.thread);
  const files = stored(await endedThread(used.server, threadId, PHOTOS));
  assert.equal(new Set(files).size, PHOTOS);

  answerDialogs(page, "hello");
  await page.getByTestId("copilot-user-message").last().hover();
  await page.getByTestId("copilot-edit-button").last().click();
  await ended("How can I help you?");
  assert.ok(sizes.at(-1) <= MAX_BODY_BYTES, `${sizes} bytes`);
  assert.deepEqual(stored(await endedThread(used.server, threadId, PHOTOS + 1)), files);
  await page.reload();
  await showsPhotos(page, PHOTOS);
  await shot(page, "photos-copilotkit");

  const device = await used.browser.newContext({ viewport: { width: 390, height: 844 } });
  try {
    const other = await used.newPage(device);
    await other.addInitScript((thread) => (sessionStorage.thread = thread), threadId);
    await used.load(other, "copilotkit");
    await showsPhotos(other, PHOTOS);
    await other.getByText("How can I help you?").waitFor();
  } finally {
    await device.close();
  }
});
