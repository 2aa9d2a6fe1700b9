// A remote agent: an endpoint written in Python with the package ag-ui-protocol (tests/py/endpoint.py) behind the
// server. Clients see a thread of this server, and only AG-UI 1.1.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { CONTINUE, Page, deltas, follow, post, readThread, said, textOf, typesOf, useServer, withoutVersion } from "./threads.mjs";

const PYTHON = fileURLToPath(new URL("../.venv/bin/python", import.meta.url));
const ENDPOINT = fileURLToPath(new URL("../py/endpoint.py", import.meta.url));

// At module level, because the `before` hooks of one file do not wait for each other.
const { endpoint, folder, config } = await configured();
const server = useServer(() => ({ config }));
after(async () => {
  endpoint.stdin.end();
  if (endpoint.exitCode === null) await once(endpoint, "exit");
  await rm(folder, { recursive: true });
});

/** Starts the endpoint and writes the configuration of a server in front of it. */
async function configured() {
  const python = process.env.AGUI_PYTHON ?? PYTHON;
  assert.ok(existsSync(python), `there is no ${python}: tests/run.sh installs it, or name one in AGUI_PYTHON`);
  const endpoint = spawn(python, [ENDPOINT], { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = await once(endpoint.stdout.setEncoding("utf8"), "data");
  process.env.AGUI_TEST_UPSTREAM_TOKEN = "Bearer ours";
  const folder = await mkdtemp(join(tmpdir(), "agui-remote-"));
  const config = join(folder, "remote.toml");
  const agent = `[agents.python]
kind = "remote"
url = "${line.trim()}"
headers_env = { Authorization = "AGUI_TEST_UPSTREAM_TOKEN" }
pass_headers = ["X-Tenant"]
`;
  await writeFile(config, agent);
  return { endpoint, folder, config };
}

const OFFERED = [{ name: "pick_colour", description: "Picks a colour", parameters: { type: "object" } }];

const last = (events) => events.at(-1);

test("a conversation with reasoning, a tool of the agent, state and usage", async () => {
  const page = new Page(server);
  const { events, finished } = await page.say("What's the weather?");
  assert.deepEqual(finished, ["success"]);
  assert.deepEqual(typesOf(events).filter((type) => !/_(CONTENT|ARGS)$/.test(type)), [
    "RUN_STARTED",
    "STEP_STARTED",
    "REASONING_START",
    "REASONING_MESSAGE_START",
    "REASONING_MESSAGE_END",
    "REASONING_END",
    "TOOL_CALL_START",
    "TOOL_CALL_END",
    "TOOL_CALL_RESULT",
    "STATE_SNAPSHOT",
    "CUSTOM",
    "STEP_FINISHED",
    "TEXT_MESSAGE_START",
    "TEXT_MESSAGE_END",
    "RUN_FINISHED",
  ]);
  assert.equal(events.find(({ type }) => type === "CUSTOM").value, null);
  const { result, usage, threadId } = last(events);
  assert.deepEqual(result, { python: true, nothing: null });
  assert.deepEqual(usage, [{ provider: "acme", model: "x", inputTokens: 1, outputTokens: 1 }]);
  assert.equal(threadId, page.threadId);
  assert.deepEqual(page.state, { asked: 1, nothing: null });

  await page.say("And the weather now?");
  assert.deepEqual(page.state, { asked: 2, nothing: null });
  const stored = await page.requireStored();
  const roles = ["user", "reasoning", "assistant", "tool", "assistant"];
  assert.deepEqual(stored.messages.map(({ role }) => role), [...roles, ...roles]);
});

test("the agent receives the whole thread, also from a client that sends only new messages", async () => {
  const page = new Page(server);
  await page.say("Hello");
  const { events } = await post(server, { threadId: page.threadId, messages: [said("Hello again")] });
  assert.equal(textOf(events), "user, assistant, user; {} ");
});

test("a tool of the application is called, and its result reaches the agent", async () => {
  const page = new Page(server);
  const { events } = await page.say("pick a colour", { tools: OFFERED });
  const [call] = page.messages.at(-1).toolCalls;
  assert.equal(call.function.name, "pick_colour");
  assert.deepEqual(last(events).outcome, { type: "success", pendingToolCallIds: [call.id] });
  page.addMessage({ ...said("blue"), role: "tool", toolCallId: call.id });
  const answer = await page.say(undefined, { tools: OFFERED });
  assert.equal(textOf(answer.events), "You picked blue. ");
  await page.requireStored();
});

for (const [answer, says] of [
  [{ approved: true }, "It was sent. "],
  [{ approved: false }, "It was not sent. "],
  ["cancelled", "It was not sent. "],
]) {
  test(`an interrupt of the agent is stored and answered: ${JSON.stringify(answer)}`, async () => {
    const page = new Page(server);
    const { finished } = await page.say("approve");
    assert.deepEqual(finished, ["interrupt"]);
    const { interrupts } = await page.requireStored();
    assert.deepEqual(interrupts.map(({ message }) => message), ["Send it?"]);
    const { events } = await page.answer(answer);
    assert.equal(textOf(events), says);
    const stored = await page.requireStored();
    assert.deepEqual(stored.interrupts, []);
    assert.deepEqual(stored.messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
  });
}

test("a failure of the agent ends the run with its usage; a broken stream is an error, not an end", async () => {
  const page = new Page(server);
  const failed = await page.say("fail");
  assert.deepEqual(typesOf(failed.events).slice(1), ["TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "RUN_ERROR"]);
  const { message, code, usage } = last(failed.events);
  const cost = [{ provider: "acme", model: "x", inputTokens: 7 }];
  assert.deepEqual({ message, code, usage }, { message: "No tea.", code: "no_tea", usage: cost });
  const crashed = await page.say("crash");
  assert.equal(last(crashed.events).code, "remote_incomplete");
  assert.equal(textOf(crashed.events), "Oh ");
  assert.deepEqual((await page.requireStored()).runs.map(({ status }) => status), ["failed", "failed"]);
});

test("a page that leaves ends the request to the agent, and a page that returns finds the text so far", async () => {
  const page = new Page(server);
  await page.leaveAfter(3, "talk for ever");
  await page.comeBack();
  const stored = await page.requireStored();
  assert.match(stored.messages[1].content, /^x{3000}/);
  const count = async () => textOf((await post(server, { threadId: "counts", messages: [said("told")] })).events);
  const deadline = Date.now() + 20_000;
  while (!(await count()).endsWith(", 1 left ")) {
    assert.ok(Date.now() < deadline, "the endpoint still sends");
    await pause(50);
  }
});

test("a detached run of a remote agent can be followed", async () => {
  const page = new Page(server);
  const { events } = await page.say("What's the weather?", { runId: "detached", forwardedProps: CONTINUE });
  const again = await follow(server, page.threadId, "detached");
  assert.deepEqual(withoutVersion(again.events), withoutVersion(events));
});

test("the agent receives only the headers that the configuration names", async () => {
  const headers = { "X-Tenant": "acme", Authorization: "Bearer theirs", Cookie: "c=1" };
  const page = new Page(server, { headers });
  const { events } = await page.say("who am I?");
  assert.equal(textOf(events), "acme Bearer ours None ");
});

test("a cancelled run ends with the outcome cancelled", async () => {
  const page = new Page(server);
  const heard = deltas(2);
  const saying = page.say("talk for ever", { runId: "long" }, heard);
  await heard.kept;
  const path = `/threads/${page.threadId}/runs/long/cancel`;
  assert.equal((await fetch(server.url + path, { method: "POST" })).status, 202);
  assert.deepEqual((await saying).finished, ["cancelled"]);
  assert.equal((await readThread(server, page.threadId)).runs[0].status, "cancelled");
});
