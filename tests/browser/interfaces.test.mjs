// Interfaces that agents draw, with CopilotKit's own renderers: the page examples/web/copilotkit. SHOTS names a folder for
// screenshots.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { shot, useBrowser } from "./browser.mjs";
import { startModel } from "./model.mjs";

const COMPONENTS = [
  { id: "root", component: "Column", children: ["title", "rows", "more"] },
  { id: "title", component: "Text", text: "Cities" },
  { id: "rows", component: "Column", children: { componentId: "row", path: "/cities" } },
  { id: "row", component: "Text", text: { path: "name" } },
  { id: "more", component: "Button", child: "label", action: { event: { name: "more", context: { n: 1 } } } },
  { id: "label", component: "Text", text: "More cities" },
];
const cities = (...names) => ({
  surfaceId: "cities",
  components: COMPONENTS,
  data: { cities: names.map((name) => ({ name })) },
});

/** The stages at which the model waits for the test: it stops after this text. */
const stages = [];
/** Waits until the model stops at a stage. */
const stopAt = (text) => new Promise((done) => void stages.push({ text, stopped: done }));

/** The model's answers: it draws after a request or a click, and writes a text after the result of a call. */
function answer(messages) {
  const text = ({ content }) => (Array.isArray(content) ? content.map((part) => part.text).join("") : (content ?? ""));
  const asked = messages.findLastIndex(({ role, ...rest }) => role === "user" && /^(draw|show the cities)$/.test(text(rest)));
  const result = messages.slice(asked).findLast(({ role }) => role === "tool");
  if (result && text(result).includes('performed action "more"')) {
    return { tool: "render_a2ui", arguments: cities("Oslo", "Rome", "Lima") };
  }
  if (result) return { text: "Here you are." };
  if (text(messages[asked]) === "show the cities") return { tool: "render_a2ui", arguments: cities("Oslo", "Rome") };
  const bars = [30, 60, 90].map((height) => `<i style="height: ${height}px"></i>`).join("");
  const css = "p { font: 16px sans-serif } i { display: inline-block; width: 60px; margin-right: 8px; background: teal }";
  const html = { initialHeight: 160, css, html: `<p>Drawn by a model</p>${bars}` };
  return { tool: "generateSandboxedUi", arguments: html };
}

const model = await startModel(answer, (json) => {
  if (stages[0] && json.includes(stages[0].text)) return new Promise((done) => stages.shift().stopped(done));
});
after(() => model.stop());

const used = useBrowser({
  variables: {
    AGUI_COPILOTKIT__OPEN_GENERATIVE_UI: "true",
    AGUI_AGENTS__DRAWER__KIND: "llm",
    AGUI_AGENTS__DRAWER__PROVIDER: "openai",
    AGUI_AGENTS__DRAWER__API: "chat",
    AGUI_AGENTS__DRAWER__MODEL: "m",
    AGUI_AGENTS__DRAWER__BASE_URL: model.url,
    AGUI_AGENTS__DRAWER__A2UI: "true",
  },
});

async function send(page, text) {
  await page.getByTestId("copilot-chat-textarea").fill(text);
  await page.getByTestId("copilot-chat-textarea").press("Enter");
}

test("a surface appears piece by piece, its button reaches the model, the answer draws more, and a reload shows all", async () => {
  const page = await used.open("copilotkit");
  const [half, first] = [stopAt('"rows","component"'), stopAt('{"name":"Oslo"},')];
  await send(page, "show the cities");
  const goOn = await half;
  await page.getByText("Building interface").waitFor();
  assert.equal(await page.getByText("Cities", { exact: true }).count(), 0);
  await shot(page, "1-building");
  goOn();
  const finish = await first;
  await page.getByText("Oslo").waitFor();
  assert.equal(await page.getByText("Rome").count(), 0);
  await shot(page, "2-first-item");
  finish();
  await page.getByText("Rome").waitFor();
  await page.getByText("Here you are.").waitFor();
  await shot(page, "3-whole");
  await page.getByRole("button", { name: "More cities" }).click();
  await page.getByText("Lima").waitFor();
  await shot(page, "4-clicked");
  await page.getByTestId("copilot-send-button").and(page.locator(":disabled")).waitFor();
  await page.reload();
  await page.getByText("Lima").waitFor();
  await page.getByText("Cities", { exact: true }).last().waitFor();
  assert.equal(await page.getByText("Oslo").count(), 2);
  await shot(page, "5-reloaded");
});

test("a surface that is being built when its run is stopped is shown as failed, also after a reload", async () => {
  const page = await used.open("copilotkit");
  const half = stopAt('"rows","component"');
  await send(page, "show the cities");
  const goOn = await half;
  await page.getByText("Building interface").waitFor();
  await page.getByTestId("copilot-send-button").click();
  const failed = page.getByText("Couldn't generate the UI");
  await failed.waitFor();
  goOn();
  await shot(page, "10-stopped");
  await page.reload();
  await failed.waitFor();
  assert.equal(await page.getByText("Building interface").count(), 0);
});

test("HTML that a model writes is shown in a sandboxed frame, and again after a reload", async () => {
  const page = await used.open("copilotkit");
  await send(page, "draw");
  const drawn = page.frameLocator("iframe").getByText("Drawn by a model");
  await drawn.waitFor();
  await page.getByText("Here you are.").waitFor();
  await shot(page, "6-html");
  await page.reload();
  await drawn.waitFor();
  const sandbox = await page.locator("iframe").first().getAttribute("sandbox");
  assert.ok(!sandbox.includes("allow-same-origin"), sandbox);
});
