// What the playground shows of runs and lets a user change: numbers, events, times, the request, the state, other clients.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { button } from "./chat.mjs";
import { startModel } from "./model.mjs";
import { answerWith, ask, chat, events, send, shows, tab, usePlayground } from "./playground.mjs";

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
  assert.match(await numbers.innerText(), /^Duration [\d.]+ m?s\s*First text [\d.]+ m?s\s*Tokens 1200 in, 30 out\s*Cost 0.0033$/);
  await ask(page, "and again?", "Forty-two.");
  await numbers.nth(1).waitFor();
  await page.reload();
  await numbers.nth(1).getByText("Cost 0.0033").waitFor();
  await tab(page, "Runs");
  assert.match(await page.locator(".run").first().innerText(), /Tokens\n1200 in, 30 out\nCost\n0.0033/);
});
