// A client that sends only what is new, as gentui (PyPI) does; tests/py/new_messages_client.py says why it is not gentui.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { countTo, readThread, useServer } from "./threads.mjs";

const PYTHON = fileURLToPath(new URL("../.venv/bin/python", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../py/new_messages_client.py", import.meta.url));

const server = useServer();

/** Runs all conversations of the program once. */
let conversations;
async function conversation(name) {
  const python = process.env.AGUI_PYTHON ?? PYTHON;
  assert.ok(existsSync(python), `there is no ${python}: tests/run.sh installs it, or name one in AGUI_PYTHON`);
  conversations ??= promisify(execFile)(python, [PROGRAM, `${server.url}/send-message`]);
  const { stdout } = await conversations;
  const result = JSON.parse(stdout)[name];
  return { ...result, stored: await readThread(server, result.thread) };
}

const said = (messages) => messages.map(({ role, content }) => `${role}: ${content}`);

test("each new message continues the thread, and the client receives the messages that it does not send", async () => {
  const { texts, received, stored } = await conversation("text");
  assert.equal(texts[1], "1 2 3");
  assert.deepEqual(said(stored.messages), ["user: Hello", `assistant: ${texts[0]}`, "user: count to 3", `assistant: ${texts[1]}`]);
  assert.deepEqual(said(received), said(stored.messages).slice(0, 3));
});

test("the empty state of each request does not replace the thread's", async () => {
  const { states, stored } = await conversation("state");
  assert.ok(Object.keys(stored.state).length > 0, JSON.stringify(stored.state));
  assert.deepEqual(states.map(({ snapshot }) => snapshot), [stored.state]);
});

test("an interrupt is answered without a message", async () => {
  const { texts, outcome, stored } = await conversation("interrupts");
  assert.deepEqual(texts, ['The e-mail "Lunch": sent to ada@example.com.']);
  assert.equal(outcome, "success");
  assert.deepEqual(stored.runs.map(({ status }) => status), ["finished", "interrupted"]);
  assert.deepEqual(stored.interrupts, []);
});

test("a tool of the program is run, and its result alone continues the thread", async () => {
  const { texts, stored, ...seen } = await conversation("tools");
  assert.deepEqual(JSON.parse(seen.arguments), { keyword: "report" });
  assert.deepEqual(texts, ["Found 2 files: a.txt and b.txt"]);
  assert.deepEqual(stored.messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
});

test("a picture is stored, and its URL has the same bytes", async () => {
  const { texts, is_same: isSame, stored } = await conversation("picture");
  assert.deepEqual(texts, ["Hello! How can I help you?"]);
  assert.equal(isSame, true);
  assert.deepEqual(stored.messages[0].content.map(({ type }) => type), ["text", "image"]);
});

test("the rest of a run comes after a broken connection", async () => {
  const { texts, stored } = await conversation("cut");
  assert.equal(texts[0].trim(), "1 2 3");
  assert.equal(texts[1], countTo(40));
  assert.deepEqual(stored.runs.map(({ status }) => status), ["finished"]);
});
