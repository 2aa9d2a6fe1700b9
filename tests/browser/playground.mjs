// Shared by the tests of the playground: its server, its tabs, and where a user looks.

import assert from "node:assert/strict";
import { afterEach } from "node:test";
import { fileURLToPath } from "node:url";

import { useBrowser } from "./browser.mjs";
import { button } from "./chat.mjs";

/** The demo agent and an echo, as environment variables. */
export const AGENTS = {
  AGUI_DEFAULT_AGENT: "demo",
  AGUI_AGENTS__DEMO__KIND: "script",
  AGUI_AGENTS__DEMO__SCRIPT: fileURLToPath(new URL("../../config/scripts/demo.toml", import.meta.url)),
  AGUI_AGENTS__DEMO__A2UI: "true",
  AGUI_AGENTS__ECHO__KIND: "echo",
};

/** A browser, and a server with these agents and further environment variables. */
export function usePlayground(variables) {
  const used = useBrowser({ variables: { ...AGENTS, ...variables }, examples: false });
  const opened = [];

  /** Opens the playground of a server in a new tab, with settings of its own. */
  const open = async ({ url = used.server.url, prepare = () => {}, ...settings } = {}) => {
    const context = await used.browser.newContext({
      locale: "en-GB",
      permissions: ["clipboard-read", "clipboard-write"],
      viewport: { width: 1400, height: 900 },
      ...settings,
    });
    const page = await used.newPage(context);
    opened.push(page);
    await prepare(page);
    await page.goto(`${url}/playground`);
    return page;
  };
  afterEach(() => Promise.all(opened.splice(0).map((page) => page.context().close())));

  /** The browser reports responses with such a status on its console. */
  const expectProblem = (status) => {
    const others = used.problems.filter((problem) => !problem.includes(status));
    assert.ok(others.length < used.problems.length, `no problem has ${status}`);
    used.problems.splice(0, used.problems.length, ...others);
  };
  return { used, open, expectProblem };
}

export const field = (page) => page.getByLabel("Message", { exact: true });
export const chat = (page) => page.getByRole("log");
export const shows = (page, text) => chat(page).getByText(text).last().waitFor();
export const tab = (page, name) => page.getByRole("tab", { name, exact: true }).click();
export const events = (page) => page.getByRole("list", { name: "Events", exact: true }).getByRole("listitem");
export const threads = (page) => page.getByRole("navigation", { name: "Threads" });
export const message = (page, text) => page.getByRole("article").filter({ hasText: text }).last();

/** Presses a button that copies. Returns what is in the clipboard then. */
export async function copied(page, copy) {
  await copy.click();
  await copy.getByText("Copied").waitFor();
  return page.evaluate(() => navigator.clipboard.readText());
}

export async function send(page, text) {
  // While a run continues, Enter does nothing.
  await button(page, "Stop").waitFor({ state: "detached" });
  await field(page).fill(text);
  await field(page).press("Enter");
}

/** Sends a message and waits for the end of its run. */
export async function ask(page, text, answer) {
  await send(page, text);
  await shows(page, answer);
  await button(page, "Stop").waitFor({ state: "detached" });
}

/** Answers the page's next runs with events, in place of the server. */
export const answerWith = (page, eventsOf) =>
  page.route("**/send-message", (route) => {
    const { threadId, runId } = route.request().postDataJSON();
    const run = { threadId, runId };
    const events = [{ type: "RUN_STARTED", ...run }, ...eventsOf(run)];
    const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    return route.fulfill({ contentType: "text/event-stream", body });
  });
