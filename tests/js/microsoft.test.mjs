// The client of Microsoft's Agent Framework (PyPI: agent-framework-ag-ui), unchanged.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { readThread, useServer } from "./threads.mjs";

const PYTHON = fileURLToPath(new URL("../.venv-agent-framework/bin/python", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../py/agent_framework_client.py", import.meta.url));

const server = useServer();

/** Runs all conversations of the program once. */
let conversations;
async function conversation(name) {
  const python = process.env.AGUI_AGENT_FRAMEWORK_PYTHON ?? PYTHON;
  assert.ok(existsSync(python), `there is no ${python}: tests/run.sh installs it, or name one in AGUI_AGENT_FRAMEWORK_PYTHON`);
  conversations ??= promisify(execFile)(python, [PROGRAM, `${server.url}/send-message`]);
  const { stdout } = await conversations;
  const result = JSON.parse(stdout)[name];
  const { messages, runs } = await readThread(server, result.thread);
  const stored = messages.map(({ role, content }) => `${role}: ${content}`);
  return { ...result, stored, statuses: runs.map(({ status }) => status) };
}

test("a client that sends only new messages continues the thread", async () => {
  const { texts, stored } = await conversation("text");
  assert.deepEqual(texts, ["Hello! How can I help you?", "1 2 3"]);
  assert.deepEqual(stored, ["user: Hello", `assistant: ${texts[0]}`, "user: count to 3", `assistant: ${texts[1]}`]);
});

test("a tool of the client is run, and no message is stored twice although each request renames the user's", async () => {
  const { texts, stored, statuses } = await conversation("tools");
  const weather = "Rain in Paris, 12°C";
  const answer = `The weather in Paris: ${weather}`;
  assert.ok(texts[0].endsWith(answer), texts[0]);
  assert.deepEqual(stored, [
    "user: What's the weather like in Paris?",
    "assistant: Let me check",
    `tool: ${weather}`,
    `assistant: ${answer}`,
    "user: Hello",
    `assistant: ${texts[1]}`,
  ]);
  assert.deepEqual(statuses, ["finished", "finished", "finished"]);
});

test("an interrupt is answered", async () => {
  const { interrupts, texts, stored, statuses } = await conversation("interrupts");
  assert.equal(interrupts.length, 1);
  assert.deepEqual(texts, ['The e-mail "Lunch": sent to ada@example.com.']);
  assert.deepEqual(stored.slice(-2), ["tool: sent to ada@example.com", `assistant: ${texts[0]}`]);
  assert.deepEqual(statuses, ["finished", "interrupted"]);
});
