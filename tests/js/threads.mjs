// Helpers for tests of stored threads: a server, pages, and requests to the thread routes.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, afterEach, before, beforeEach, mock } from "node:test";

import { HttpAgent, runHttpRequest, transformHttpEventStream } from "@ag-ui/client";

import { asJson } from "./ids.mjs";
import { startServer } from "./server.mjs";
import { SSE, parse, run } from "./sse.mjs";
import { problemsOfEvent, without1_1 } from "./strict.mjs";

/** A request that follows a run declares no version, so its stream is one of 1.1; the client's is one of 1.0. */
export const withoutVersion = (events) => events.map(({ protocolVersion, ...event }) => event);

/** forwardedProps that make a run detached. */
export const CONTINUE = { onDisconnect: "continue" };

export const said = (content, id = randomUUID()) => ({ id, role: "user", content });
export const typesOf = (events) => events.map(({ type }) => type);
export const textOf = (events) =>
  events.flatMap(({ type, delta }) => (type === "TEXT_MESSAGE_CONTENT" ? [delta] : [])).join("");
/** The demo's response to "count to n": "1 2 … n". */
export const countTo = (n) => range(1, n).join(" ");

/**
 * A server for the tests of one file. A test fails if a client writes a warning or an error to the console.
 * @param options returns the options of startServer; called before the start
 */
export function useServer(options = () => ({})) {
  const used = {};
  let mocks;
  before(async () => Object.assign(used, await startServer(options())));
  after(() => used.stop?.());
  beforeEach(() => (mocks = ["warn", "error"].map((method) => mock.method(console, method, () => {}))));
  afterEach(() => {
    const words = mocks.flatMap((each) => each.mock.calls.map(({ arguments: all }) => all.map(String).join(" ")));
    for (const each of mocks) each.mock.restore();
    assert.deepEqual(words, [], "what the clients wrote to the console");
  });
  return used;
}

/** A page with a thread: an HttpAgent that can also connect. Records what it receives. */
export class Page extends HttpAgent {
  #base;
  #bodies = [];

  constructor(server, options = {}) {
    super({ url: `${server.url}/send-message`, threadId: randomUUID(), ...options });
    this.#base = server.url;
    this.fetch = async (url, init) => {
      const response = await fetch(url, init);
      // A stream that the page aborts is incomplete and is not checked.
      this.#bodies.push(response.clone().text().catch(() => ""));
      return response;
    };
  }

  connect(input) {
    // The client creates a new AbortController for runs only.
    this.abortController = new AbortController();
    const url = `${this.#base}/threads/${encodeURIComponent(this.threadId)}/connect`;
    return transformHttpEventStream(runHttpRequest(() => this.fetch(url, this.requestInit(input))));
  }

  /** Runs the agent, with a new user message if there is `content`. */
  say(content, parameters, subscriber) {
    if (content !== undefined) this.addMessage(said(content));
    return this.#record((recorder) => this.runAgent(parameters, recorder), subscriber);
  }

  /** Answers the open interrupts: an array has one answer each, any other value is the answer to all. */
  answer(answer) {
    const own = (index) => (Array.isArray(answer) ? answer[index] : answer);
    const entries = this.pendingInterrupts.map(({ id }, index) => entry(id, own(index)));
    return this.say(undefined, { resume: entries });
  }

  /** Connects to the thread. */
  comeBack(subscriber) {
    return this.#record((recorder) => this.connectAgent(undefined, recorder), subscriber);
  }

  /** Leaves a run after `count` text deltas. Returns the events received until then. */
  async leaveAfter(count, content, parameters) {
    const heard = deltas(count);
    const abortController = new AbortController();
    const saying = this.say(content, { ...parameters, abortController }, heard);
    await Promise.race([heard.kept, saying.then(() => assert.fail("the run ended before the page left"))]);
    abortController.abort();
    const { events } = await saying;
    assert.deepEqual(events.at(-1).code, "abort", "the error code of the client");
    return events.slice(0, -1);
  }

  async #record(act, subscriber = {}) {
    const seen = { events: [], finished: [], errors: [] };
    await act({
      onEvent: ({ event }) => {
        seen.events.push(asJson(event));
        subscriber.onEvent?.(event);
      },
      onRunFinishedEvent: ({ outcome }) => void seen.finished.push(outcome),
      onRunErrorEvent: ({ event }) => void seen.errors.push(event.code),
    });
    await this.#judge();
    return seen;
  }

  /** Requires that all received events fit the schema, also where the client is tolerant. */
  async #judge() {
    const texts = await Promise.all(this.#bodies.splice(0));
    assert.deepEqual(texts.flatMap(parse).flatMap(problemsOf), []);
  }

  /** Requires that the page and the server hold the same thread. */
  async requireStored() {
    const stored = await readThread({ url: this.#base }, this.threadId);
    assert.deepEqual(asJson(this.messages), without1_1(stored.messages), "messages");
    assert.deepEqual(asJson(this.state), stored.state, "state");
    assert.deepEqual(asJson(this.pendingInterrupts), stored.interrupts, "interrupts");
    return stored;
  }
}

/** Returns the problems of an event, each with the event. */
const problemsOf = (event) => problemsOfEvent(event).map((problem) => `${JSON.stringify(event)}: ${problem}`);

/** Makes a `resume` entry from the payload of an answer, or from "cancelled". */
export const entry = (interruptId, answer) =>
  answer === "cancelled" ? { interruptId, status: "cancelled" } : { interruptId, status: "resolved", payload: answer };

/** Posts a run over plain HTTP and requires that every event fits the schema. */
export async function post(server, input, options) {
  const answer = await run(server.url, { runId: randomUUID(), messages: [], ...input }, options);
  assert.deepEqual(answer.events?.flatMap(problemsOf) ?? [], []);
  return answer;
}

/** Sends any other request. `body` is the parsed JSON, if there is a body. */
export async function request(server, method, path) {
  const response = await fetch(server.url + path, { method });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
}

export async function readThread(server, threadId) {
  const { status, body } = await request(server, "GET", `/threads/${encodeURIComponent(threadId)}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** Returns the path of a run's events, after event number `from`. */
export function eventsPath(threadId, runId, from) {
  const path = `/threads/${encodeURIComponent(threadId)}/runs/${encodeURIComponent(runId)}/events`;
  return from === undefined ? path : `${path}?after=${from}`;
}

/** Follows a detached run to its end. Returns its events and their numbers. */
export async function follow(server, threadId, runId, from, headers = {}) {
  const response = await fetch(server.url + eventsPath(threadId, runId, from), { headers });
  const text = await response.text();
  if (response.status !== 200) return { status: response.status, text };
  assert.equal(response.headers.get("content-type"), SSE);
  return { status: 200, ...parseNumbered(text) };
}

/** Parses a stream in which every event has an `id:` line. */
function parseNumbered(text) {
  const ids = [];
  const unnumbered = text.replace(/^id: ([1-9]\d*)\n(?=data: )/gm, (_, id) => {
    ids.push(Number(id));
    return "";
  });
  const events = parse(unnumbered);
  assert.equal(ids.length, events.length, "each event has a number");
  assert.deepEqual(events.flatMap(problemsOf), []);
  return { ids, events };
}

/** Returns first, first + 1, …, last. */
export const range = (first, last) => Array.from({ length: last - first + 1 }, (_, index) => first + index);

/** Returns a promise (`kept`) and the function that resolves it (`keep`). */
export function promise() {
  let keep;
  const kept = new Promise((resolve) => (keep = resolve));
  return { kept, keep };
}

/** Returns a subscriber whose `kept` resolves after `count` text deltas. */
export function deltas(count) {
  const { kept, keep } = promise();
  let seen = 0;
  return { kept, onEvent: ({ type }) => void (type === "TEXT_MESSAGE_CONTENT" && ++seen === count && keep()) };
}
