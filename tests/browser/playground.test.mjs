// The playground of the server's binary in Chromium. A violation of the page's policy is an error in the console.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

import { binary, startServer } from "../js/server.mjs";
import { endedThread, runOutside, shot, statuses } from "./browser.mjs";
import { button } from "./chat.mjs";
import { AGENTS, answerWith, ask, chat, copied, events, field, message, send, shows, tab, threads, usePlayground } from "./playground.mjs";

const KEY = "open-sesame-1234";
const OTHER_KEY = "another-sesame-5678";
/** One red pixel. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

const { used, open, expectProblem } = usePlayground();

const threadId = (page) => new URL(page.url()).hash.split("/")[2];
const ended = (page, count) => endedThread(used.server, threadId(page), count);

/** Chooses an action of a thread in the list. */
async function act(page, title, action) {
  const item = threads(page).getByRole("listitem").filter({ hasText: title });
  await item.hover();
  await item.locator("summary").click();
  await item.getByRole("button", { name: action, exact: true }).click();
}

test("an answer is shown with its tool call, its events and its run", async () => {
  const page = await open();
  await ask(page, "what's the weather like in Beijing today?", "with a temperature of 25°C.");
  const call = chat(page).locator(".tool-call");
  assert.match(await call.innerText(), /get_weather[^]*"city": "Beijing"[^]*Sunny, 25°C/);
  const types = await page.locator(".event-type").allInnerTexts();
  assert.deepEqual(types.filter((type) => type.startsWith("RUN")), ["RUN_STARTED", "RUN_FINISHED"]);
  assert.ok(types.includes("TOOL_CALL_RESULT"), types.join());
  await tab(page, "Runs");
  const run = page.locator(".run");
  assert.match(await run.innerText(), /finished[^]*Duration\n[\d.]+ m?s\nFirst text\n[\d.]+ m?s\nFirst event\n[\d.]+ m?s\nEvents\n12/);
});

test("events and messages lead to each other", async () => {
  const page = await open();
  await ask(page, "what's the weather like in Beijing today?", "with a temperature of 25°C.");
  await events(page).filter({ hasText: "Beijing is sunny" }).getByRole("button").first().click();
  await page.locator("article.is-marked", { hasText: "Beijing is sunny" }).waitFor();
  assert.equal(await page.locator(".events li.is-marked").count(), 3, "start, content and end");

  await tab(page, "State");
  await chat(page).locator(".tool-call summary").getByRole("button").click();
  await page.locator(".tool-call.is-marked").waitFor();
  const marked = await page.locator(".events li.is-marked .event-type").allInnerTexts();
  assert.deepEqual(marked, ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]);

  await page.getByLabel("Filter events").fill("tool_call_args");
  await page.waitForFunction(() => document.querySelectorAll(".events .event").length === 1);
});

test("the state is a tree, with what each event changed", async () => {
  const page = await open();
  await ask(page, "plan a trip", "both of its steps.");
  await tab(page, "State");
  const panel = page.getByRole("tabpanel");
  assert.match(await panel.innerText(), /goal: "a trip"[^]*title: "Decide"\nstatus: "done"\nfinished: true/);
  assert.deepEqual(await panel.locator(".tree-leaf.is-changed").allInnerTexts(), ['status: "done"', "finished: true"]);
  const changes = await panel.getByRole("list", { name: "Changed" }).allInnerTexts();
  assert.deepEqual(changes.slice(0, 2), ['replace /steps/1/status = "done"\nadd /finished = true', 'replace /steps/1/status = "running"']);
  assert.match(changes.at(-1), /^add \/goal = "a trip"\nadd \/steps = /, "the snapshot, compared with the empty state");
});

test("reasoning is shown apart from the answer", async () => {
  const page = await open();
  await ask(page, "think about tea", "this is my answer.");
  const reasoning = page.locator("details.reasoning");
  assert.match(await reasoning.innerText(), /The question is: tea\./);
  await reasoning.locator("summary").click();
  assert.equal(await reasoning.evaluate(({ open }) => open), false);
});

test("the result of a tool with a page is shown as text, also one with parts that are none", async () => {
  const folder = await mkdtemp(join(tmpdir(), "agui-page-"));
  const script = join(folder, "page.toml");
  const content = '{ result = { content = [{ type = "text", text = "Sunny in Oslo" }, "no part"] }, resourceUri = "ui://weather" }';
  await writeFile(script, `[[answer]]\nplay = [{ activity = "mcp-apps", content = ${content} }, { text = "There it is." }]\n`);
  const agent = { AGUI_AGENTS__DEMO__KIND: "script", AGUI_AGENTS__DEMO__SCRIPT: script };
  const server = await startServer({ variables: { AGUI_DEFAULT_AGENT: "demo", ...agent } });
  try {
    const page = await open({ url: server.url });
    await ask(page, "weather", "There it is.");
    await shows(page, "Sunny in Oslo");
    await shows(page, "The tool has the page ui://weather, which the playground does not run.");
    await page.close(); // it would report that the server is gone
  } finally {
    await server.stop();
    await rm(folder, { recursive: true });
  }
});

test("Markdown is rendered, HTML stays text, and nothing is loaded from elsewhere", async () => {
  const page = await open();
  const requests = [];
  page.on("request", (request) => requests.push(request.url()));
  await page.getByRole("combobox", { name: "Agent" }).selectOption("echo");
  const text = [
    "# Title", "Some **bold** and `code` and *soft*.", "- one\n  - two", "1. first", "```js\nlet a = 1 < 2;\n```",
    "| a | b |\n|---|---|\n| 1 | 2 |", "> quoted", "<img src=x onerror=alert(1)><script>alert(1)</script>",
    "[good](https://example.com/a_(b)) [bad](javascript:alert(1)) ![picture](https://example.com/x.png)",
  ].join("\n\n");
  await field(page).fill(text);
  await button(page, "Send").click();
  const answer = page.locator(".message.is-assistant .markdown");
  await answer.getByText("quoted").waitFor();
  await button(page, "Stop").waitFor({ state: "detached" });
  const found = await answer.evaluate((node) => ({
    bold: node.querySelector("strong").textContent,
    nested: node.querySelector("ul ul li").textContent,
    code: node.querySelector("pre code").textContent,
    cells: [...node.querySelectorAll("td")].map((cell) => cell.textContent),
    links: [...node.querySelectorAll("a")].map((link) => link.getAttribute("href")),
    foreign: node.querySelectorAll("img, script, iframe").length,
    quote: node.querySelector("blockquote").textContent,
  }));
  assert.deepEqual(found, {
    bold: "bold",
    nested: "two",
    code: "let a = 1 < 2;",
    cells: ["1", "2"],
    links: ["https://example.com/a_(b)", "https://example.com/x.png"],
    foreign: 0,
    quote: "quoted",
  });
  assert.match(await answer.innerText(), /<img src=x onerror=alert\(1\)>/);
  const foreign = requests.filter((url) => !url.startsWith(used.server.url));
  assert.deepEqual(foreign, []);
});

test("an image and a file are sent and shown, also after a reload", async () => {
  const page = await open();
  await page.locator(".composer input[type=file]").setInputFiles([
    { name: "red.png", mimeType: "image/png", buffer: Buffer.from(PNG, "base64") },
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("hello") },
  ]);
  // A message waits for its files.
  await page.waitForFunction(() => document.querySelectorAll(".attachments small:not(.problem)").length === 2);
  await ask(page, "describe this", "I have no model to look at it with.");
  const isShown = () => page.waitForFunction(() => document.querySelector(".message img.attachment")?.naturalWidth === 1);
  await isShown();
  const [question] = (await ended(page)).messages;
  assert.deepEqual(question.content.map(({ type }) => type), ["text", "image", "document"]);
  await page.reload();
  await isShown();
  await shows(page, "notes.txt");
});

test("Stop and Escape end the run on the server", async () => {
  for (const stop of [(page) => button(page, "Stop").click(), (page) => page.keyboard.press("Escape")]) {
    const page = await open();
    await send(page, "count to 3000");
    await shows(page, "1 2 3");
    await stop(page);
    assert.deepEqual(statuses(await ended(page)), ["cancelled"]);
    await button(page, "Send").waitFor();
  }
});

test("an error of the run is shown", async () => {
  const page = await open();
  await send(page, "fail");
  await chat(page).getByRole("alert").waitFor();
  await tab(page, "Runs");
  await page.locator(".run .badge.is-failed").waitFor();
});

test("a tool call is approved with changed arguments, approved as it is, or rejected", async () => {
  const page = await open();
  await send(page, "delete inactive users");
  const args = page.getByLabel("Arguments");
  const asked = JSON.parse(await args.inputValue());
  await args.fill("{");
  await button(page, "Approve").click();
  await page.getByText("This is not valid JSON").waitFor();
  await args.fill(JSON.stringify({ ...asked, limit: 7 }));
  await button(page, "Approve").click();
  await button(page, "Approve").waitFor({ state: "detached" });
  const { messages } = await ended(page, 2);
  assert.match(messages.at(-1).content, /on at most 7 rows/);

  await ask(page, "approve", "Send the e-mail");
  await button(page, "Reject").click();
  await shows(page, "declined, so it was not sent.");
  await ask(page, "approve", "Send the e-mail");
  await button(page, "Approve").click();
  await shows(page, "sent to ada@example.com.");
  assert.deepEqual((await ended(page, 6)).interrupts, []);
});

test("two questions are answered in one run, after both have an answer", async () => {
  const page = await open();
  await send(page, "approve two");
  await button(page, "Approve").nth(1).waitFor();
  await button(page, "Approve").first().evaluate((node) => (node.click(), node.click()));
  await button(page, "Reject").nth(1).waitFor({ state: "detached" });
  await button(page, "Reject").click();
  await shows(page, "a train to Beijing is booked; declined, so no hotel is booked.");
  assert.equal((await ended(page, 2)).runs.length, 2);
});

test("a question has a form for its schema, which survives a reload", async () => {
  const page = await open();
  await ask(page, "form", "in which size?");
  await page.reload();
  await page.getByRole("textbox", { name: "Name" }).fill("Ada");
  await page.getByLabel("E-mail").fill("ada@example.com");
  await page.getByRole("combobox", { name: "Size" }).selectOption("M");
  await button(page, "Answer").click();
  await button(page, "Answer").waitFor({ state: "detached" });
  const thread = await ended(page, 2);
  assert.deepEqual([statuses(thread), thread.interrupts], [["finished", "interrupted"], []]);
  // The server has stored the answer before the page shows it.
  await shows(page, "Ada");
});

test("an answer that the server refuses is asked for again as it was filled in, with the reason at its field", async () => {
  const page = await open();
  await ask(page, "form", "in which size?");
  await page.getByRole("textbox", { name: "Name" }).fill("Ada");
  await page.getByLabel("E-mail").fill("ada@example.com");
  const size = page.getByRole("combobox", { name: "Size" });
  await size.selectOption("M");
  // The page itself would not send this size.
  const change = (route) => route.continue({ postData: route.request().postData().replace('"size":"M"', '"size":"XXL"') });
  await page.route("**/send-message", change, { times: 1 });
  // The reason is never a second note, not even until the run has ended.
  await page.evaluate(() => {
    const look = () => (window.wasNoted ||= document.querySelector("[role=log]").innerText.includes("does not match its schema"));
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
  });
  await button(page, "Answer").click();
  await page.locator(".field", { has: size }).getByRole("alert").filter({ hasText: 'is not one of "S", "M" or "L"' }).waitFor();
  assert.equal(await page.getByLabel("E-mail").inputValue(), "ada@example.com");
  assert.equal(await size.getAttribute("aria-invalid"), "true");
  await shot(page, "playground-refused");
  assert.equal(await page.evaluate(() => window.wasNoted), false);
  await size.selectOption("L");
  await button(page, "Answer").click();
  await shows(page, "Your T-shirt in size L is set aside");
});

test("an edited message and another answer are branches to return to", async () => {
  const page = await open();
  await ask(page, "hello", "How can I help you?");
  await ask(page, "think about tea", "this is my answer.");
  const question = message(page, "think about tea");
  await question.hover();
  await question.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Edit" }).fill("think about coffee");
  await button(page, "Save").click();
  await shows(page, "The question is: coffee.");
  assert.equal(await chat(page).getByText("tea").count(), 0);
  await page.getByLabel("Version 2 of 2").or(page.getByLabel("2 of 2")).first().waitFor();
  await button(page, "Previous version").first().click();
  await shows(page, "The question is: tea.");

  await button(page, "Regenerate").click();
  await message(page, "this is my answer.").waitFor();
  await button(page, "Stop").waitFor({ state: "detached" });
  assert.equal((await ended(page, 4)).runs.length, 4);
  await page.locator(".branches").nth(1).waitFor();
});

test("the first message can be edited, and both versions can be shown", async () => {
  const page = await open();
  await ask(page, "hello", "How can I help you?");
  const first = page.locator(".message.is-user");
  await first.hover();
  await first.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Edit" }).fill("think about tea");
  await button(page, "Save").click();
  await shows(page, "this is my answer.");
  await button(page, "Show the other version").click();
  await shows(page, "How can I help you?");
  assert.equal(await chat(page).getByText("this is my answer.").count(), 0);
});

test("threads are found, renamed, archived and deleted", async () => {
  const page = await open();
  await ask(page, "hello to the zebra", "How can I help you?");
  await button(page, "New thread").click();
  await ask(page, "hello to the giraffe", "How can I help you?");
  await page.getByLabel("Search threads").fill("zebra");
  await page.waitForFunction(() => document.querySelectorAll(".thread").length === 1);
  await act(page, "zebra", "Rename");
  const title = page.getByRole("textbox", { name: "Title" });
  await title.fill("Striped zebra");
  await title.press("Enter");
  await threads(page).getByText("Striped zebra").click();
  await page.locator(".message.is-user", { hasText: "hello to the zebra" }).waitFor();

  await act(page, "Striped zebra", "Archive");
  await threads(page).getByText("No threads").waitFor();
  await page.getByLabel("Archived").check();
  await act(page, "Striped zebra", "Delete");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await threads(page).getByText("No threads").waitFor();
  await page.getByLabel("Archived").uncheck();
  await page.getByLabel("Search threads").fill("");
  await threads(page).getByText("giraffe").waitFor();
});

test("the list of threads shows what other clients change", async () => {
  let following;
  const isFollowing = (response) => response.url().endsWith("/threads/events");
  const page = await open({ prepare: (page) => void (following = page.waitForResponse(isFollowing)) });
  const url = (id) => `${used.server.url}/threads/${id}`;
  const patch = (id, change) => fetch(url(id), { method: "PATCH", headers: { "content-type": "application/json" }, body: JSON.stringify(change) });
  const listed = (text) => page.waitForFunction((title) => document.querySelector(".thread-title")?.textContent === title, text);
  await following;
  await runOutside(used, "outside-1", "hello from elsewhere");
  await listed("hello from elsewhere");
  await runOutside(used, "outside-2", "hello again");
  await listed("hello again");
  await patch("outside-2", { title: "Named elsewhere" });
  await listed("Named elsewhere");
  await patch("outside-2", { archived: true });
  await listed("hello from elsewhere");
  await patch("outside-2", { archived: false });
  await listed("Named elsewhere");
  await fetch(url("outside-2"), { method: "DELETE" });
  await listed("hello from elsewhere");
});

/** Answers requests when the returned function is called. */
async function answerLater(page, url, answer) {
  let release;
  const released = new Promise((done) => (release = done));
  await page.route(url, async (route) => {
    await released;
    await route.fulfill(answer);
  });
  return release;
}

test("a change that arrives while the list is read is in the list", async () => {
  const page = await open();
  await ask(page, "hello before the read", "How can I help you?");
  const release = await answerLater(page, /\/threads\?/, { json: { threads: [] } });
  const titles = (...wanted) =>
    page.waitForFunction((wanted) => JSON.stringify([...document.querySelectorAll(".thread-title")].map((node) => node.textContent)) === wanted, JSON.stringify(wanted));
  const reading = page.waitForRequest(/\/threads\?/);
  await page.getByLabel("Search threads").fill(" ");
  await reading;
  await runOutside(used, "during-a-read", "hello during the read");
  await threads(page).getByText("hello during the read").waitFor();
  release();
  await titles("hello during the read");
});

test("a search that fails after a later one is not reported", async () => {
  const page = await open();
  await ask(page, "hello to the okapi", "How can I help you?");
  const failure = { status: 500, json: { error: { code: "internal_error", message: "late" } } };
  const release = await answerLater(page, /\/threads\?q=slow/, failure);
  const [slow] = await Promise.all([page.waitForRequest(/q=slow/), page.getByLabel("Search threads").fill("slow")]);
  await page.getByLabel("Search threads").fill("okapi");
  await page.waitForFunction(() => document.querySelectorAll(".thread").length === 1);
  release();
  await (await slow.response()).finished();
  // The page shows what has changed at most once in a frame, so this text comes with or after the error.
  await page.getByLabel("Search threads").fill("no such animal");
  await threads(page).getByText("No threads").waitFor();
  assert.equal(await chat(page).getByRole("alert").count(), 0);
  expectProblem("500 (Internal Server Error)");
});

test("changes that arrive in pieces are shown, and a lost connection is opened again", async () => {
  const page = await open({
    prepare: (page) => page.addInitScript(() => {
      const { fetch } = window;
      window.connections = 0;
      window.fetch = async (url, init) => {
        if (!String(url).endsWith("/threads/events")) return fetch(url, init);
        window.connections++;
        const thread = { threadId: "pieces", title: "分成几块", agent: "demo", updatedAt: new Date().toISOString() };
        const change = `data: ${JSON.stringify({ type: "created", threadId: "pieces", thread })}\n\n`;
        const start = (controller) => {
          for (const byte of new TextEncoder().encode(change)) controller.enqueue(Uint8Array.of(byte));
          controller.close();
        };
        return new Response(new ReadableStream({ start }), { headers: { "content-type": "text/event-stream" } });
      };
    }),
  });
  await threads(page).getByText("分成几块").waitFor();
  const reading = page.waitForRequest(/\/threads\?/);
  await page.waitForFunction(() => window.connections === 2);
  await reading;
});

test("a page that is hidden does not follow the threads until it is visible again", async () => {
  const isFollowing = (request) => request.url().endsWith("/threads/events");
  let following;
  const page = await open({ prepare: (page) => void (following = page.waitForRequest(isFollowing)) });
  await following;
  const setHidden = (hidden) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await Promise.all([page.waitForEvent("requestfailed", isFollowing), setHidden(true)]);
  await runOutside(used, "while-hidden", "hello while hidden");
  await Promise.all([page.waitForRequest(isFollowing), setHidden(false)]);
  await threads(page).getByText("hello while hidden").waitFor();
});

test("a thread that cannot be deleted stays open, with the error", async () => {
  const page = await open();
  await ask(page, "hello to the badger", "How can I help you?");
  const refuse = (route) => route.fulfill({ status: 503, json: { error: { code: "store_unavailable", message: "The store is busy" } } });
  await page.route(/\/threads\/[\w-]+$/, (route) => (route.request().method() === "DELETE" ? refuse(route) : route.continue()));
  await act(page, "hello to the badger", "Delete");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await chat(page).getByRole("alert").getByText("The store is busy").waitFor();
  await shows(page, "How can I help you?");
  expectProblem("503 (Service Unavailable)");
});

test("an address that cannot be decoded opens a new thread", async () => {
  const page = await open();
  await ask(page, "hello", "How can I help you?");
  await page.evaluate(() => (location.hash = "#/demo/%"));
  await chat(page).getByText("How can I help you?").waitFor({ state: "detached" });
  await ask(page, "hello", "How can I help you?");
  await page.goto("about:blank");
  await page.goto(`${used.server.url}/playground#/demo/%`);
  await ask(page, "hello", "How can I help you?");
});

test("a thread is exported, and imported as another thread", async () => {
  const page = await open();
  await ask(page, "hello to the walrus", "How can I help you?");
  const downloaded = page.waitForEvent("download");
  await act(page, "walrus", "Export");
  const path = await (await downloaded).path();
  const content = JSON.parse(await readFile(path, "utf8"));
  assert.equal(content.messages.length, 2);
  const original = threadId(page);
  const file = { name: "thread.json", mimeType: "application/json", buffer: await readFile(path) };
  await threads(page).getByLabel("Import a thread").setInputFiles(file);
  await page.waitForFunction((id) => !location.hash.includes(id), original);
  await shows(page, "How can I help you?");
  assert.equal((await ended(page, 1)).messages.length, 2);
  expectProblem("409 (Conflict)");
});

test("a reloaded page follows its run, stops it, and reads the events of earlier runs", async () => {
  const page = await open();
  await ask(page, "hello", "How can I help you?");
  await send(page, "count to 3000");
  await shows(page, "1 2 3");
  await page.reload();
  await shows(page, "How can I help you?");
  await shows(page, "1 2 3 4");
  await button(page, "Stop").click();
  assert.deepEqual(statuses(await ended(page, 2)), ["cancelled", "finished"]);
  await button(page, "Send").waitFor();
  await tab(page, "Runs");
  await page.locator(".run").nth(1).getByRole("button", { name: "Load events" }).click();
  await tab(page, "Events");
  await events(page).filter({ hasText: "How can I help you?" }).first().waitFor();
});

test("a message that is sent before a slow server has described itself starts a detached run", async () => {
  const page = await open();
  await page.route(/\/threads\?|\/capabilities/, async (route) => {
    await new Promise((done) => setTimeout(done, 500));
    await route.continue();
  });
  await page.reload();
  const sent = page.waitForRequest(/send-message/);
  await ask(page, "hello", "How can I help you?");
  assert.equal((await sent).postDataJSON().forwardedProps.onDisconnect, "continue");
});

test("tools of the page answer by script, or ask", async () => {
  const page = await open();
  await tab(page, "Tools");
  await button(page, "Add the examples").click();
  await ask(page, "search for report files locally", "Found 2 files: report-2025.pdf and report-2026.pdf");
  await send(page, "delete all temporary files");
  await page.getByText("The agent calls confirmAction").waitFor();
  await page.getByLabel("Result", { exact: true }).fill("no");
  await button(page, "Send the result").click();
  await shows(page, "All right, nothing was deleted.");

  await button(page, "Edit search_local_files").click();
  await page.getByLabel("Parameters (JSON Schema)").fill("{");
  await button(page, "Save").click();
  await page.getByRole("alert").getByText("This is not valid JSON").waitFor();
  await page.getByLabel("Parameters (JSON Schema)").fill("{}");
  await page.getByLabel("Answer", { exact: true }).last().fill("[]");
  await button(page, "Save").click();
  await ask(page, "search for report files locally", "Found no files.");
  await page.reload();
  await tab(page, "Tools");
  await button(page, "Delete confirmAction").click();
  await page.locator(".tool").nth(1).waitFor({ state: "detached" });
  await page.locator(".tool", { hasText: "search_local_files" }).waitFor();
});

test("a run is copied as a curl command that works", async () => {
  const page = await open();
  await ask(page, "hello, it's me", "How can I help you?");
  await tab(page, "Runs");
  const command = await copied(page, button(page, "Copy as curl"));
  const { stdout } = await promisify(execFile)("sh", ["-c", `${command} -s`]);
  assert.match(stdout, /RUN_STARTED[^]*RUN_FINISHED/);
});

/** Saves the newest run of the page, the one with the number `count`, into a folder. Returns the file's path. */
async function saveRun(page, folder, count) {
  await tab(page, "Runs");
  await page.locator(".run").nth(count - 1).waitFor();
  const downloaded = page.waitForEvent("download");
  await button(page, "Save as a recording").first().click();
  const download = await downloaded;
  const path = join(folder, download.suggestedFilename());
  await download.saveAs(path);
  return path;
}

const openRecording = (page, file) => threads(page).getByLabel("Open a recording").setInputFiles(file);
const recordingBar = (page) => page.getByRole("group", { name: "Recording" });
/** A recording with the events of a run and the times at which they come. */
const recordingOf = (...events) => {
  const request = { threadId: "t", runId: "r", messages: [{ id: "q", role: "user", content: "Hello" }], state: { a: 1 } };
  const lines = [{ recording: 1, agent: "clerk", startedAt: 1795432485996, request }, ...events.map(([ms, event]) => ({ ms, event }))];
  return lines.map((line) => JSON.stringify(line)).join("\n");
};
const fileOf = (text, name = "run.jsonl") => ({ name, mimeType: "", buffer: Buffer.from(text) });
/** Drops a file with a content, which is repeated, on the chat. */
const drop = (page, name, content, count = 1) =>
  page.evaluate(([name, content, count]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([content.repeat(count)], name));
    document.querySelector(".messages").dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
  }, [name, content, count]);
const STARTED = { type: "RUN_STARTED", threadId: "t", runId: "r" };
const FINISHED = { type: "RUN_FINISHED", threadId: "t", runId: "r", outcome: { type: "success" } };
const says = (delta) => ({ type: "TEXT_MESSAGE_CHUNK", messageId: "m", role: "assistant", delta });

test("saved runs are recordings that `agui-server test` and a replay agent take", async () => {
  const folder = await mkdtemp(join(tmpdir(), "playground-"));
  let server;
  try {
    const page = await open();
    await ask(page, "what's the weather like in Beijing today?", "with a temperature of 25°C.");
    await saveRun(page, folder, 1);
    await ask(page, "approve", "Send the e-mail");
    await saveRun(page, folder, 2);
    await button(page, "Approve").click();
    await shows(page, "sent to ada@example.com.");
    await button(page, "Stop").waitFor({ state: "detached" });
    await saveRun(page, folder, 3);
    await ask(page, "plan a trip", "both of its steps.");
    const path = await saveRun(page, folder, 4);

    const [head, ...lines] = (await readFile(path, "utf8")).trim().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual([head.recording, head.agent, head.request.threadId], [1, "demo", threadId(page)]);
    assert.ok(lines.every(({ ms }, index) => Number.isInteger(ms) && ms >= (lines[index - 1]?.ms ?? 0)), JSON.stringify(lines));
    assert.equal(lines.at(-1).end.outcome, "finished");

    const { stdout } = await promisify(execFile)(binary(), ["test", folder, "--against", used.server.url]);
    assert.match(stdout, /4 passed, 0 failed, 0 skipped/);

    const config = join(folder, "replay.toml");
    await writeFile(config, 'default_agent = "recorded"\n[agents.recorded]\nkind = "replay"\ndir = "."\npace = 0.0\n');
    server = await startServer({ config });
    const other = await open({ url: server.url });
    await ask(other, "what's the weather like in Beijing today?", "with a temperature of 25°C.");
    await ask(other, "approve", "Send the e-mail");
    await button(other, "Approve").click();
    await shows(other, "sent to ada@example.com.");
    await ask(other, "plan a trip", "both of its steps.");
    // A server that stops breaks the streams of open pages.
    await other.close();
  } finally {
    await server?.stop();
    await rm(folder, { recursive: true });
  }
});

test("after a reload, the page saves detached runs as the server has stored them", async () => {
  const folder = await mkdtemp(join(tmpdir(), "playground-"));
  try {
    const page = await open();
    await ask(page, "what's the weather like in Beijing today?", "with a temperature of 25°C.");
    await ask(page, "approve", "Send the e-mail");
    await button(page, "Approve").click();
    await shows(page, "sent to ada@example.com.");
    await button(page, "Stop").waitFor({ state: "detached" });
    await page.reload();
    await shows(page, "sent to ada@example.com.");
    await tab(page, "Runs");
    await page.locator(".run").nth(2).waitFor();
    for (let at = 0; at < 3; at++) {
      const downloaded = page.waitForEvent("download");
      await button(page, "Save as a recording").nth(at).click();
      const download = await downloaded;
      assert.match(download.suggestedFilename(), /^playground-\d{8}T\d{6}\.\d{3}Z-[\w-]+\.jsonl$/);
      await download.saveAs(join(folder, download.suggestedFilename()));
    }
    const { stdout } = await promisify(execFile)(binary(), ["test", folder, "--against", used.server.url]);
    assert.match(stdout, /3 passed, 0 failed, 0 skipped/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a recording is shown like a run, played at its pace or at once, and nothing is sent", async () => {
  const page = await open();
  await ask(page, "hello", "How can I help you?");
  const requests = [];
  page.on("request", (request) => request.method() !== "GET" && requests.push(request.url()));
  const step = { type: "STATE_DELTA", delta: [{ op: "add", path: "/b", value: 2 }] };
  const text = recordingOf([0, STARTED], [20, says("I am ")], [1500, step], [3_600_000, says("recorded.")], [3_600_001, FINISHED]);
  await openRecording(page, fileOf(text));
  await shows(page, "I am recorded.");
  await shows(page, "Hello");
  assert.equal(await chat(page).getByText("How can I help you?").count(), 0);
  assert.match(await recordingBar(page).innerText(), /run\.jsonl\s*clerk · /);
  assert.deepEqual(await page.locator(".event-time").allInnerTexts(), ["0 ms", "20 ms", "1.50 s", "3600.0 s", "3600.0 s"]);
  for (const name of ["Send", "Edit", "Regenerate"]) assert.equal(await button(page, name).count(), 0, name);
  await tab(page, "State");
  await page.getByRole("tabpanel").getByText("b: 2").waitFor();
  await tab(page, "Runs");
  assert.match(await page.locator(".run").innerText(), /finished[^]*Duration\n3600\.0 s\nFirst text\n20 ms\nFirst event\n0 ms\nEvents\n5/);
  assert.equal(await page.getByRole("tab", { name: "Tools" }).count(), 0);

  const beginning = chat(page).getByText("I am", { exact: true });
  await button(page, "Play").click();
  await beginning.waitFor();
  await button(page, "Show all").click();
  await shows(page, "I am recorded.");
  await button(page, "Play").click();
  await beginning.waitFor();
  await page.keyboard.press("Escape");
  await shows(page, "I am recorded.");

  await page.goBack();
  await shows(page, "How can I help you?");
  await recordingBar(page).waitFor({ state: "detached" });
  assert.deepEqual(requests.filter((url) => !url.endsWith("/connect")), []);
});

test("the server's recordings are shown with all of their events", async () => {
  const folder = await mkdtemp(join(tmpdir(), "playground-"));
  try {
    const server = await startServer({ variables: { ...AGENTS, AGUI_RECORD__DIR: folder } });
    const questions = ["what's the weather like in Beijing today?", "think about tea", "plan a trip", "form", "approve", "fail", "count to 20"];
    try {
      for (const [index, question] of questions.entries()) await runOutside({ server }, `thread-${index}`, question);
    } finally {
      // The recordings are complete when the server has stopped.
      await server.stop();
    }
    const names = (await readdir(folder)).filter((name) => name.endsWith(".jsonl")).sort();
    assert.equal(names.length, questions.length);
    const page = await open();
    await button(page, "New thread").waitFor();
    for (const [index, name] of names.entries()) {
      const content = await readFile(join(folder, name), "utf8");
      await openRecording(page, fileOf(content, name));
      await recordingBar(page).getByText(name).waitFor();
      await button(page, "Play").waitFor();
      await shows(page, questions[index]);
      const types = content.trim().split("\n").flatMap((line) => JSON.parse(line).event?.type ?? []);
      const shown = await page.locator(".event").evaluateAll((rows) =>
        rows.flatMap((row) => Array(Number(row.querySelector(".badge")?.textContent ?? 1)).fill(row.querySelector(".event-type").textContent)));
      assert.deepEqual(shown, types);
      assert.equal(await chat(page).getByRole("alert").count(), questions[index] === "fail" ? 1 : 0, questions[index]);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a dropped recording is shown, and its question cannot be answered", async () => {
  const page = await open();
  await button(page, "New thread").waitFor();
  const interrupt = { id: "i", reason: "input_required", message: "Which size?", responseSchema: { type: "object", properties: { size: { type: "string" } } } };
  const text = recordingOf([0, STARTED], [1, { ...FINISHED, outcome: { type: "interrupt", interrupts: [interrupt] } }]);
  await drop(page, "dropped.jsonl", text);
  await page.getByRole("heading", { name: "Which size?" }).waitFor();
  assert.equal(await button(page, "Answer").isDisabled(), true);
  assert.match(await recordingBar(page).innerText(), /dropped\.jsonl/);
  await button(page, "Close").click();
  await field(page).waitFor();
});

test("a file that is no recording is refused with the reason, and the thread stays", async () => {
  const page = await open();
  await ask(page, "hello", "How can I help you?");
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  const whole = recordingOf([0, STARTED], [1, FINISHED]);
  for (const [text, reason] of [
    ["", "x.jsonl is not a recording of a run"],
    ["\u0000\u0001binary", "x.jsonl is not a recording of a run"],
    ['{"messages":[]}', "x.jsonl is not a recording of a run"],
    [whole.replace('"content":"Hello"', '"content":[null]'), "x.jsonl is not a recording of a run"],
    [whole.replace('"recording":1', '"recording":2'), "x.jsonl has version 2 of the format"],
    [`${whole}\n{"ms":2,"event":{"type":"NOVELTY"}}`, "line 4 is not an event"],
    [`${whole}\nnot JSON`, "line 4 is not an event"],
    [whole.replace('"ms":1', '"ms":-1'), "line 3 is not an event"],
    [`${whole}\n{"ms":2,"event":{"type":"CUSTOM","name":"n","value":${deep}}}`, "line 4 has more than 127 levels of JSON"],
  ]) {
    await openRecording(page, fileOf(text, "x.jsonl"));
    await chat(page).getByRole("alert").getByText(reason).waitFor();
    await shows(page, "How can I help you?");
  }
  await drop(page, "large.jsonl", "x", 32 * 1024 * 1024 + 1);
  await chat(page).getByRole("alert").getByText("large.jsonl is too large: the page opens recordings of at most 32 MiB").waitFor();
});

test("a long recording with a large state is shown at once, in parts", async () => {
  const page = await open();
  await tab(page, "State");
  const list = Array.from({ length: 100_000 }, (_, index) => index);
  const words = Array.from({ length: 20_000 }, (_, index) => [index, { ...says(`w${index} `), type: "TEXT_MESSAGE_CONTENT", role: undefined }]);
  const text = recordingOf(
    [0, STARTED], [0, { type: "STATE_SNAPSHOT", snapshot: { list } }], [0, { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" }],
    ...words, [20_000, { type: "TEXT_MESSAGE_END", messageId: "m" }], [20_000, FINISHED],
  );
  await openRecording(page, fileOf(text));
  await shows(page, "w19999");
  await button(page, "99800 more").click();
  await page.getByRole("tabpanel").getByText("399: 399").waitFor();
  await button(page, "99600 more").waitFor();
  await tab(page, "Events");
  await events(page).filter({ hasText: "20000" }).waitFor();
});

test("capabilities of the chosen agent are shown", async () => {
  const page = await open();
  await tab(page, "Capabilities");
  await page.getByRole("tabpanel").getByText("resumable").waitFor();
});

test("with authentication the page asks for the key and keeps it in the tab", async () => {
  const server = await startServer({
    variables: {
      ...AGENTS,
      AGUI_PLAYGROUND__ENABLED: "true",
      AGUI_AUTH__MODE: "api_key",
      AGUI_AUTH__API_KEYS: '[{ name = "web", env = "AGUI_KEY_WEB" }, { name = "other", env = "AGUI_KEY_OTHER" }]',
      AGUI_KEY_WEB: KEY,
      AGUI_KEY_OTHER: OTHER_KEY,
    },
  });
  try {
    const page = await open({ url: server.url });
    await page.getByLabel("Key").fill("wrong");
    await button(page, "Continue").click();
    await page.getByRole("alert").waitFor();
    await page.getByLabel("Key").fill(KEY);
    await button(page, "Continue").click();
    await ask(page, "hello", "How can I help you?");
    await tab(page, "Runs");
    const command = await copied(page, button(page, "Copy as curl"));
    assert.ok(command.includes('"Authorization: Bearer $KEY"') && !command.includes(KEY), command);
    await page.reload();
    await shows(page, "How can I help you?");
    assert.equal(await page.evaluate(() => JSON.stringify(localStorage)).then((text) => text.includes("sesame")), false);
    const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "OpenAPI" }).click()]);
    const description = JSON.parse(await readFile(await saved.path(), "utf8"));
    assert.equal(description.components.securitySchemes.bearer.scheme, "bearer");

    const other = await used.newPage(page.context());
    await other.goto(`${server.url}/playground`);
    await other.getByLabel("Key").waitFor();
    await other.close();
    await button(page, "Forget the key").click();
    await page.getByLabel("Key").waitFor();
    assert.equal(await page.evaluate(() => JSON.stringify(sessionStorage)), "{}");
    await page.getByLabel("Key").fill(OTHER_KEY);
    await button(page, "Continue").click();
    await threads(page).getByText("No threads").waitFor();
    assert.equal(await chat(page).getByRole("article").count(), 0, "messages that another key has read");
  } finally {
    // A page that is open would report that its server is gone. Each has a context of its own.
    const pages = used.browser.contexts().flatMap((context) => context.pages());
    await Promise.all(pages.map((page) => page.close()));
    await server.stop();
  }
  expectProblem("401 (Unauthorized)");
});

test("a link opens the description of the server's routes", async () => {
  const page = await open();
  const [opened] = await Promise.all([page.waitForEvent("popup"), page.getByRole("link", { name: "OpenAPI" }).click()]);
  await opened.waitForURL("**/openapi.json");
  assert.equal(JSON.parse(await opened.locator("pre").innerText()).openapi, "3.1.0");
});

test("the page speaks Chinese to a Chinese browser, and the choice of a language is kept", async () => {
  const page = await open({ locale: "zh-CN" });
  await page.getByLabel("消息", { exact: true }).fill("你好");
  await button(page, "发送").click();
  await shows(page, "有什么可以帮你的吗");
  assert.equal(await page.evaluate(() => document.documentElement.lang), "zh");
  await tab(page, "运行");
  assert.equal(await page.locator(".run .badge").first().innerText(), "已完成");
  await page.getByRole("combobox", { name: "语言" }).selectOption("en");
  await button(page, "New thread").waitFor();
  await page.reload();
  await button(page, "New thread").waitFor();
});

test("the colours are those of the system, or the chosen ones", async () => {
  const page = await open({ colorScheme: "dark" });
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.getByRole("combobox", { name: "Colours" }).waitFor();
  const dark = await background();
  await page.getByRole("combobox", { name: "Colours" }).selectOption("light");
  const light = await background();
  assert.notEqual(light, dark);
  await page.reload();
  await page.getByRole("combobox", { name: "Colours" }).waitFor();
  assert.equal(await background(), light);
});

test("the keyboard reaches everything, and each control has a name", async () => {
  const page = await open();
  await ask(page, "approve", "Send the e-mail");
  await page.getByRole("tab", { name: "Events" }).focus();
  for (const name of ["State", "Runs", "Tools", "Request", "Capabilities", "Use this agent", "Events"]) {
    await page.keyboard.press("ArrowRight");
    // A tab that shows less than its name has this as its label.
    const named = () => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent;
    assert.equal(await page.evaluate(named), name);
    assert.equal(await page.getByRole("tab", { name, exact: true }).getAttribute("aria-selected"), "true");
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("button, input:not([hidden]), select, textarea, summary")]
        .filter((node) => !(node.getAttribute("aria-label") || node.textContent.trim() && node.matches("button, summary") || node.labels?.length))
        .map((node) => node.outerHTML),
    );
    assert.deepEqual(nameless, []);
  }
  await page.locator(".event").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".event").nth(1).getAttribute("aria-expanded"), "true");
  await page.getByRole("status").filter({ hasText: "The agent is asking you" }).waitFor({ state: "attached" });
});

test("a narrow screen shows one part at a time, without scrolling sideways", async () => {
  const page = await open({ viewport: { width: 390, height: 800 } });
  await ask(page, "what's the weather like in Beijing today?", "with a temperature of 25°C.");
  for (const [name, shown] of [["Threads", ".threads"], ["Inspector", ".inspector"], ["Chat", ".chat"]]) {
    await page.locator(".views").getByRole("button", { name }).click();
    await page.locator(shown).waitFor();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `${name}: ${width}`);
  }
});

test("the tabs of the inspector are in one row, in a window of 1280 px and on a narrow screen", async () => {
  for (const width of [1280, 390]) {
    const page = await open({ viewport: { width, height: 800 } });
    if (width < 1000) await page.locator(".views").getByRole("button", { name: "Inspector" }).click();
    await page.getByRole("tab").first().waitFor();
    const tops = await page.getByRole("tab").evaluateAll((tabs) => tabs.map(({ offsetTop }) => offsetTop));
    assert.equal(tops.length, 7);
    assert.equal(new Set(tops).size, 1, `${width} px: ${tops}`);
  }
});

test("an answer gets thumbs up or down, which a reload shows and a second click takes back", async () => {
  const page = await open();
  await ask(page, "hello", "Hello! How can I help you?");
  const scores = async () => {
    const thread = await fetch(`${used.server.url}/threads/${threadId(page)}/messages`);
    return Object.values((await thread.json()).feedback ?? {}).map(({ score }) => score);
  };
  const rating = (name, pressed) => page.getByRole("button", { name, pressed, exact: true });
  await rating("Good answer", false).click();
  await rating("Good answer", true).waitFor();
  assert.deepEqual(await scores(), [1]);
  await rating("Bad answer", false).click();
  await rating("Bad answer", true).waitFor();
  await rating("Good answer", false).waitFor();
  await page.reload();
  await rating("Bad answer", true).click();
  await rating("Bad answer", false).waitFor();
  assert.deepEqual(await scores(), []);
});

test("the policy refuses inline scripts and styles, and everything from elsewhere", async () => {
  const page = await open();
  await button(page, "New thread").waitFor();
  await page.evaluate(async () => {
    window.refused = [];
    document.addEventListener("securitypolicyviolation", (event) => window.refused.push(event.effectiveDirective));
    const attempts = [
      () => (document.body.innerHTML += "<b>text</b>"),
      () => document.body.setAttribute("style", "color: red"),
      () => (new Image().src = "https://foreign.example/x.png"),
      () => fetch("https://foreign.example/").catch(() => {}),
      () => document.head.append(Object.assign(document.createElement("style"), { textContent: "b {}" })),
    ];
    for (const attempt of attempts) {
      try {
        await attempt();
      } catch {
        // A refused assignment throws.
      }
    }
  });
  const wanted = ["require-trusted-types-for", "style-src-attr", "img-src", "connect-src", "style-src-elem"];
  await page.waitForFunction((count) => window.refused.length >= count, wanted.length);
  assert.deepEqual(await page.evaluate(() => window.refused.toSorted()), wanted.toSorted());
  expectProblem("Content Security Policy");
  expectProblem("TrustedHTML");
});

test("below a prefix, as behind a proxy, the page and its requests find the server", async () => {
  const target = new URL(used.server.url);
  const proxy = createServer((incoming, outgoing) => {
    const path = incoming.url.replace(/^\/ai(?=\/)/, "");
    if (path === incoming.url) return outgoing.writeHead(404).end();
    const options = { host: target.hostname, port: target.port, method: incoming.method, path, headers: incoming.headers };
    const forwarded = request(options, (response) => {
      outgoing.writeHead(response.statusCode, response.headers);
      response.pipe(outgoing);
    });
    incoming.pipe(forwarded);
    outgoing.on("close", () => forwarded.destroy());
    forwarded.on("error", () => outgoing.destroy());
  });
  await new Promise((done) => proxy.listen(0, "127.0.0.1", done));
  try {
    const page = await open({ url: `http://127.0.0.1:${proxy.address().port}/ai` });
    await ask(page, "hello", "How can I help you?");
    await page.goto(`http://127.0.0.1:${proxy.address().port}/ai/playground/`);
    await button(page, "New thread").waitFor();
    assert.equal(new URL(page.url()).pathname, "/ai/playground");
    await page.close();
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
});

test("the messages that an agent suggests are buttons, and an unknown message offers some", async () => {
  const page = await open();
  const starters = page.getByRole("group", { name: "Messages to begin with" });
  await starters.getByRole("button", { name: "delete all temporary files" }).waitFor();
  assert.equal(await starters.getByRole("button").count(), 16);
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/starters.png` });
  await button(page, "count to 10").click();
  await shows(page, "1 2 3 4 5 6 7 8 9 10");
  await ask(page, "qwertyuiop", "I am a demo agent");
  await starters.waitFor();
  assert.equal(await starters.getByRole("button").count(), 5);
  await starters.getByRole("button", { name: "Hello" }).click();
  await shows(page, "How can I help you?");
  assert.equal(await starters.count(), 0);
});

test("the list of events follows the run, until the user scrolls", async () => {
  const page = await open({ viewport: { width: 1400, height: 400 } });
  await ask(page, "plan a trip", "both of its steps.");
  const panel = page.getByRole("tabpanel");
  const rest = () => panel.evaluate((node) => node.scrollHeight - node.scrollTop - node.clientHeight);
  assert.ok((await rest()) < 80, `${await rest()} pixels below`);
  await panel.evaluate((node) => new Promise((done) => {
    node.addEventListener("scroll", () => setTimeout(done), { once: true });
    node.scrollTop = 0;
  }));
  await ask(page, "count to 30", "28 29 30");
  assert.equal(await panel.evaluate((node) => node.scrollTop), 0);
});

test("a failed run and a stopped one leave a trace, also after a reload", async () => {
  const page = await open();
  await send(page, "fail");
  const failure = chat(page).locator(".error", { hasText: "The demo was asked to fail." });
  await failure.waitFor();
  await page.reload();
  await failure.waitFor();
  assert.equal(await failure.count(), 1);
  await send(page, "count to 3000");
  await shows(page, "1 2 3");
  await button(page, "Stop").click();
  const stopped = chat(page).getByText("The run was stopped");
  await stopped.waitFor();
  await page.reload();
  await stopped.waitFor();
});

test("a message that did not reach the server can be sent again", async () => {
  const page = await open();
  for (const refuse of [
    (route) => route.abort("internetdisconnected"),
    (route) => route.fulfill({ status: 503, json: { error: { code: "too_many_runs", message: "the server is full" } } }),
  ]) {
    await page.route("**/send-message", refuse);
    await send(page, "hello");
    await button(page, "Try again").waitFor();
    await page.unroute("**/send-message");
    await button(page, "Try again").click();
    await shows(page, "How can I help you?");
    await button(page, "Try again").waitFor({ state: "detached" });
    await button(page, "New thread").click();
  }
  used.problems.splice(0); // the browser reports both
});

test("a click on the open thread keeps its events", async () => {
  const page = await open();
  await ask(page, "hello to the quokka", "How can I help you?");
  const connects = [];
  page.on("request", (request) => request.url().endsWith("/connect") && connects.push(request.url()));
  await threads(page).getByText("hello to the quokka").click();
  await tab(page, "State");
  await tab(page, "Events");
  assert.equal(await events(page).count(), 6);
  assert.deepEqual(connects, []);
});

test("Enter saves an edited message, and Escape leaves it as it was", async () => {
  const page = await open();
  await ask(page, "hello", "How can I help you?");
  const edit = async () => {
    await page.locator(".message.is-user").hover();
    await page.locator(".message.is-user").getByRole("button", { name: "Edit" }).click();
    return page.getByRole("textbox", { name: "Edit" });
  };
  let text = await edit();
  await text.fill("think about tea");
  await text.press("Escape");
  await page.locator(".message.is-user", { hasText: "hello" }).waitFor();
  text = await edit();
  await text.fill("think about tea");
  await text.press("Enter");
  await shows(page, "The question is: tea.");
});

test("an answered question leaves a record, also after a reload", async () => {
  const page = await open();
  await ask(page, "approve", "Send the e-mail");
  await button(page, "Approve").click();
  await shows(page, "sent to ada@example.com.");
  const record = chat(page).locator(".note", { hasText: 'Send the e-mail "Lunch" to ada@example.com? Approved' });
  await record.waitFor();
  await page.reload();
  await record.waitFor();
});

test("an e-mail address is checked before it is sent", async () => {
  const page = await open();
  await ask(page, "form", "in which size?");
  await page.getByRole("textbox", { name: "Name" }).fill("Ada");
  await page.getByRole("combobox", { name: "Size" }).selectOption("M");
  const address = page.getByLabel("E-mail");
  await address.fill("no address");
  await button(page, "Answer").click();
  assert.equal(await address.evaluate((node) => node.validity.typeMismatch), true);
  await address.fill("ada@example.com");
  await button(page, "Answer").click();
  await shows(page, "Thank you, Ada!");
});

test("after New thread, the back button returns to the thread", async () => {
  const page = await open();
  await ask(page, "hello to the tapir", "How can I help you?");
  await button(page, "New thread").click();
  await page.getByRole("heading", { name: "Ask demo something" }).waitFor();
  await page.goBack();
  await shows(page, "hello to the tapir");
  await page.goForward();
  await page.getByRole("heading", { name: "Ask demo something" }).waitFor();
});

test("a draft stays with its thread, and survives a reload", async () => {
  const page = await open();
  await ask(page, "hello to the lynx", "How can I help you?");
  await field(page).fill("not yet sent");
  await button(page, "New thread").click();
  const holds = (text) => page.waitForFunction((text) => document.querySelector(".composer textarea")?.value === text, text);
  await holds("");
  await field(page).fill("for a new one");
  await threads(page).getByText("hello to the lynx").click();
  await holds("not yet sent");
  await page.reload();
  await holds("not yet sent");
  await button(page, "New thread").click();
  await holds("for a new one");
});

test("a long text of marks without an end is shown at once", async () => {
  const page = await open();
  for (const part of ["**a ", "_a ", "[a](", "~~a ", "``a "]) {
    await answerWith(page, (run) => [
      { type: "TEXT_MESSAGE_START", messageId: part, role: "assistant" },
      { type: "TEXT_MESSAGE_CONTENT", messageId: part, delta: part.repeat(80_000) },
      { type: "TEXT_MESSAGE_END", messageId: part },
      { type: "RUN_FINISHED", ...run },
    ]);
    const started = Date.now();
    await send(page, "hello");
    await page.locator(".message.is-assistant").last().waitFor();
    await button(page, "Stop").waitFor({ state: "detached" });
    assert.ok(Date.now() - started < 4_000, `${part}: ${Date.now() - started} ms`);
    await page.unroute("**/send-message");
    await button(page, "New thread").click();
  }
  expectProblem("404 (Not Found)"); // the server does not have the threads
});

test("a question with an invalid schema can be answered", async () => {
  const page = await open();
  const properties = { size: { type: "string", enum: "abc" }, list: { type: "array", items: null }, none: null };
  const responseSchema = { type: "object", properties, required: "size" };
  const interrupts = [{ id: "i", reason: "input_required", message: "How large?", responseSchema }];
  await answerWith(page, (run) => [{ type: "RUN_FINISHED", ...run, outcome: { type: "interrupt", interrupts } }]);
  await send(page, "hello");
  await page.getByRole("heading", { name: "How large?" }).waitFor();
  await page.getByRole("textbox", { name: "size" }).fill("M");
  const sent = page.waitForRequest("**/send-message");
  await button(page, "Answer").click();
  assert.deepEqual((await sent).postDataJSON().resume[0].payload, { size: "M" });
  await button(page, "Stop").waitFor({ state: "detached" });
  expectProblem("404 (Not Found)"); // the server does not have the thread
});
