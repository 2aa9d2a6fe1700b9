// A subagent asks a person: the run ends with its question, and the answer continues inside it, also on a server that was killed
// in between.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { startModel } from "./models.mjs";
import { restartableServer } from "./restart.mjs";
import { Page, textOf } from "./threads.mjs";

const agent = (name, url, tools) => ({
  [`AGUI_AGENTS__${name}__KIND`]: "llm",
  [`AGUI_AGENTS__${name}__DESCRIPTION`]: "Knows the sizes.",
  [`AGUI_AGENTS__${name}__PROVIDER`]: "openai",
  [`AGUI_AGENTS__${name}__API`]: "chat",
  [`AGUI_AGENTS__${name}__MODEL`]: "m",
  [`AGUI_AGENTS__${name}__BASE_URL`]: `${url}/v1`,
  [`AGUI_AGENTS__${name}__TOOLS`]: tools,
});

/** A server with an agent whose subagent asks for a size, and a page on which it has asked. */
async function asked(t) {
  const model = await startModel();
  t.after(() => model.stop());
  const [sentence, task] = [`order ${randomUUID()}`, `size ${randomUUID()}`];
  const says = (text, has) => ({ messages }) => JSON.stringify(messages).includes(text) && messages.some(({ role }) => role === "tool") === has;
  const call = (name, args) => ({ toolCalls: [{ name, arguments: JSON.stringify(args) }] });
  model.on({ predicate: says(sentence, false) }, call("clerk", { task }));
  model.on({ predicate: says(sentence, true) }, { content: "It is ordered." });
  model.on({ predicate: says(task, false) }, call("ask_user", { question: "Which size?", schema: { type: "string", enum: ["S", "L"] } }));
  model.on({ predicate: says(task, true) }, { content: "The size is known." });
  const agents = { ...agent("CHIEF", model.url, "agent:clerk"), ...agent("CLERK", model.url, "ask_user") };
  const server = await restartableServer(t, { ...agents, AGUI_DEFAULT_AGENT: "chief" });
  const page = new Page(server, {});
  const { events, finished } = await page.say(sentence);
  assert.deepEqual(finished, ["interrupt"]);
  const [interrupt] = page.pendingInterrupts;
  const [started] = events.filter(({ type }) => type === "SUBAGENT_STARTED");
  const [ended] = events.filter(({ type }) => type === "SUBAGENT_FINISHED");
  assert.equal(interrupt.message, "Which size?");
  assert.equal(interrupt.subagentRunId, started.subagentRunId);
  assert.deepEqual(ended.outcome, { type: "suspended", interruptIds: [interrupt.id] });
  return { model, server, page, started };
}

/** Answers the question, and requires that the subagent continued with its own conversation. */
async function answered({ model, page, started }) {
  const before = model.received.length;
  assert.deepEqual((await page.answer("XL")).errors, ["invalid_resume_payload"]);
  const { events, finished } = await page.answer("L");
  assert.deepEqual(finished, ["success"]);
  const of = (type) => events.filter((event) => event.type === type);
  assert.deepEqual(of("SUBAGENT_STARTED").map(({ subagentRunId }) => subagentRunId), [started.subagentRunId]);
  assert.equal(textOf(events), "The size is known.It is ordered.");
  assert.deepEqual(of("TOOL_CALL_RESULT").map(({ content }) => content), ["L", "The size is known."]);
  const requests = model.received.slice(before).map(({ body }) => body.messages.filter(({ role }) => role !== "system").map(({ role }) => role));
  assert.deepEqual(requests, [["user", "assistant", "tool"], ["user", "assistant", "tool"]], "nothing was asked twice");
  await page.requireStored();
}

test("the answer continues inside the subagent", async (t) => answered(await asked(t)));

test("the answer continues inside the subagent on a server that was killed, from a page that was reloaded", async (t) => {
  const all = await asked(t);
  await all.server.crash();
  const page = new Page(all.server, { threadId: all.page.threadId });
  await page.comeBack();
  assert.deepEqual(page.pendingInterrupts, all.page.pendingInterrupts);
  await answered({ ...all, page });
});
