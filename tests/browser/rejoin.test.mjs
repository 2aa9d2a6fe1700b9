// The page examples/web/copilotkit, whose server is killed and started again.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { restartableServer } from "../js/restart.mjs";
import { endedRuns, shot, statuses, storedThread, useBrowser } from "./browser.mjs";

const ends = [];
after(() => Promise.all(ends.map((end) => end())));

const used = useBrowser({ start: () => restartableServer({ after: (end) => ends.push(end) }) });
const assistants = (page) => page.getByTestId("copilot-assistant-message");
const shows = (page, text) => assistants(page).last().filter({ hasText: text }).waitFor();
const away = (page) => page.getByRole("status").filter({ hasText: "The connection is lost" });
/** Longer than the library keeps trying to open its sockets. */
const LONG_MS = 6000;

async function send(page, text) {
  await page.getByTestId("copilot-chat-textarea").fill(text);
  await page.getByTestId("copilot-chat-textarea").press("Enter");
}

test("a page rejoins a run by itself when its server was killed and is back, and the list is live again", async () => {
  const page = await used.open("copilotkit");
  await send(page, "hello");
  await shows(page, "Hello!");
  await send(page, "count to 60");
  await shows(page, "1 2 3");
  await used.server.crash(async () => {
    await away(page).waitFor();
    await page.getByTestId("copilot-chat-textarea").fill("A draft");
    await shot(page, "page-away");
    await new Promise((done) => setTimeout(done, LONG_MS));
  });
  await away(page).waitFor({ state: "detached" });
  await shows(page, "58 59 60");
  assert.equal(await assistants(page).count(), 2);
  assert.equal(await page.getByTestId("copilot-chat-textarea").inputValue(), "A draft");
  assert.deepEqual(statuses(await endedRuns(used, page, 2)), ["finished", "finished"]);

  const other = await used.open("copilotkit");
  await send(other, "hello, tab");
  await page.getByRole("navigation").getByText("hello, tab").waitFor();
  await send(page, "count to 3");
  await shows(page, /1 2 3$/);
  const { messages } = await storedThread(used, page);
  assert.equal(messages.filter(({ role }) => role === "assistant").length, 3);
  used.problems.splice(0); // The browser writes each failed connection to the console.
});

test("a message that is sent while the server is away arrives when it is back", async () => {
  const page = await used.open("copilotkit");
  await send(page, "hello");
  await shows(page, "Hello!");
  await endedRuns(used, page);
  await used.server.crash(async () => {
    await send(page, "count to 4");
    await away(page).waitFor();
  });
  await shows(page, "1 2 3 4");
  const { messages } = await endedRuns(used, page, 2);
  assert.deepEqual(messages.map(({ content }) => content).slice(2), ["count to 4", "1 2 3 4"]);
  used.problems.splice(0);
});
