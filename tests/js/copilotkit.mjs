// Browser tabs with a CopilotKit page, built on @copilotkit/core, which its React hooks call.

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock } from "node:test";

import { CopilotKitCore } from "@copilotkit/core";
import { JSDOM } from "jsdom";

import { asJson } from "./ids.mjs";
import { parse } from "./sse.mjs";
import { problemsOfEvent } from "./strict.mjs";
import { promise, readThread, said } from "./threads.mjs";

// Without `window` the core assumes server-side rendering and sends no requests.
globalThis.window ??= Object.assign(new EventTarget(), { location: new URL("http://localhost:3000/") });

// The parts of a browser that Phoenix's client uses.
globalThis.location ??= globalThis.window.location;
globalThis.WebSocket ??= new JSDOM("", { url: "http://localhost:3000/" }).window.WebSocket;

/** The request header that names the tab. */
const TAB = "x-tab";

const tabs = new Map();

/** Routes each tab's requests through the tab. The core calls the global `fetch`, so this replaces it. */
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

/** A tab: a core, an agent, and a record of their requests, events and errors. */
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

  /** Opens a tab, waits until its core has read the list of agents, and selects one. */
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
    // A stream that the tab aborts is incomplete and is not checked.
    if (response.headers.get("content-type") === "text/event-stream") {
      this.#bodies.push(response.clone().text().catch(() => ""));
    }
    return response;
  }

  get threadId() {
    return this.agent.threadId;
  }

  /** Sends a message and runs the agent, with the follow-up runs that the page's own tools cause. */
  say(content, parameters = {}) {
    this.agent.addMessage(said(content));
    return this.core.runAgent({ agent: this.agent, ...parameters });
  }

  /** Connects to the thread, as a page does when it is loaded. */
  comeBack() {
    return this.core.connectAgent({ agent: this.agent });
  }

  /** Resolves after `count` text deltas. */
  heard(count) {
    const { kept, keep } = promise();
    const look = () => this.events.filter(({ type }) => type === "TEXT_MESSAGE_CONTENT").length >= count && keep();
    this.agent.subscribe({ onEvent: () => void look() });
    look();
    return kept;
  }

  /** Closes the tab and its connections. */
  close() {
    this.#closed.abort(new DOMException("the tab was closed", "AbortError"));
  }

  /** Requires that all received events fit the AG-UI schema and that the core reported no errors. */
  async judge() {
    const texts = await Promise.all(this.#bodies.splice(0));
    assert.deepEqual(texts.flatMap(parse).flatMap(problemsOfEvent), []);
    assert.deepEqual(this.errors, [], "what the core reported");
  }

  /** Requires that the tab shows the stored thread. */
  async requireStored() {
    const stored = await readThread(this.server, this.threadId);
    assert.deepEqual(asJson(this.agent.messages), stored.messages, "messages");
    assert.deepEqual(asJson(this.agent.state), stored.state, "state");
    assert.deepEqual(asJson(this.agent.pendingInterrupts ?? []), stored.interrupts, "interrupts");
    return stored;
  }
}
