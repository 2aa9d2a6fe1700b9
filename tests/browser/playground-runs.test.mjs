// The parts of runs that the playground shows, and those that a user can change: numbers, events, times, the request, the state, other clients.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { button } from "./chat.mjs";
import { startModel } from "./model.mjs";
import { answerWith, ask, chat, copied, events, message, send, shows, tab, usePlayground } from "./playground.mjs";

const model = await startModel(() => ({ text: "Forty-two.", usage: { prompt_tokens: 1200, completion_tokens: 30 } }));
after(() => model.stop());

const { used, open, expectProblem } = usePlayground({
  AGUI_AGENTS__MODEL__KIND: "llm",
  AGUI_AGENTS__MODEL__PROVIDER: "openai",
  AGUI_AGENTS__MODEL__API: "chat",
  AGUI_AGENTS__MODEL__MODEL: "m",
  AGUI_AGENTS__MODEL__BASE_URL: model.url,
  AGUI_PRICES__M: "{ input = 2.5, output = 10 }",
});

const agent = (page, name) => page.getByRole("combobox", { name: "Agent" }).selectOption(name);

test("an answer shows its time, its tokens and its cost, also after a reload", async () => {
  const page = await open();
  await agent(page, "model");
  await ask(page, "what is the answer?", "Forty-two.");
  const numbers = chat(page).locator(".is-assistant .numbers");
  await numbers.getByText("Cost 0.0033").waitFor(); // the page reads it with the thread, after the run
  assert.match(await numbers.innerText(), /^Duration [\d.]+ m?s\s*First text [\d.]+ m?s\s*Tokens 1200 in, 30 out\s*Cost 0.0033$/);
  await ask(page, "and again?", "Forty-two.");
  await numbers.nth(1).waitFor();
  await page.reload();
  await numbers.nth(1).getByText("Cost 0.0033").waitFor();
  await tab(page, "Runs");
  assert.match(await page.locator(".run").first().innerText(), /Tokens\n1200 in, 30 out\nCost\n0.0033/);
});

/** Returns events of an answer in as many parts. */
const parts = (count, delta) => [
  { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" },
  ...Array.from({ length: count }, () => ({ type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta })),
  { type: "TEXT_MESSAGE_END", messageId: "m" },
];

test("events are headed by their run, and the parts of a text are one row, which opens", async () => {
  const page = await open();
  await ask(page, "count to 5", "1 2 3 4 5");
  await ask(page, "hello", "How can I help you?");
  const heads = page.locator(".run-head");
  assert.deepEqual((await heads.allInnerTexts()).map((text) => text.match(/^Run \d\s*demo/)?.[0].replace(/\s+/g, " ")), ["Run 1 demo", "Run 2 demo"]);
  const row = events(page).filter({ hasText: "TEXT_MESSAGE_CONTENT" }).first();
  assert.match(await row.innerText(), /TEXT_MESSAGE_CONTENT\s*5\s*1 2 3 4 5/);
  await row.getByRole("button").click();
  assert.deepEqual(await row.locator(".parts code").allInnerTexts(), ['"1 "', '"2 "', '"3 "', '"4 "', '"5"']);
});

test("100,000 parts of a text and a huge one are rows that cost nothing", async () => {
  const page = await open();
  await answerWith(page, (run) => [...parts(100_000, "ab "), ...parts(1, "x".repeat(3_000_000)), { type: "RUN_FINISHED", ...run }]);
  await send(page, "hello");
  await page.locator(".run-head").waitFor();
  await button(page, "Stop").waitFor({ state: "detached" });
  assert.equal(await page.locator(".events > li").count(), 9);
  await events(page).filter({ hasText: "100000" }).getByRole("button").click();
  assert.equal(await page.locator(".parts li").count(), 101);
  expectProblem("404 (Not Found)"); // the server does not have the thread
});

test("a run has a bar for each step, tool and text, also one that is read later", async () => {
  const page = await open();
  await ask(page, "plan a trip", "both of its steps.");
  await ask(page, "what's the weather like in Beijing today?", "with a temperature of 25°C.");
  await tab(page, "Runs");
  const bars = async (run) => (await page.locator(".run").nth(run).locator(".span").allInnerTexts()).map((text) => text.split("\n")[0]);
  await page.locator(".run").nth(1).locator(".span").first().waitFor();
  assert.deepEqual(await bars(1), ["gather", "decide", "Text"]);
  assert.deepEqual(await bars(0), ["Text", "get_weather", "Text"]);
  // One step comes after the other. A bar has the least width, so it may begin a little earlier.
  const steps = await page.locator(".span.is-step rect").evaluateAll((rects) => rects.map((rect) => rect.getBoundingClientRect()));
  assert.ok(steps.every(({ width }) => width > 5) && steps[0].right < steps[1].left + 2, JSON.stringify(steps));

  await page.reload();
  await shows(page, "with a temperature of 25°C.");
  await tab(page, "Runs");
  await page.locator(".run").first().getByRole("button", { name: "Load events" }).click();
  await page.locator(".span").first().waitFor();
  assert.deepEqual(await bars(0), ["Text", "get_weather", "Text"]);
  await page.locator(".span.is-tool").click();
  await chat(page).locator(".tool-call.is-marked").waitFor();
});

test("the lines of *Use this agent* work: curl's and those of @ag-ui/client", async () => {
  const page = await open();
  await agent(page, "echo");
  await tab(page, "Use this agent");
  const lines = (client) => copied(page, page.getByRole("region", { name: client, exact: true }).getByRole("button"));
  const { stdout } = await promisify(execFile)("sh", ["-c", await lines("curl")]);
  assert.match(stdout, /"delta":"Hello"[^]*RUN_FINISHED/);
  const file = fileURLToPath(new URL(`../../web/used-${process.pid}.mjs`, import.meta.url)); // beside the client's package
  try {
    await writeFile(file, await lines("HttpAgent"));
    assert.match((await promisify(execFile)(process.execPath, [file])).stdout, /Hello/);
  } finally {
    await rm(file, { force: true });
  }
  assert.match(await lines("CopilotKit"), new RegExp(`runtimeUrl="${used.server.url}/copilotkit">[^]*agentId={"echo"}`));
  for (const client of ["TanStack AI", "Rust"]) assert.ok((await lines(client)).includes(`"${used.server.url}/agents/echo/send-message"`), client);
});

test("the next runs send what the request panel has, and curl gets it too", async () => {
  const page = await open();
  await tab(page, "Request");
  const props = page.getByLabel("forwardedProps");
  await props.fill("{");
  await page.getByRole("alert").filter({ hasText: "This is not valid JSON" }).waitFor();
  await page.getByLabel("headers").fill('{ "x tenant": "acme" }');
  await page.getByRole("alert").filter({ hasText: "Headers" }).waitFor();
  // All at once, before the page has drawn what the first one changed.
  await page.locator(".schema-form textarea").evaluateAll((fields, texts) => {
    fields.forEach((field, index) => {
      field.value = texts[index];
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
  }, ['{ "tenant": "acme" }', '[{ "description": "Place", "value": "Oslo" }]', '{ "x-tenant": "acme" }']);
  await page.reload();
  const sent = page.waitForRequest("**/send-message");
  await send(page, "hello");
  const { forwardedProps, context } = (await sent).postDataJSON();
  assert.deepEqual(forwardedProps, { onDisconnect: "continue", tenant: "acme" });
  assert.deepEqual(context, [{ description: "Place", value: "Oslo" }]);
  assert.equal((await (await sent).allHeaders())["x-tenant"], "acme");
  await shows(page, "How can I help you?");
  await tab(page, "Runs");
  assert.match(await copied(page, button(page, "Copy as curl")), /-H 'x-tenant: acme'.*"tenant":"acme"/);
  await page.getByRole("tab", { name: "Request The next runs send more" }).click();
  await button(page, "Reset").click();
  assert.equal(await props.inputValue(), "{}");
});

test("the state can be edited for the next run, here or in a copy of the thread", async () => {
  const page = await open();
  await ask(page, "plan a trip", "both of its steps.");
  await tab(page, "State");
  const panel = page.getByRole("tabpanel");
  const edit = async (text, action) => {
    await panel.getByRole("button", { name: "Edit" }).click();
    await panel.getByLabel("State").fill("{");
    assert.equal(await button(panel, action).isDisabled(), true);
    await panel.getByLabel("State").fill(text);
    await button(panel, action).click();
  };
  await edit('{ "goal": "a walk" }', "Save");
  await panel.getByText('goal: "a walk"').waitFor();
  const original = page.url();
  await edit('{ "goal": "a swim" }', "Save in a copy of the thread");
  await page.waitForFunction((original) => location.href !== original, original);
  await panel.getByText('goal: "a swim"').waitFor();
  await agent(page, "echo");
  const sent = page.waitForRequest("**/send-message");
  await ask(page, "and now?", "and now?");
  assert.deepEqual((await sent).postDataJSON().state, { goal: "a swim" });
  assert.equal(await message(page, "both of its steps.").count(), 1);

  await message(page, "both of its steps.").hover();
  await message(page, "both of its steps.").getByRole("button", { name: "Copy the thread up to here" }).click();
  await panel.getByText('goal: "a trip"').waitFor();
  assert.equal(await message(page, "and now?").count(), 0);
});
