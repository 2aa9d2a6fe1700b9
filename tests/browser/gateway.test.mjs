// A surface of an agent in Python (tests/py/endpoint.py) behind the gateway, with CopilotKit's own renderer.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { endedRuns, shot, useBrowser } from "./browser.mjs";

const PYTHON = process.env.AGUI_PYTHON ?? fileURLToPath(new URL("../.venv/bin/python", import.meta.url));
const ENDPOINT = fileURLToPath(new URL("../py/endpoint.py", import.meta.url));

assert.ok(existsSync(PYTHON), `there is no ${PYTHON}: tests/run.sh --all installs it, or name one in AGUI_PYTHON`);
const endpoint = spawn(PYTHON, [ENDPOINT], { stdio: ["pipe", "pipe", "inherit"] });
const [url] = await once(endpoint.stdout.setEncoding("utf8"), "data");
const used = useBrowser({
  variables: {
    AGUI_AGENTS__PYTHON__KIND: "remote",
    AGUI_AGENTS__PYTHON__URL: url.trim(),
    AGUI_AGENTS__PYTHON__A2UI: "true",
  },
});
after(async () => {
  endpoint.stdin.end();
  if (endpoint.exitCode === null) await once(endpoint, "exit");
});

test("an agent in Python draws a surface, its button reaches the agent, and a reload shows both answers", async () => {
  const page = await used.open("copilotkit");
  await page.getByTestId("copilot-chat-textarea").fill("draw");
  await page.getByTestId("copilot-chat-textarea").press("Enter");
  await page.getByText("Drawn in Python").waitFor();
  await page.getByText("Oslo").waitFor();
  await page.getByRole("button", { name: "More cities" }).click();
  await page.getByText("Lima").waitFor();
  await endedRuns(used, page, 2);
  await shot(page, "8-python");
  await page.reload();
  await page.getByText("Lima").waitFor();
  assert.equal(await page.getByText("Oslo").count(), 2);
});
