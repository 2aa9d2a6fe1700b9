// Files in the playground: attached by the button, by a drop and by a paste; shown in messages.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, test } from "node:test";

import { endedThread, runOutside, shot } from "./browser.mjs";
import { button } from "./chat.mjs";
import { startModel } from "./model.mjs";
import { chart, photo } from "./pictures.mjs";
import { answerWith, ask, chat, field, send, shows, usePlayground } from "./playground.mjs";

const MAX_FILE_BYTES = 5_000_000;

const seen = [];
const model = await startModel((messages) => {
  seen.push(messages);
  return { text: "Here it is.", image: `data:image/png;base64,${chart().toString("base64")}` };
});
after(() => model.stop());

const { used, open, expectProblem } = usePlayground({
  AGUI_FILES__MAX_FILE_BYTES: String(MAX_FILE_BYTES),
  AGUI_AGENTS__MODEL__KIND: "llm",
  AGUI_AGENTS__MODEL__PROVIDER: "openai",
  AGUI_AGENTS__MODEL__API: "chat",
  AGUI_AGENTS__MODEL__MODEL: "m",
  AGUI_AGENTS__MODEL__BASE_URL: model.url,
});

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true };
const DESK = { viewport: { width: 1280, height: 800 } };

const picture = (name, number) => ({ name, mimeType: "image/png", buffer: photo(number) });
const text = (name, content = "hello\n".repeat(400)) => ({ name, mimeType: "text/plain", buffer: Buffer.from(content) });
const attach = (page, files) => page.locator(".composer input[type=file]").setInputFiles(files);
const waiting = (page) => page.locator(".attachments li");
const thumbnails = (page) => chat(page).locator(".thumbnail img");
const uploaded = (page, count) => page.waitForFunction((count) => document.querySelectorAll(".attachments small:not(.problem)").length === count, count);
const threadId = (page) => new URL(page.url()).hash.split("/")[2];
const loaded = (page, count) =>
  page.waitForFunction((count) => {
    const images = [...document.querySelectorAll(".messages .thumbnail img")];
    return images.length === count && images.every(({ naturalWidth }) => naturalWidth > 1);
  }, count);

/** Gives files to an element in a drop or a paste. */
const hand = (page, selector, type, files) =>
  page.evaluate(([selector, type, files]) => {
    const data = new DataTransfer();
    for (const { name, mimeType, base64 } of files) {
      data.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name, { type: mimeType }));
    }
    const settings = { bubbles: true, cancelable: true };
    const event = type === "paste" ? new ClipboardEvent(type, { ...settings, clipboardData: data }) : new DragEvent(type, { ...settings, dataTransfer: data });
    document.querySelector(selector).dispatchEvent(event);
  }, [selector, type, files.map(({ buffer, ...file }) => ({ ...file, base64: buffer.toString("base64") }))]);

test("the button offers the kinds of files that the model reads", async () => {
  const page = await open(DESK);
  const picker = page.locator(".composer input[type=file]");
  await button(page, "Send").waitFor();
  assert.equal(await picker.getAttribute("accept"), null, "the demo agent does not say what it reads");
  await page.getByRole("combobox", { name: "Agent" }).selectOption("model");
  await page.waitForFunction(() => document.querySelector(".composer input[type=file]").accept);
  assert.equal(await picker.getAttribute("accept"), "image/*,audio/*,application/pdf,text/*,application/json");
});

for (const [name, screen] of [["phone", PHONE], ["desk", DESK]]) {
  test(`files from the button, a drop and a paste are uploaded at once, and sent as their parts: ${name}`, async () => {
    const page = await open(screen);
    await button(page, "Send").waitFor();
    await attach(page, [picture("beach.png", 1), text("a report with quite a long name, übung ’1’ (final).txt")]);
    await hand(page, ".messages", "drop", [picture("dropped.png", 2), picture("not wanted.png", 3)]);
    await hand(page, ".composer textarea", "paste", [picture("pasted.png", 4)]);
    await uploaded(page, 5);
    await button(page, "Remove not wanted.png").click();
    await waiting(page).filter({ hasText: "not wanted.png" }).waitFor({ state: "detached" });
    assert.equal(await waiting(page).count(), 4);
    await shot(page, `files-before-${name}`);
    const posted = page.waitForRequest("**/send-message");
    await ask(page, "describe this", "I have no model to look at it with.");
    const { messages } = (await posted).postDataJSON();
    const [{ content: [said, ...parts] }] = messages;
    assert.equal(said.text, "describe this");
    assert.deepEqual(parts.map(({ type, source, metadata }) => [type, source.type, source.mimeType, metadata.filename]), [
      ["image", "url", "image/png", "beach.png"],
      ["document", "url", "text/plain", "a report with quite a long name, übung ’1’ (final).txt"],
      ["image", "url", "image/png", "dropped.png"],
      ["image", "url", "image/png", "pasted.png"],
    ]);
    assert.equal(await waiting(page).count(), 0);
    await loaded(page, 3);
    await shows(page, "2.4 KB");
    await shot(page, `files-sent-${name}`);
    const [question] = (await endedThread(used.server, threadId(page))).messages;
    assert.equal(question.content.length, 5);
    await page.reload();
    await loaded(page, 3);
    const report = await fetch(await chat(page).getByRole("link", { name: "final" }).getAttribute("href"));
    assert.equal(await report.text(), "hello\n".repeat(400));
    await thumbnails(page).first().click();
    await page.locator(".viewer[open] > img").waitFor();
    await shot(page, `files-viewer-${name}`);
    await page.keyboard.press("Escape");
    await page.locator(".viewer[open]").waitFor({ state: "detached" });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= screen.viewport.width, `the page is ${width} pixels wide`);
  });
}

test("an upload shows its progress, and a message waits for it", async () => {
  const page = await open();
  let release;
  const released = new Promise((done) => (release = done));
  await page.route("**/files", async (route) => (await released, route.continue()));
  await attach(page, [picture("slow.png", 1)]);
  await field(page).fill("describe this");
  await page.getByRole("progressbar", { name: "slow.png is uploaded" }).waitFor();
  assert.ok(await button(page, "Send").isDisabled());
  await field(page).press("Enter");
  release();
  await uploaded(page, 1);
  assert.equal(await page.getByRole("article").count(), 0);
  await button(page, "Send").click();
  await loaded(page, 1);
});

test("a removed file is not uploaded further, and ten files wait for each other", async () => {
  const page = await open();
  let running = 0;
  let most = 0;
  await page.route("**/files", async (route) => {
    most = Math.max(most, ++running);
    await new Promise((done) => setTimeout(done, 50));
    running--;
    await route.continue().catch(() => {});
  });
  await attach(page, Array.from({ length: 10 }, (_, number) => text(`${number}.txt`, `${number}`.repeat(2000))));
  await button(page, "Remove 0.txt").click();
  await button(page, "Remove 9.txt").click();
  await uploaded(page, 8);
  assert.equal(most, 2);
  assert.deepEqual(await page.locator(".upload-name").allInnerTexts(), ["1.txt", "2.txt", "3.txt", "4.txt", "5.txt", "6.txt", "7.txt", "8.txt"]);
});

for (const [name, screen] of [["phone", PHONE], ["desk", DESK]]) {
  test(`a file that is refused has a line that says why, and the others are sent: ${name}`, async () => {
    const page = await open(screen);
    await button(page, "Send").waitFor();
    const large = { name: "large.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc(MAX_FILE_BYTES + 1) };
    await attach(page, [large, { ...large, name: "empty.txt", buffer: Buffer.alloc(0) }, picture("beach.png", 1)]);
    await uploaded(page, 1);
    const alerts = page.locator(".attachments").getByRole("alert");
    await alerts.filter({ hasText: "the file has more than 5000000 bytes, which is [files] max_file_bytes: send a smaller one file_too_large" }).waitFor();
    await alerts.filter({ hasText: "the file is empty file_empty" }).waitFor();
    await shot(page, `files-refused-${name}`);
    await button(page, "Remove large.bin").click();
    await ask(page, "describe this", "I have no model to look at it with.");
    assert.equal(await waiting(page).count(), 0);
    assert.deepEqual((await endedThread(used.server, threadId(page))).messages[0].content.map(({ type }) => type), ["text", "image"]);
    expectProblem("413");
    expectProblem("400");
  });
}

test("an upload without an answer can be tried again", async () => {
  const page = await open();
  await page.route("**/files", (route) => route.abort("connectionrefused"), { times: 1 });
  await attach(page, [text("notes.txt")]);
  await page.locator(".attachments").getByRole("alert").filter({ hasText: "The server did not respond." }).waitFor();
  await button(page, "Try again").click();
  await uploaded(page, 1);
  expectProblem("ERR_CONNECTION_REFUSED");
});

test("a server that keeps no files gets the file in the message", async () => {
  const json = { error: { code: "no_files", message: "the store keeps no files" } };
  const page = await open({ prepare: (page) => page.route("**/files", (route) => route.fulfill({ status: 501, json })) });
  await button(page, "Send").waitFor();
  await attach(page, [text("notes.txt", "hello")]);
  await uploaded(page, 1);
  const posted = page.waitForRequest("**/send-message");
  await ask(page, "describe this", "I have no model to look at it with.");
  const [{ content }] = (await posted).postDataJSON().messages;
  assert.deepEqual(content[1], { type: "document", source: { type: "data", value: "aGVsbG8=", mimeType: "text/plain" }, metadata: { filename: "notes.txt" } });
  await shows(page, "5 B");
  expectProblem("501");
});

test("an edited message keeps its files, and a deleted file is named", async () => {
  const page = await open();
  await attach(page, [picture("beach.png", 1)]);
  await uploaded(page, 1);
  await ask(page, "describe this", "I have no model to look at it with.");
  const question = page.locator(".message.is-user");
  await question.hover();
  await button(question, "Edit").click();
  await question.locator("textarea").fill("hello");
  await button(question, "Save").click();
  await shows(page, "How can I help you?");
  await loaded(page, 1);
  const { messages } = await endedThread(used.server, threadId(page), 2);
  const url = new URL(messages[0].content[1].source.value);
  assert.equal((await fetch(`${url.origin}${url.pathname}?force`, { method: "DELETE" })).status, 204);
  // This page has the picture in its cache.
  const other = await open();
  await other.goto(page.url());
  await chat(other).locator(".attachment-name", { hasText: "beach.png" }).waitFor();
  assert.equal(await thumbnails(other).count(), 0);
  expectProblem("40");
});

/** Uploads a file, as an agent does. Returns the content of its activity. */
async function storedFile({ name, mimeType, buffer }) {
  const headers = { "content-type": mimeType, "content-disposition": `attachment; filename="${name}"` };
  const response = await fetch(`${used.server.url}/files`, { method: "POST", headers, body: buffer });
  const { part, createdAt, ...content } = await response.json();
  return content;
}

const NUMBERS = "1;2;3\n".repeat(400);

for (const [name, screen] of [["phone", PHONE], ["desk", DESK]]) {
  test(`a file that an agent hands over is shown, also from the stored thread: ${name}`, async () => {
    const files = await Promise.all([{ name: "chart.png", mimeType: "image/png", buffer: chart() }, text("numbers.csv", NUMBERS)].map(storedFile));
    const activities = files.map((content, index) => ({ messageId: `file-${index}`, activityType: "agui-server.file", content }));
    const problem = "your files would have too many bytes";
    activities.push({ messageId: "file-2", activityType: "agui-server.file", content: { name: "film.mp4", mimeType: "video/mp4", bytes: 7, problem } });
    const isShown = async (page) => {
      await loaded(page, 1);
      assert.match(await chat(page).locator(".attachment-name", { hasText: "film.mp4" }).innerText(), /film\.mp4\s+7 B\s+your files would have too many bytes/);
      await chat(page).locator(".attachment-name", { hasText: "numbers.csv" }).getByText("2.4 KB").waitFor();
      const href = await chat(page).getByRole("link", { name: "numbers.csv" }).first().getAttribute("href");
      assert.equal(await (await fetch(href)).text(), NUMBERS);
    };
    const threadId = randomUUID();
    await runOutside(used, threadId, "plan a trip");
    const live = await open(screen);
    await live.goto(`${used.server.url}/playground#/demo/${threadId}`);
    await shows(live, "The plan is done");
    await answerWith(live, (run) => [...activities.map((activity) => ({ type: "ACTIVITY_SNAPSHOT", ...activity })), { type: "RUN_FINISHED", ...run }]);
    await send(live, "draw a chart");
    await isShown(live);
    await shot(live, `files-of-agent-${name}`);

    const thread = await (await fetch(`${used.server.url}/threads/${threadId}/export`)).json();
    const [question, , answer] = thread.messages;
    // The files in the place of the activity.
    const messages = activities.map(({ messageId, ...activity }) => ({ ...activity, id: messageId, role: "activity" }));
    const stored = messages.map((message, index) => ({ ...thread.messages[1], parent: index + 1, message }));
    const body = JSON.stringify({ ...thread, head: 5, messages: [question, ...stored, { ...answer, parent: 4 }], runs: [] });
    const imported = await fetch(`${used.server.url}/threads/import?threadId=${threadId}-copy`, { method: "POST", headers: { "content-type": "application/json" }, body });
    assert.equal(imported.status, 201, await imported.text());
    const page = await open(screen);
    await page.goto(`${used.server.url}/playground#/demo/${threadId}-copy`);
    await isShown(page);
  });
}

test("a picture that a model makes is shown, also after a reload, and the model sees it again", async () => {
  const page = await open();
  await page.getByRole("combobox", { name: "Agent" }).selectOption("model");
  await ask(page, "draw a wave", "Here it is.");
  await loaded(page, 1);
  await page.reload();
  await loaded(page, 1);
  await send(page, "make it darker");
  await loaded(page, 2);
  const parts = seen.at(-1).flatMap(({ content }) => content);
  const image = parts.find(({ type }) => type === "image_url");
  assert.ok(image?.image_url.url.startsWith("data:image/"), JSON.stringify(parts).slice(0, 2000));
});
