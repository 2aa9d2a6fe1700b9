// MCP Apps with CopilotKit's own renderer: an example server of @modelcontextprotocol/ext-apps, and requests that a page makes
// of its own. SHOTS names a folder for screenshots.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { endedRuns, shot, storedThread, useBrowser } from "./browser.mjs";
import { startModel } from "./model.mjs";

const CLOCK = fileURLToPath(new URL("node_modules/@modelcontextprotocol/server-basic-vanillajs/dist/index.js", import.meta.url));
const FAKE = fileURLToPath(new URL("../tools/fake-mcp.mjs", import.meta.url));

const model = await startModel((messages) => {
  if (messages.at(-1).role === "tool") return { text: "There it is." };
  return { tool: messages.at(-1).content === "the weather" ? "show" : "get-time", arguments: {} };
});
const folder = mkdtempSync(join(tmpdir(), "agui-apps-"));
const record = join(folder, "record");
const config = join(folder, "apps.toml");
writeFileSync(
  config,
  `
[mcp.clock]
command = ["${process.execPath}", "${CLOCK}", "--stdio"]
apps = true

[mcp.fake]
command = ["${process.execPath}", "${FAKE}", "apps", "${record}"]
apps = true
approval_of = { delete = "always" }

[agents.assistant]
kind = "llm"
provider = "openai"
api = "chat"
model = "m"
base_url = "${model.url}"
tools = ["mcp:clock", "mcp:fake"]
`,
);
const used = useBrowser({ config });
after(() => (model.stop(), rmSync(folder, { recursive: true })));

async function send(page, text) {
  await page.getByTestId("copilot-chat-textarea").fill(text);
  await page.getByTestId("copilot-chat-textarea").press("Enter");
  await page.getByText("There it is.").waitFor();
}

test("an example app is shown, calls its tool, and is shown again after a reload; its requests are no runs", async () => {
  const page = await used.open("copilotkit");
  await send(page, "What time is it?");
  const app = page.frameLocator("iframe").frameLocator("iframe");
  const time = app.locator("#server-time").and(app.getByText(/^20\d\d-/));
  await time.waitFor();
  const first = await time.textContent();
  await app.getByRole("button", { name: "Get Server Time" }).click();
  await app.locator("#server-time").filter({ hasNotText: first }).filter({ hasText: /^20\d\d-/ }).waitFor();
  await shot(page, "7-mcp-app");
  const { runs } = await endedRuns(used, page, 1);
  assert.equal(runs.length, 1);
  await page.reload();
  await time.waitFor();
  assert.equal((await storedThread(used, page)).runs.length, 1);
});

/** Sends a request from the app's own frame, as its code could, and returns the response. */
const ask = (frame, method, params) =>
  frame.evaluate(
    ([method, params]) =>
      new Promise((done) => {
        const id = `own-${Math.random()}`;
        addEventListener("message", ({ data }) => data.id === id && done(data));
        parent.postMessage({ jsonrpc: "2.0", id, method, params }, "*");
      }),
    [method, params],
  );

test("an app is refused a hidden tool, one with approval, another server's, and files", async () => {
  const page = await used.open("copilotkit");
  await send(page, "the weather");
  const shown = page.frameLocator("iframe").frameLocator("iframe").getByText("Hello");
  await shown.waitFor();
  const frame = await (await shown.elementHandle()).ownerFrame();
  const call = (name) => ask(frame, "tools/call", { name, arguments: { to: 1 } });
  assert.equal((await call("move")).result.content[0].text, '{"to":1}');
  for (const name of ["private", "delete", "get-time"]) {
    const response = await call(name);
    assert.ok(!JSON.stringify(response).includes("content\":[{"), JSON.stringify(response));
  }
  assert.ok((await ask(frame, "resources/read", { uri: "file:///etc/passwd" })).error);
  const received = readFileSync(record, "utf8").trim().split("\n").map(JSON.parse);
  const of = (wanted) => received.filter(({ method }) => method === wanted);
  assert.deepEqual(of("tools/call").map(({ params }) => params.name), ["show", "move"]);
  assert.deepEqual(of("resources/read").map(({ params }) => params.uri), ["ui://weather"]);
  const refused = used.server.log().match(/refused the request of an MCP app/g);
  assert.equal(refused.length, 3);
});
