// Agents of Pydantic AI, LlamaIndex, Strands and Agno as remote agents: one walk for all. The endpoints are in frameworks.py.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { configFile } from "../js/models.mjs";
import { Page, said, textOf, useServer } from "../js/threads.mjs";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const PYTHON = path("../.venv-frameworks/bin/python");

/** Starts the endpoints. They end with their standard input. */
async function startFrameworks() {
  const child = spawn(PYTHON, [path("frameworks.py")], { stdio: ["pipe", "pipe", "inherit"] });
  const [url] = await once(child.stdout, "data");
  const stop = async () => {
    child.stdin.end();
    if (child.exitCode === null) await once(child, "exit");
  };
  return { url: url.toString().trim(), stop };
}

const reason = existsSync(PYTHON) ? false : `${PYTHON} is missing: see tests/run.sh`;

describe("frameworks in Python", { skip: reason }, () => {
  let endpoints, file;
  before(async () => {
    endpoints = await startFrameworks();
    const agent = (name, at) => `[agents.${name}]\nkind = "remote"\nurl = "${endpoints.url}${at}"\n`;
    const paths = { "pydantic-ai": "/pydantic-ai", "llama-index": "/llama-index/run", strands: "/strands", agno: "/agno/agui" };
    const agents = Object.entries(paths).map(([name, at]) => agent(name, at));
    file = await configFile(`default_agent = "agno"\n${agents.join("")}`);
  });
  const server = useServer(() => ({ config: file.config }));
  after(() => Promise.all([endpoints?.stop(), file?.remove()]));

  const open = (agent) => new Page(server, { url: `${server.url}/agents/${agent}/send-message` });
  const lastCall = (page) => page.messages.findLast(({ toolCalls }) => toolCalls?.length).toolCalls.at(-1);
  const result = (events) => events.find(({ type }) => type === "TOOL_CALL_RESULT")?.content;

  // Agno reads the newest message alone, and remembers by thread: with `thread_ids = "branch"` an edit begins anew.
  for (const agent of ["pydantic-ai", "llama-index", "strands", "agno"]) {
    const afterEdit = agent === "agno" ? "cherry" : "apple, cherry";
    test(`${agent}: a message, a tool, a second message, an edit`, async () => {
      const page = open(agent);
      assert.equal(textOf((await page.say("apple")).events).trim(), "I remember: apple");
      const { events, finished } = await page.say("weather Paris");
      // LlamaIndex has the result in a snapshot.
      assert.match(page.messages.find(({ role }) => role === "tool").content, /Sunny in Paris/);
      assert.equal(textOf(events).trim(), "The tool says: Sunny in Paris");
      assert.deepEqual(finished, ["success"]);
      assert.equal(textOf((await page.say("plum")).events).trim(), "I remember: apple, weather Paris, plum");
      await page.requireStored();

      const tools = [{ name: "pick", description: "Picks a colour", parameters: { type: "object", properties: {} } }];
      await page.say("pick red", { tools });
      page.addMessage({ id: randomUUID(), role: "tool", toolCallId: lastCall(page).id, content: "picked" });
      assert.equal(textOf((await page.say(undefined, { tools })).events).trim(), "The tool says: picked");
      const { messages } = await page.requireStored();
      assert.equal(messages.filter(({ role }) => role === "user").length, 4);
      assert.deepEqual(messages.filter(({ role }) => role === "tool").length, 2);

      page.setMessages([...page.messages.slice(0, 2), said("cherry")]);
      assert.equal(textOf((await page.say()).events).trim(), `I remember: ${afterEdit}`);
      assert.doesNotMatch(JSON.stringify(page.messages), /tool_call>/);
      await page.requireStored();
    });
  }

  for (const approved of [true, false])
    test(`pydantic-ai: a call runs once, and only if a person agrees (${approved})`, async () => {
      const page = open("pydantic-ai");
      assert.deepEqual((await page.say("pay 5")).finished, ["interrupt"]);
      const { events, finished } = await page.answer({ approved });
      assert.deepEqual(finished, ["success"], JSON.stringify(events));
      assert.match(textOf(events), approved ? /The tool says: paid 5/ : /denied/);
      const { messages } = await page.requireStored();
      assert.equal(messages.filter(({ role }) => role === "tool").length, 1);
      assert.equal(textOf((await page.say("plum")).events).trim(), "I remember: pay 5, plum");
    });

  test("agno: a call that the page approves runs once, and is announced once", async () => {
    const page = open("agno");
    await page.say("pay 5");
    const { id } = lastCall(page);
    page.addMessage({ id: randomUUID(), role: "tool", toolCallId: id, content: JSON.stringify({ accepted: true }) });
    const { events } = await page.say();
    assert.match(result(events), /paid 5/);
    assert.equal(events.find(({ type }) => type === "TOOL_CALL_RESULT").toolCallId, id);
    assert.equal(textOf(events), "The tool says: paid 5");
    const { messages } = await page.requireStored();
    assert.equal(messages.flatMap(({ toolCalls = [] }) => toolCalls).length, 1);
    assert.equal(textOf((await page.say("plum")).events), "I remember: pay 5, plum");
  });
});
