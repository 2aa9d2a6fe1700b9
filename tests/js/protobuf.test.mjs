// The binary encoding carries the same conversations as the text encoding.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { request } from "node:http";
import { after, before, describe, test } from "node:test";

import { HttpAgent } from "@ag-ui/client";
import { AGUI_MEDIA_TYPE, decode } from "@ag-ui/proto";

import { testConversations } from "./conversations.mjs";
import { asJson, identify } from "./ids.mjs";
import { play } from "./play.mjs";
import { scenarios, title } from "./scenarios.mjs";
import { startServer } from "./server.mjs";
import { post, run as runSse, SSE } from "./sse.mjs";

const BOTH = `${AGUI_MEDIA_TYPE}, ${SSE}`;

/** Parses frames: a length of four bytes, big-endian, and an event each. */
function parseFrames(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const events = [];
  let at = 0;
  while (at < bytes.length) {
    assert.ok(at + 4 <= bytes.length, "a frame has a complete length");
    const length = view.getUint32(at);
    at += 4;
    assert.ok(length > 0 && at + length <= bytes.length, "a frame has as many bytes as its length says");
    events.push(asJson(decode(bytes.subarray(at, at + length))));
    at += length;
  }
  return events;
}

async function runProtobuf(url, input) {
  const { status, headers, bytes } = await post(url, input, { accept: BOTH });
  assert.equal(status, 200);
  assert.equal(headers.get("content-type"), AGUI_MEDIA_TYPE, "the exact media type: the client compares it as a whole");
  return { status, headers, events: parseFrames(bytes) };
}

const hello = () => ({
  threadId: randomUUID(),
  runId: randomUUID(),
  messages: [{ id: randomUUID(), role: "user", content: "Hello" }],
});

describe("the bytes", () => {
  let server;
  before(async () => (server = await startServer()));
  after(() => server?.stop());

  for (const scenario of scenarios) {
    test(`${title(scenario)}: decoded, the binary events are those of the text stream`, async () => {
      const [binary, text] = await Promise.all([
        play(server.url, scenario, runProtobuf),
        play(server.url, scenario, runSse),
      ]);
      const shared = { threadId: "thread", runId: "run" };
      const eventsOf = (played) =>
        played.map(({ answer }) => answer.events.map((event) => (event.threadId ? { ...event, ...shared } : event)));
      assert.deepEqual(identify(eventsOf(binary)).value, identify(eventsOf(text)).value);
    });
  }

  for (const accept of ["*/*", SSE, `${SSE}, ${AGUI_MEDIA_TYPE};q=0`]) {
    test(`Accept: ${accept} gets text`, async () => {
      const { status, headers, events } = await runSse(server.url, hello(), { accept });
      assert.equal(status, 200);
      assert.equal(headers.get("content-type"), SSE);
      assert.equal(events.at(-1).type, "RUN_FINISHED");
    });
  }

  // fetch() always sends Accept, so this test uses node:http.
  test("no Accept gets text", async () => {
    const contentType = await new Promise((resolve, reject) => {
      const outgoing = request(`${server.url}/send-message`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
      });
      outgoing.on("response", (response) => {
        response.resume().on("end", () => resolve(response.headers["content-type"]));
      });
      outgoing.on("error", reject).end(JSON.stringify(hello()));
    });
    assert.equal(contentType, SSE);
  });

  test("a refused request gets JSON also if the client accepts the binary encoding", async () => {
    const { status, headers } = await post(server.url, { threadId: 1 }, { accept: BOTH });
    assert.ok(status >= 400 && status < 500, `status ${status}`);
    assert.match(headers.get("content-type"), /^application\/json\b/);
  });
});

describe("@ag-ui/client 1.0.0 with the binary encoding", () => {
  /** HttpAgent reads both encodings, but requests text unless its request is overridden. */
  class BinaryAgent extends HttpAgent {
    constructor(options) {
      super({ ...options, fetch: fetchBinary });
    }

    requestInit(input) {
      const init = super.requestInit(input);
      return { ...init, headers: { ...init.headers, Accept: BOTH } };
    }
  }

  async function fetchBinary(url, init) {
    const response = await fetch(url, init);
    assert.equal(response.headers.get("content-type"), AGUI_MEDIA_TYPE);
    return response;
  }

  testConversations((options) => new BinaryAgent(options));
});
