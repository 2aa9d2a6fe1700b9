// Checks the text encoding against the schemas of @ag-ui/core and the examples of the specification documents.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { identify } from "./ids.mjs";
import { play } from "./play.mjs";
import { scenarios, title } from "./scenarios.mjs";
import { startServer } from "./server.mjs";
import { parse, SSE } from "./sse.mjs";
import { problemsOfCapabilities, problemsOfEvent } from "./strict.mjs";

describe("the server", () => {
  let server;
  before(async () => (server = await startServer()));
  after(() => server?.stop());

  for (const scenario of scenarios) {
    test(`${title(scenario)}: every event fits the schema, and the stream is the documented one`, async () => {
      const played = await play(server.url, scenario);
      const problems = [];
      const opened = [];
      for (const { answer, expected } of played) {
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.headers.get("content-type"), SSE);
        for (const event of answer.events) {
          problems.push(...problemsOfEvent(event).map((problem) => `${JSON.stringify(event)}: ${problem}`));
          if (event.type === "TEXT_MESSAGE_START" || event.type === "TOOL_CALL_RESULT") opened.push(event.messageId);
          if (event.type === "TOOL_CALL_START") opened.push(event.toolCallId);
        }
        assert.deepEqual(identify(answer.events).value, identify(expected).value);
      }
      assert.deepEqual(problems, []);
      assert.equal(new Set(opened).size, opened.length, "no id is used twice in a conversation");
    });
  }

  test("GET /agents/{agent}/capabilities fits the schema, for every agent", async () => {
    const { agents } = await (await fetch(`${server.url}/agents`)).json();
    assert.deepEqual(agents.map(({ name }) => name), ["demo"]);
    for (const { name } of agents) {
      const response = await fetch(`${server.url}/agents/${name}/capabilities`);
      assert.equal(response.status, 200);
      assert.match(response.headers.get("content-type"), /^application\/json\b/);
      const capabilities = await response.json();
      assert.deepEqual(problemsOfCapabilities(capabilities), []);
      assert.equal(capabilities.transport.streaming, true);
      assert.equal(capabilities.transport.httpBinary, true, "the server supports the binary encoding");
    }
  });
});

// The tests above and corpus.test.mjs depend on these parsers: they must reject invalid input.
describe("the strict parsers", () => {
  const bad = {
    "an unknown member": [{ type: "STEP_STARTED", stepName: "a", extra: 1 }, "/extra"],
    "an unknown member inside a message": [
      { type: "MESSAGES_SNAPSHOT", messages: [{ id: "1", role: "user", content: [{ type: "text", text: "", x: 1 }] }] },
      "/messages/0/content/0/x",
    ],
    "an unknown member inside the echoed input": [
      { type: "RUN_STARTED", threadId: "t", runId: "r", input: { threadId: "t", runId: "r", messages: [], x: 1 } },
      "/input/x",
    ],
    "an unknown member named like a method of every object": [{ type: "STEP_STARTED", stepName: "a", toString: 1 }, "/toString"],
    "null in an optional position": [{ type: "STEP_STARTED", stepName: "a", timestamp: null }, "/timestamp"],
    "a missing member": [{ type: "TEXT_MESSAGE_CONTENT", messageId: "a" }, "/delta"],
    "an unknown type": [{ type: "THINKING_START" }, "/type"],
  };
  for (const [what, [event, path]] of Object.entries(bad)) {
    test(`an event with ${what} is rejected`, () => {
      const [problem, ...more] = problemsOfEvent(event);
      assert.ok(problem?.startsWith(`${path}: `), problem);
      assert.deepEqual(more, []);
    });
  }

  test("open JSON may have any content", () => {
    const open = { a: null, b: [{ c: 1 }] };
    const events = [
      { type: "STATE_SNAPSHOT", snapshot: open, metadata: open, rawEvent: open },
      { type: "STATE_SNAPSHOT", snapshot: null },
      { type: "ACTIVITY_SNAPSHOT", messageId: "a", activityType: "b", content: open },
      { type: "STATE_DELTA", delta: [{ op: "add", path: "/a", value: open }] },
      { type: "CUSTOM", name: "a", value: null },
    ];
    assert.deepEqual(events.flatMap(problemsOfEvent), []);
  });

  for (const [what, stream] of Object.entries({
    "CR LF": 'data: {"a":1}\r\n\r\n',
    "two data lines": "data: {\ndata: }\n\n",
    "no space after the colon": "data:{}\n\n",
    "an event name": "event: a\ndata: {}\n\n",
    "a cut frame": "data: {}\n\ndata: {",
    "an extra empty line": "data: {}\n\n\n",
  })) {
    test(`a stream with ${what} is rejected`, () => assert.throws(() => parse(stream)));
  }

  test("comments are not events", () => assert.deepEqual(parse(': keep-alive\n\ndata: {"a":1}\n\n:\n\n'), [{ a: 1 }]));
});
