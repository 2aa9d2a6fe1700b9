// abortRun() also ends the run on the server. The server under test allows one run at a time: it refuses others while
// the run continues, and accepts them after the abort.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, mock, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { HttpAgent } from "@ag-ui/client";

import { startServer } from "./server.mjs";
import { run } from "./sse.mjs";

// The run takes 30 seconds by itself: if another run is accepted within ten seconds, the abort ended it.
const COUNT = "count to 300";
const POLLS = 100;
const POLL_EVERY_MS = 100;

let folder, server;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "agui-abort-"));
  const config = join(folder, "one-run.toml");
  await writeFile(config, "[runs]\nmax_concurrent = 1\n");
  server = await startServer({ config });
});
after(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

const hello = () => run(server.url, { threadId: randomUUID(), runId: randomUUID(), messages: [said("Hello")] });
const said = (content) => ({ id: randomUUID(), role: "user", content });

test("abortRun() during a run ends it on the server, which then accepts the next run", async () => {
  const agent = new HttpAgent({ url: `${server.url}/send-message`, initialMessages: [said(COUNT)] });
  const complaints = ["warn", "error"].map((method) => mock.method(console, method, () => {}));
  const errors = [];
  let running;
  const underWay = new Promise((resolve) => {
    let deltas = 0;
    running = agent.runAgent(undefined, {
      onTextMessageContentEvent: () => void (++deltas === 3 && resolve()),
      onRunErrorEvent: ({ event }) => void errors.push(event),
    });
  });
  await Promise.race([underWay, running.then(() => assert.fail("the run ended before it was aborted"))]);

  const refused = await hello();
  assert.equal(refused.status, 503, "a second run at the limit of concurrent runs");
  assert.match(refused.headers.get("retry-after") ?? "", /^[1-9]\d*$/, "Retry-After is a number of seconds");
  assert.match(refused.headers.get("content-type"), /^application\/json\b/);
  assert.equal(typeof JSON.parse(refused.text), "object", "a refusal has a JSON body");

  agent.abortRun();
  const { newMessages } = await running;
  assert.deepEqual(errors.map(({ code }) => code), ["abort"], "the error code of the client");
  assert.match(newMessages[0].content, /^1 2 3 /, "the received text is kept");
  assert.doesNotMatch(newMessages[0].content, / 90 /, "no text arrives after the abort");

  const statuses = [];
  while (statuses.at(-1) !== 200 && statuses.length < POLLS) {
    if (statuses.length > 0) await pause(POLL_EVERY_MS);
    statuses.push((await hello()).status);
  }
  assert.equal(statuses.at(-1), 200, `a new run after the abort got ${statuses.join(", ")}`);
  const lines = complaints.flatMap(({ mock: { calls } }) => calls.map(({ arguments: words }) => words.join(" ")));
  assert.deepEqual(lines, []);
});
