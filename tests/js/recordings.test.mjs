// Recordings: what the real client has received from the demo, it receives again from the recordings of these runs.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { HttpAgent } from "@ag-ui/client";

import { asJson } from "./ids.mjs";
import { asked, namesToIds } from "./play.mjs";
import { eventsOf, scenarios, title } from "./scenarios.mjs";
import { startServer } from "./server.mjs";

let folder;
let server;
/** The conversations with the demo, one for each scenario. */
let originals;

/** The messages, the state and the error after each turn. */
async function converse(agent, turns) {
  const after = [];
  for (const { question, tools } of turns) {
    agent.addMessage(question);
    let failure;
    await agent.runAgent({ runId: randomUUID(), tools }, { onRunErrorEvent: ({ event }) => void (failure = event.message) });
    after.push(asJson({ messages: agent.messages, state: agent.state, failure: failure ?? null }));
  }
  return after;
}

/** Plays a scenario with the demo. Returns its turns, with the messages that the client has sent, and what came. */
async function record(url, scenario) {
  const agent = new HttpAgent({ url: `${url}/send-message`, threadId: randomUUID() });
  const turns = [];
  const seen = [];
  let called = new Map();
  for (const turn of scenario.turns) {
    const question = asked(turn, called);
    const events = [];
    const subscriber = agent.subscribe({ onEvent: ({ event }) => void events.push(asJson(event)) });
    const played = { question, tools: turn.tools ?? [] };
    turns.push(played);
    seen.push(...(await converse(agent, [played])));
    subscriber.unsubscribe();
    const expected = eventsOf(turn, { threadId: agent.threadId, runId: "" });
    called = new Map([...called, ...namesToIds(expected, events)]);
  }
  return { threadId: agent.threadId, turns, seen };
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "agui-recordings-"));
  const demo = await startServer({ variables: { AGUI_RECORD__DIR: folder } });
  try {
    originals = await Promise.all(scenarios.map((scenario) => record(demo.url, scenario)));
  } finally {
    // The recordings are complete when the server has stopped.
    await demo.stop();
  }
  // One agent for each conversation: some scenarios begin with the same message.
  for (const [number, { threadId }] of originals.entries()) {
    const own = join(folder, `c${number}`);
    await mkdir(own);
    for (const name of (await readdir(folder)).filter((name) => name.endsWith(".jsonl"))) {
      const head = JSON.parse((await readFile(join(folder, name), "utf8")).split("\n")[0]);
      if (head.request.threadId === threadId) await rename(join(folder, name), join(own, name));
    }
  }
  const agents = originals.map((_, number) => `[agents.c${number}]\nkind = "replay"\ndir = "c${number}"\npace = 0.0\n`);
  const config = join(folder, "replay.toml");
  await writeFile(config, `default_agent = "c0"\n${agents.join("")}`);
  server = await startServer({ config });
});

after(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

for (const [number, scenario] of scenarios.entries()) {
  test(`${title(scenario)}: the recording gives HttpAgent the same messages and state`, async () => {
    const { turns, seen } = originals[number];
    const agent = new HttpAgent({ url: `${server.url}/agents/c${number}/send-message`, threadId: randomUUID() });
    assert.ok(seen.length > 0 && seen[0].messages.length > 0);
    assert.deepEqual(await converse(agent, turns), seen);
  });
}
