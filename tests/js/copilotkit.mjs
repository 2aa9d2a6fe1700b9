// Tabs of a browser with a page of CopilotKit's, by way of its own core: what React's hooks call, without React.

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock } from "node:test";

import { CopilotKitCore } from "@copilotkit/core";

import { asJson } from "./ids.mjs";
import { parse } from "./sse.mjs";
import { problemsOfEvent } from "./strict.mjs";
import { promise, readThread, said } from "./threads.mjs";

// A core outside of a browser is one that renders on a server, and asks for nothing.
globalThis.window ??= Object.assign(new EventTarget(), { location: new URL("http://localhost:3000/") });

/** Which tab a request comes from. */
const TAB = "x-tab";

const tabs = new Map();

/** Has every request of a tab go through it. The core asks for `fetch` wherever it stands. */
export function useTabs() {
  beforeEach(() => {
    const real = globalThis.fetch;
    mock.method(globalThis, "fetch", (url, init = {}) => {
      const tab = tabs.get(new Headers(init.headers).get(TAB));
      return tab ? tab.fetch(real, String(url), init) : real(url, init);
    });
  });
  afterEach(async () => {
    const open = [...tabs.values()];
    tabs.clear();
    globalThis.fetch.mock.restore();
    for (const tab of open) await tab.judge();
  });
}

/** A tab: a core, an agent, and everything that they sent and were told. */
export class Tab {
  requests = [];
  events = [];
  errors = [];
  #closed = new AbortController();
  #bodies = [];

  constructor(server, options = {}) {
    this.server = server;
    this.id = String(tabs.size + 1);
    tabs.set(this.id, this);
    const { headers, ...more } = options;
    const runtimeUrl = `${server.url}/copilotkit`;
    this.core = new CopilotKitCore({ runtimeUrl, headers: { [TAB]: this.id, ...headers }, ...more });
    this.core.subscribe({ onError: ({ code, error }) => void this.errors.push([code, error.message]) });
  }

  /** A tab whose core knows the server's agents, with one of them on a thread. */
  static async open(server, { threadId, agentId = "demo", ...options } = {}) {
    const tab = new Tab(server, options);
    await tab.connected();
    tab.agent = tab.core.getAgent(agentId);
    assert.ok(tab.agent, `there is no agent ${agentId}`);
    if (threadId) tab.agent.threadId = threadId;
    tab.agent.subscribe({ onEvent: ({ event }) => void tab.events.push(asJson(event)) });
    return tab;
  }

  async connected() {
    const { kept, keep } = promise();
    const look = () => /^(connected|error)$/.test(this.core.runtimeConnectionStatus) && keep();
    const { unsubscribe } = this.core.subscribe({ onRuntimeConnectionStatusChanged: look });
    look();
    await kept;
    unsubscribe();
  }

  async fetch(real, url, init) {
    this.requests.push({ method: init.method ?? "GET", path: url.slice(this.server.url.length), body: init.body });
    const signal = AbortSignal.any([this.#closed.signal, ...(init.signal ? [init.signal] : [])]);
    const response = await real(url, { ...init, signal });
    // A stream that the tab itself cuts off has nothing to be judged by.
    if (response.headers.get("content-type") === "text/event-stream") {
      this.#bodies.push(response.clone().text().catch(() => ""));
    }
    return response;
  }

  get threadId() {
    return this.agent.threadId;
  }

  /** Says something, and hears the answer, with what comes of the page's own tools. */
  say(content, parameters = {}) {
    this.agent.addMessage(said(content));
    return this.core.runAgent({ agent: this.agent, ...parameters });
  }

  /** What a page does with its thread as soon as it is there. */
  comeBack() {
    return this.core.connectAgent({ agent: this.agent });
  }

  /** As soon as so many deltas have come. */
  heard(count) {
    const { kept, keep } = promise();
    const look = () => this.events.filter(({ type }) => type === "TEXT_MESSAGE_CONTENT").length >= count && keep();
    this.agent.subscribe({ onEvent: () => void look() });
    look();
    return kept;
  }

  /** Closes the tab, and its connections with it. */
  close() {
    this.#closed.abort(new DOMException("the tab was closed", "AbortError"));
  }

  /** Everything that came is as AG-UI says, and nothing went wrong. */
  async judge() {
    const texts = await Promise.all(this.#bodies.splice(0));
    assert.deepEqual(texts.flatMap(parse).flatMap(problemsOfEvent), []);
    assert.deepEqual(this.errors, [], "what the core reported");
  }

  /** What the tab shows is what is stored. */
  async requireStored() {
    const stored = await readThread(this.server, this.threadId);
    assert.deepEqual(asJson(this.agent.messages), stored.messages, "messages");
    assert.deepEqual(asJson(this.agent.state), stored.state, "state");
    assert.deepEqual(asJson(this.agent.pendingInterrupts ?? []), stored.interrupts, "interrupts");
    return stored;
  }
}
