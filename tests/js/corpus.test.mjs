// Compares the server's encoders and its model of a client with the reference packages. `cargo test --test rooms protocol::corpus`
// writes the Rust results for many events and streams; @ag-ui/core, @ag-ui/proto and @ag-ui/client check them here.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { mock, test } from "node:test";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";

import { AbstractAgent } from "@ag-ui/client";
import { encode } from "@ag-ui/proto";
import { from } from "rxjs";

import { asJson } from "./ids.mjs";
import { problemsOfEvent } from "./strict.mjs";

const FOLDER = resolve(process.env.AGUI_CORPUS ?? fileURLToPath(new URL("../../target/tmp/corpus", import.meta.url)));

function read(file) {
  const path = join(FOLDER, file);
  const hint = "`cargo test --test rooms protocol::corpus` writes it; AGUI_CORPUS names another folder";
  assert.ok(existsSync(path), `${path} is not there: ${hint}`);
  const cases = JSON.parse(readFileSync(path, "utf8"));
  assert.ok(Array.isArray(cases) && cases.length > 0, `${path} is a list of cases`);
  const names = cases.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length, `each case in ${path} has a name of its own`);
  return cases;
}

/** Checks all cases before it fails, so that one report lists all problems. */
async function requireNone(cases, problemsOf) {
  const problems = [];
  for (const each of cases) {
    for (const problem of await problemsOf(each)) problems.push(`${each.name}: ${problem}`);
  }
  assert.ok(problems.length === 0, `${problems.length} problems in ${cases.length} cases:\n${problems.join("\n")}`);
}

/** Returns what the packages write to the console while `task` runs: they report repaired input there. */
async function listening(task) {
  const words = [];
  const mocks = ["warn", "error"].map((method) =>
    mock.method(console, method, (...all) => words.push(`console.${method}: ${all.map(String).join(" ")}`)),
  );
  try {
    return { outcome: await task(), words };
  } finally {
    for (const each of mocks) each.mock.restore();
  }
}

const show = (value) => JSON.stringify(value);
const hex = (bytes) => Buffer.from(bytes).toString("hex");

/** Describes the first difference of two frames, with a few bytes around it: frames can be long. */
function difference(frame, expected) {
  let at = 0;
  while (frame[at] === expected[at]) at += 1;
  const part = (text) => `…${text.slice(Math.max(0, at - 16), at)}[${text.slice(at, at + 32)}]…`;
  return `at byte ${Math.floor(at / 2)} the frame has\n  ${part(frame)}, not\n  ${part(expected)}`;
}

test("every event fits the schema", () => requireNone(read("events.json"), ({ json }) => problemsOfEvent(json)));

test("in the text encoding every event is one data line with its JSON", () =>
  requireNone(read("events.json"), ({ json, sse }) => {
    const line = /^data: ([^\r\n]+)\n\n$/.exec(sse);
    if (!line) return [`this is no frame: ${show(sse)}`];
    const sent = JSON.parse(line[1]);
    return isDeepStrictEqual(sent, json) ? [] : [`sent ${show(sent)}, meant ${show(json)}`];
  }));

test("in the binary encoding every event has the bytes that @ag-ui/proto writes", () =>
  requireNone(read("events.json"), async ({ json, frame }) => {
    const { outcome, words } = await listening(() => {
      try {
        return encode(json);
      } catch (error) {
        return error;
      }
    });
    if (outcome instanceof Error) return [`@ag-ui/proto cannot encode it: ${outcome.message}`];
    const length = Buffer.alloc(4);
    length.writeUInt32BE(outcome.length);
    const expected = hex(length) + hex(outcome);
    return frame === expected ? words : [...words, difference(frame, expected)];
  }));

test("every event of every stream fits the schema", () =>
  requireNone(read("streams.json"), ({ events }) =>
    events.flatMap((event, index) =>
      problemsOfEvent(event).map((problem) => `event ${index}, ${event.type}${problem}`),
    ),
  ));

/** Plays recorded events through the steps that HttpAgent takes after parsing. */
class ReplayAgent extends AbstractAgent {
  constructor({ input, events }) {
    super({ threadId: input.threadId, initialMessages: input.messages, initialState: input.state ?? {} });
    this.events = events;
  }

  run() {
    return from(structuredClone(this.events));
  }
}

async function replay({ input, events }) {
  const agent = new ReplayAgent({ input, events });
  const { runId, tools, context, forwardedProps, resume } = input;
  let failure;
  const { words } = await listening(async () => {
    try {
      await agent.runAgent({ runId, tools, context, forwardedProps, resume });
    } catch (error) {
      failure = error;
    }
  });
  return { agent, failure, words };
}

/**
 * Allowed warnings: the streams are those for clients of 1.1; a patch that does not apply, and text for a message that a snapshot removed. The streams contain
 * both on purpose. Any other warning, such as a stripped member, is an error of the server.
 */
const DELIBERATE =
  /^console\.warn: (\[ag-ui\] The producer speaks protocol 1\.1;|.*Removed unrecognised material at '[^']*\/encryptedValueType' on |Failed to apply (state|activity) patch|(TEXT_MESSAGE|TOOL_CALL|REASONING_MESSAGE)_\w+: No )/;

test("every stream passes the client's verification and ends with the expected messages and state", () =>
  requireNone(read("streams.json"), async (stream) => {
    const { agent, failure, words } = await replay(stream);
    if (failure) return [`the client gave up: ${failure.message}`];
    const problems = words.filter((line) => !DELIBERATE.test(line));
    for (const what of ["messages", "state"]) {
      const actual = asJson(agent[what]);
      if (!isDeepStrictEqual(actual, stream[what])) {
        problems.push(`${what}: the client has\n  ${show(actual)}, not\n  ${show(stream[what])}`);
      }
    }
    return problems;
  }));
