// Questions and plans of a model (`ask_user`, `propose_plan`): @ag-ui/client in front, aimock as the provider.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";

import { agentOn, configFile, startModel } from "./models.mjs";
import { Page, textOf, useServer } from "./threads.mjs";

const SCHEMA = {
  type: "object",
  properties: { size: { type: "string", enum: ["S", "L"] }, number: { type: "integer", minimum: 1 } },
  required: ["size"],
};

describe("questions of a model", () => {
  let model, file;
  before(async () => {
    model = await startModel();
    file = await configFile(agentOn("openai", model.url, { tools: ["ask_user", "propose_plan"] }));
  });
  const server = useServer(() => ({ config: file.config }));
  after(() => Promise.all([model?.stop(), file?.remove()]));

  /** Returns a page on which the model has made the call, and the only interrupt. */
  async function asked(name, args) {
    const sentence = `ask ${randomUUID()}`;
    const isAsked = ({ messages }) => JSON.stringify(messages).includes(sentence);
    const hasResult = ({ messages }) => messages.some(({ role }) => role === "tool");
    const toolCalls = [{ name, arguments: JSON.stringify(args) }];
    model.on({ predicate: (request) => isAsked(request) && !hasResult(request) }, { toolCalls });
    model.on({ predicate: (request) => isAsked(request) && hasResult(request) }, { content: "Thank you." });
    const page = new Page(server, {});
    assert.deepEqual((await page.say(sentence)).finished, ["interrupt"]);
    const [interrupt, ...more] = page.pendingInterrupts;
    assert.deepEqual(more, []);
    assert.equal(interrupt.toolCallId, page.messages.at(-1).toolCalls[0].id);
    return { page, interrupt };
  }

  /** Answers the interrupt and returns the call's result. */
  async function answered(page, answer) {
    const { events, finished } = await page.answer(answer);
    assert.deepEqual(finished, ["success"]);
    assert.equal(textOf(events), "Thank you.");
    assert.deepEqual(page.pendingInterrupts, []);
    await page.requireStored();
    const [{ content }] = events.filter(({ type }) => type === "TOOL_CALL_RESULT");
    return content;
  }

  test("a model asks with a form of its own, and the form is validated", async () => {
    const { page, interrupt } = await asked("ask_user", { question: "Which size?", schema: SCHEMA });
    assert.equal(interrupt.message, "Which size?");
    assert.deepEqual(interrupt.responseSchema, SCHEMA);
    for (const wrong of [{ size: "XL" }, { number: 1 }, "L"]) {
      assert.deepEqual((await page.answer(wrong)).errors, ["invalid_resume_payload"]);
      assert.deepEqual(page.pendingInterrupts, [interrupt], "the question stays open");
    }
    assert.equal(await answered(page, { size: "L", number: 2 }), '{"size":"L","number":2}');
  });

  test("a question without a schema takes a text", async () => {
    const { page } = await asked("ask_user", { question: "Which name?" });
    assert.equal(await answered(page, "Ada"), "Ada");
  });

  for (const [what, answer, expected] of [
    ["accepted", { approved: true }, { approved: true, edited: false, steps: ["Search", "Report"] }],
    [
      "edited",
      { approved: true, steps: [{ description: "Search" }, { description: "Report", status: "disabled" }] },
      { approved: true, edited: true, steps: ["Search"] },
    ],
    ["rejected", { approved: false, reason: "Too long" }, { approved: false, reason: "Too long" }],
  ]) {
    test(`a plan is ${what}`, async () => {
      const { page, interrupt } = await asked("propose_plan", { steps: ["Search", "Report"] });
      assert.deepEqual(interrupt.metadata["agui-server.steps"].map(({ description }) => description), ["Search", "Report"]);
      assert.deepEqual(JSON.parse(await answered(page, answer)), expected);
    });
  }
});
