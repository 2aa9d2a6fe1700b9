// The log of a run as a read-only stream of the Durable Streams protocol: with its client, and with its conformance tests
// for servers.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { DurableStream, stream } from "@durable-streams/client";
import { startVitest } from "vitest/node";

import { startAdapter } from "./durable-streams-adapter.mjs";
import { startServer } from "./server.mjs";
import { CONTINUE, Page, countTo, follow, post, range, said, textOf, typesOf } from "./threads.mjs";

const adapter = await startAdapter();
const folder = await mkdtemp(join(tmpdir(), "agui-durable-"));
const config = join(folder, "durable.toml");
await writeFile(
  config,
  `default_agent = "adapter"

[runs]
max_detached = 2000

[agents.adapter]
kind = "remote"
url = "${adapter.agentUrl}"

[agents.demo]
kind = "script"
script = "${fileURLToPath(new URL("../../config/scripts/demo.toml", import.meta.url))}"
`,
);
const server = await startServer({ config });
adapter.target = server.url;
after(async () => {
  adapter.close();
  await server.stop();
  await rm(folder, { recursive: true });
});

const COUNT = 15;

/** Starts a detached run that takes 1.5 s, and leaves it. Returns the URL of its log. */
async function counting() {
  const page = new Page(server, { url: `${server.url}/agents/demo/send-message` });
  const runId = randomUUID();
  await page.leaveAfter(3, `count to ${COUNT}`, { runId, forwardedProps: CONTINUE });
  return { threadId: page.threadId, runId, url: `${server.url}/threads/${page.threadId}/runs/${runId}/log` };
}

for (const live of ["long-poll", "sse"]) {
  test(`the client reads a running run to its end (${live})`, async () => {
    const { threadId, runId, url } = await counting();
    const response = await stream({ url, offset: "-1", live, json: true });
    const events = [];
    for await (const event of response.jsonStream()) events.push(event);
    assert.equal(textOf(events), countTo(COUNT));
    assert.equal(events.at(-1).type, "RUN_FINISHED");
    assert.deepEqual(events, (await follow(server, threadId, runId)).events);
    assert.ok(response.streamClosed);
  });
}

test("the client reads an ended run from its start and from an offset in the middle", async () => {
  const { threadId, runId, url } = await counting();
  const { events } = await follow(server, threadId, runId);
  const log = await DurableStream.connect({ url });
  assert.deepEqual(await (await log.stream({ live: false, json: true })).json(), events);
  const { offset, streamClosed, contentType } = await log.head();
  assert.deepEqual({ streamClosed, contentType }, { streamClosed: true, contentType: "application/json" });
  assert.deepEqual(await (await stream({ url, offset, live: false, json: true })).json(), []);
  const middle = String(4).padStart(offset.length, "0");
  assert.deepEqual(await (await stream({ url, offset: middle, live: false, json: true })).json(), events.slice(4));
  await assert.rejects(log.append("{}"), "the log is read-only");
});

/** The conformance tests that are about reading. All others are about creating, appending, closing, forking and expiring. */
const READING = [
  /^(Read Operations|Long-Poll|HEAD Metadata|Offset Validation|Caching and ETag|Chunking|Read-Your-Writes|SSE Mode|JSON Mode)/,
  /^Browser Security Headers/,
  /^(HTTP Protocol|Content-Type Validation) > .*( on GET|read from offset|empty body)/,
  /^Protocol Edge Cases > .*(immutability|offset|query parameters)/,
  /> (Byte-Exactness|Operation Sequence|Immutability|Offset Validation|State Hash)/,
  /^Stream Closure > (HEAD|Read|Long-poll|SSE|Edge Cases > offset-now)/,
];

/** Those of them that the log does not pass: their number, and the reason. docs/protocol.md states them. */
const EXCEPTIONS = [
  [/on (PUT|POST) responses/, 2, "about responses to writes"],
  [/base64|binary/, 7, "the log is JSON, never binary"],
  [/TTL metadata/, 1, "streams are not created by clients, so they choose no TTL"],
];
const PASSED = 123;

test("the log passes the conformance tests of reading", async (t) => {
  const results = new Map();
  const onTestCaseResult = (result) => results.set(result.fullName, result.result());
  process.env.CONFORMANCE_TEST_URL = adapter.url;
  const vitest = await startVitest("test", [], {
    root: fileURLToPath(new URL(".", import.meta.url)),
    config: false,
    watch: false,
    include: ["durable-streams-conformance.mjs"],
    reporters: [{ onTestCaseResult }],
    testNamePattern: /^(?!Fork|TTL|Idempotent|Append|Basic)/,
    testTimeout: 120_000,
    sequence: { concurrent: true },
  });
  await vitest.close();
  process.exitCode = 0;
  const isReading = (name) => READING.some((pattern) => pattern.test(name));
  const reading = [...results].filter(([name]) => isReading(name));
  const failed = reading.filter(([, { state }]) => state !== "passed").map(([name]) => name);
  const unexpected = failed.filter((name) => !EXCEPTIONS.some(([pattern]) => pattern.test(name)));
  assert.deepEqual(unexpected.map((name) => [name, results.get(name).errors?.[0]?.message]), []);
  t.diagnostic(`${reading.length - failed.length} of ${reading.length} tests of reading, of ${results.size} in all`);
  for (const [pattern, count, reason] of EXCEPTIONS) {
    const names = failed.filter((name) => pattern.test(name));
    t.diagnostic(`${names.length} are not passed: ${reason}`);
    assert.equal(names.length, count, names.join("\n"));
  }
  assert.equal(reading.length - failed.length, PASSED);
});
