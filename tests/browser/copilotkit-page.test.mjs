// The parts of the page examples/web/copilotkit beside CopilotKit's chat: branches, files, tokens, errors. SHOTS names a folder for
// screenshots.

import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { after, test } from "node:test";

import { answerDialogs, endedRuns, shot, storedThread, useBrowser } from "./browser.mjs";
import { button, testFailure } from "./chat.mjs";
import { startModel } from "./model.mjs";

const model = await startModel((messages) => ({
  text: `Answer ${messages.filter(({ role }) => role === "user").length}`,
  usage: { prompt_tokens: 1200, completion_tokens: 34, total_tokens: 1234 },
}));
after(() => model.stop());

const used = useBrowser();
const counted = useBrowser({
  variables: {
    AGUI_AGENTS__COUNTED__KIND: "llm",
    AGUI_AGENTS__COUNTED__PROVIDER: "openai",
    AGUI_AGENTS__COUNTED__API: "chat",
    AGUI_AGENTS__COUNTED__MODEL: "m",
    AGUI_AGENTS__COUNTED__BASE_URL: model.url,
  },
});

const PHONE = { width: 390, height: 844 };
const open = (options) => used.open("copilotkit", options);
const field = (page) => page.getByTestId("copilot-chat-textarea");

async function send(page, text) {
  await field(page).fill(text);
  await field(page).press("Enter");
}

const users = (page) => page.getByTestId("copilot-user-message");
const assistants = (page) => page.getByTestId("copilot-assistant-message");
const shows = (page, text) => assistants(page).last().filter({ hasText: text }).waitFor();
/** Waits until the page knows that the run has ended. */
const idle = (page) => page.getByTestId("copilot-send-button").and(page.locator(":disabled")).waitFor();

/** A picture of noise, of about `side`² × 3 bytes, as a BMP. */
function picture(side) {
  const head = Buffer.alloc(54);
  head.write("BM");
  head.writeUInt32LE(54 + side * side * 3, 2);
  head.writeUInt32LE(54, 10);
  head.writeUInt32LE(40, 14);
  head.writeInt32LE(side, 18);
  head.writeInt32LE(side, 22);
  head.writeUInt16LE(1, 26);
  head.writeUInt16LE(24, 28);
  return Buffer.concat([head, randomBytes(side * side * 3)]);
}

testFailure({ used, open, send, shows });

test("an answer that failed can be tried again", async () => {
  const page = await open();
  const fail = (route) => {
    const { threadId, runId } = route.request().postDataJSON();
    const events = [{ type: "RUN_STARTED", threadId, runId }, { type: "RUN_ERROR", message: "The model is busy" }];
    return route.fulfill({ contentType: "text/event-stream", body: events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("") });
  };
  await page.route("**/run", fail, { times: 1 });
  await send(page, "hello");
  await page.getByRole("alert").filter({ hasText: "The model is busy" }).waitFor();
  await button(page, "Try again").click();
  await shows(page, "Hello!");
  assert.equal(await button(page, "Try again").count(), 0);
  assert.deepEqual((await storedThread(used, page)).messages.map(({ role }) => role), ["user", "assistant"]);
  used.problems.splice(0);
});

test("a page whose key is refused shows the server's reason", async () => {
  const page = await used.newPage();
  const refused = { error: { code: "invalid_key", message: "the key is not valid" } };
  const headers = { "access-control-allow-origin": "*", "access-control-allow-headers": "*" };
  await page.route(/:8080\/copilotkit/, (route) => route.fulfill({ status: 401, json: refused, headers }));
  await used.load(page, "copilotkit");
  await page.getByRole("alert").filter({ hasText: "the key is not valid" }).waitFor();
  used.problems.splice(0);
});

test("the arrows at a message open its other branches, and a reload shows the one that was opened", async () => {
  const page = await open();
  await send(page, "hello");
  await shows(page, "Hello!");
  await idle(page);
  await send(page, "count to 3");
  await shows(page, "1 2 3");
  await idle(page);
  answerDialogs(page, "count to 4", "count to 5");
  for (const last of ["1 2 3 4", "1 2 3 4 5"]) {
    await users(page).last().hover();
    await page.getByTestId("copilot-edit-button").last().click();
    await shows(page, last);
    await idle(page);
  }
  await page.getByText("3 of 3").waitFor();
  assert.ok(await button(page, "Next version").isDisabled());
  await shot(page, "page-branches");
  await button(page, "Previous version").click();
  await page.getByText("2 of 3").waitFor();
  await button(page, "Previous version").click();
  await page.getByText("1 of 3").waitFor();
  await users(page).last().filter({ hasText: "count to 3" }).waitFor();
  await page.reload();
  await page.getByText("1 of 3").waitFor();
  assert.deepEqual(await users(page).allInnerTexts(), ["hello", "count to 3"]);
  assert.deepEqual((await storedThread(used, page)).messages.map(({ content }) => content).at(-1), "1 2 3");
});

test("an edit of the first message, and another answer, are branches", async () => {
  const page = await open();
  await send(page, "count to 3");
  await shows(page, "1 2 3");
  await idle(page);
  answerDialogs(page, "count to 4");
  await users(page).first().hover();
  await page.getByTestId("copilot-edit-button").first().click();
  await shows(page, "1 2 3 4");
  await button(page, "Other version").click();
  await users(page).first().filter({ hasText: "count to 3" }).waitFor();
  await assistants(page).last().hover();
  await page.getByTestId("copilot-regenerate-button").last().click();
  await page.getByText("2 of 2").waitFor();
  await button(page, "Previous version").click();
  await page.getByText("1 of 2").waitFor();
});

test("files that are picked and dropped are uploaded, sent with a message, and shown after a reload", async () => {
  const page = await open();
  const bodies = [];
  page.on("request", (request) => request.url().endsWith("/run") && bodies.push(request.postDataBuffer().length));
  const files = ["one.bmp", "two.bmp"].map((name) => ({ name, mimeType: "image/bmp", buffer: picture(200) }));
  await page.locator("input[type=file]").setInputFiles(files);
  const uploaded = (count) => page.waitForFunction((n) => document.querySelectorAll("main img[src*='/files/']").length === n, count);
  await uploaded(2);
  const dropped = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["Name,Age\nAda,36\n"], "people.csv", { type: "text/csv" }));
    return transfer;
  });
  await field(page).dispatchEvent("drop", { dataTransfer: dropped });
  await page.getByText("people.csv").waitFor();
  await shot(page, "page-attached");
  await send(page, "hello");
  await shows(page, "Hello!");
  const { messages } = await endedRuns(used, page);
  const [text, ...parts] = messages[0].content;
  assert.deepEqual(text, { type: "text", text: "hello" });
  assert.deepEqual(parts.map(({ metadata }) => metadata.filename), ["one.bmp", "two.bmp", "people.csv"]);
  for (const { source } of parts) assert.ok(source.type === "url" && source.value.includes("/files/file_"), JSON.stringify(source));
  assert.ok(bodies[0] < 100_000, `${bodies[0]} bytes`);
  const drawn = () => page.waitForFunction(() => [...document.querySelectorAll("main img")].filter((image) => image.naturalWidth === 200).length === 2);
  await drawn();
  await page.reload();
  await drawn();
  await page.getByText("people.csv").waitFor();
  await shot(page, "page-files");
  await page.setViewportSize(PHONE);
  await shot(page, "page-files-390");
});

test("a file that the server refuses is named with the reason, and the others stay", async () => {
  const page = await open();
  await page.locator("input[type=file]").setInputFiles([
    { name: "empty.png", mimeType: "image/png", buffer: Buffer.alloc(0) },
    { name: "one.bmp", mimeType: "image/bmp", buffer: picture(20) },
  ]);
  await page.getByRole("alert").filter({ hasText: "empty.png: " }).waitFor();
  await page.locator("main img[src*='/files/']").waitFor();
  used.problems.splice(0); // The browser and CopilotKit write the refusal to the console.
});

test("the tokens of a run stand below its answer, also after a reload", async () => {
  const page = await counted.open("copilotkit");
  for (const answer of ["Answer 1", "Answer 2"]) {
    await send(page, "How many?");
    await shows(page, answer);
    await idle(page);
  }
  const tokens = page.getByText("1,200 tokens in, 34 out");
  await tokens.nth(1).waitFor();
  await page.reload();
  await tokens.nth(1).waitFor();
  assert.equal(await tokens.count(), 2);
  await shot(page, "page-tokens");
});

test("a file of the agent is shown", async () => {
  const page = await open();
  const content = { id: "file_1", name: "chart.bmp", mimeType: "image/bmp", bytes: 3000 };
  await page.route("**/run", async (route) => {
    const { threadId, runId } = route.request().postDataJSON();
    const { url } = await (await fetch(`${used.server.url}/files`, { method: "POST", body: picture(20), headers: { "content-type": "image/bmp" } })).json();
    const events = [
      { type: "RUN_STARTED", threadId, runId },
      { type: "ACTIVITY_SNAPSHOT", messageId: randomUUID(), activityType: "agui-server.file", content: { ...content, url } },
      { type: "RUN_FINISHED", threadId, runId },
    ];
    await route.fulfill({ contentType: "text/event-stream", body: events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("") });
  });
  await send(page, "Draw a chart");
  await page.getByRole("link", { name: "chart.bmp" }).waitFor();
  await page.waitForFunction(() => document.querySelector("main a img")?.naturalWidth === 20);
  used.problems.splice(0); // The server does not know this thread.
});

test("on a phone the list of conversations opens over the chat", async () => {
  const page = await open();
  await page.setViewportSize(PHONE);
  await send(page, "form");
  await page.getByLabel("Size", { exact: true }).waitFor();
  await shot(page, "page-form-390");
  const nav = page.getByRole("navigation");
  assert.ok(!(await nav.isVisible()));
  await button(page, "Conversations").click();
  await nav.waitFor();
  await shot(page, "page-list-390");
  await button(nav, "New").click();
  await nav.waitFor({ state: "hidden" });
  await page.getByText("in which size?").waitFor({ state: "detached" });
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.equal(width, PHONE.width);
});

test("a page in the colours of a dark system", async () => {
  const page = await open();
  await page.emulateMedia({ colorScheme: "dark" });
  for (const text of ["What's the weather like in Beijing today?", "approve"]) {
    await send(page, text);
    await assistants(page).last().waitFor();
    await (text === "approve" ? button(page, "Approve").waitFor() : idle(page));
  }
  await shot(page, "page-dark");
  const background = await page.locator("body").evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  assert.equal(background, "rgb(10, 10, 10)");
});
