// Chromium with the pages of examples/web, and a server of its own for each test file.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { after, afterEach, before } from "node:test";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

import { startServer } from "../js/server.mjs";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
/** The longest wait for a page to show something. */
const TIMEOUT_MS = 30_000;
/** The server's address in the pages. The browser connects to the server under test instead. */
const ADDRESS_IN_PAGES = "127.0.0.1:8080";
/** `--no-sandbox` because the tests may run as root; the others keep Chromium from connecting to its maker's hosts. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const PAGES = fileURLToPath(new URL("../../examples/web/dist", import.meta.url));
const MEDIA_TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

/** Serves the built pages on a free loopback port. Returns the port and a function that stops the server. */
async function servePages() {
  assert.ok(existsSync(PAGES), `there is no ${PAGES}: run \`npm ci && npm run build\` in examples/web`);
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    if (pathname === "/favicon.ico") return response.writeHead(204).end();
    const file = join(PAGES, pathname.endsWith("/") ? `${pathname}index.html` : pathname);
    try {
      const content = await readFile(file);
      response.setHeader("content-type", MEDIA_TYPES[extname(file)] ?? "application/octet-stream");
      response.setHeader("cache-control", "max-age=600").end(content);
    } catch {
      response.writeHead(404, { "content-type": "text/html" }).end("<!doctype html>");
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { port: server.address().port, stop: () => server.close() };
}

/**
 * A server, the built pages and a browser for the tests of one file. A test fails if a page writes an error to its console.
 * @param {{ start?: () => Promise<object>, config?: string, variables?: object, names?: string[], flags?: string[], examples?: boolean }}
 *   options `start`: starts another server than startServer does; `config`: the path of the server's configuration file;
 *   `variables`: its environment variables; `names`: further host names of this
 *   machine, for the browser alone; `flags`: further flags of Chromium; `examples`: false if the pages of examples/web are
 *   not needed
 */
export function useBrowser({ start = startServer, config, variables, names = [], flags = [], examples = true } = {}) {
  const used = { problems: [] };
  before(async () => {
    used.server = await start({ config, variables });
    if (examples) used.pages = await servePages();
    const { host, hostname } = new URL(used.server.url);
    // The first rule that matches is used. No other host is found.
    const rules = [
      `MAP ${ADDRESS_IN_PAGES} ${host}`,
      ...[hostname, "localhost", ...names].map((name) => `MAP ${name} ${hostname}`),
      "MAP * ~NOTFOUND",
    ];
    used.browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: [...FLAGS, ...flags, `--host-resolver-rules=${rules.join()}`],
    });
    // One profile, so that the pages' files come from its cache. Each tab has its own sessionStorage.
    used.context = await used.browser.newContext();
  });
  after(async () => {
    await used.browser?.close();
    used.pages?.stop();
    await used.server?.stop?.();
  });
  afterEach(async () => {
    await Promise.all((used.context?.pages() ?? []).map((page) => page.close()));
    assert.deepEqual(used.problems.splice(0), [], "errors in the consoles of pages");
  });

  /** Opens an empty tab, of which the errors are problems. */
  used.newPage = async (context = used.context) => {
    const page = await context.newPage();
    page.setDefaultTimeout(TIMEOUT_MS);
    page.on("pageerror", (error) => void used.problems.push(String(error)));
    page.on("console", (message) => void (message.type() === "error" && used.problems.push(message.text())));
    return page;
  };

  /**
   * Opens a page of examples/web in a new tab.
   * @param {{ threadId?: string, answers?: array }} options `threadId`: the thread that the page restores; `answers`: see
   *   answerDialogs
   */
  used.open = async (name, { threadId, answers } = {}) => {
    const page = await used.newPage();
    if (threadId) await page.addInitScript((thread) => (sessionStorage.thread = thread), threadId);
    if (answers) answerDialogs(page, ...answers);
    await used.load(page, name);
    return page;
  };

  used.load = (page, name) => page.goto(`http://localhost:${used.pages.port}/${name}/`);
  return used;
}

/** Answers the page's dialogs one after another: false dismisses, true accepts, a text is entered. Returns their texts. */
export function answerDialogs(page, ...answers) {
  const asked = [];
  page.on("dialog", async (dialog) => {
    asked.push(dialog.message());
    const answer = answers.shift();
    await (answer === false ? dialog.dismiss() : dialog.accept(answer === true ? undefined : answer));
  });
  return asked;
}

const threadOf = (page) => page.evaluate(() => sessionStorage.thread);

async function readThread(server, threadId) {
  const response = await fetch(`${server.url}/threads/${threadId}`);
  assert.equal(response.status, 200);
  return response.json();
}

/** Returns the thread of a page as the server has it. */
export const storedThread = async ({ server }, page) => readThread(server, await threadOf(page));

/** Returns the thread of a page when it has `count` runs and all of them have ended. */
export const endedRuns = async ({ server }, page, count) => endedThread(server, await threadOf(page), count);

/** The same for any thread. */
export async function endedThread(server, threadId, count = 1) {
  const deadline = Date.now() + TIMEOUT_MS;
  for (;;) {
    const thread = await readThread(server, threadId);
    if (thread.activeRunId === undefined && thread.runs.length >= count) return thread;
    assert.ok(Date.now() < deadline, `the thread has no ${count} ended runs after ${TIMEOUT_MS} ms: ${JSON.stringify(thread.runs)}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

export const statuses = ({ runs }) => runs.map(({ status }) => status);

/** Runs the demo on a thread from outside of the browser, to the run's end. */
export async function runOutside({ server }, threadId, content, more) {
  const input = { threadId, runId: "outside", messages: [{ id: "m", role: "user", content }], ...more };
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${server.url}/send-message`, { method: "POST", headers, body: JSON.stringify(input) });
  assert.equal(response.status, 200);
  return response.text();
}

/** Writes a screenshot into the folder SHOTS, if the variable names one. */
export async function shot(page, name) {
  if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, `${name}.png`) });
}
