// The stock client, with a recording in place of a server.

import "./zod-without-eval.js";

import { HttpAgent } from "@ag-ui/client";

import { isContinued, joinParts } from "./deltas.js";

/** The longest time that a browser can wait. */
const MAX_WAIT_MS = 2 ** 31 - 1;

export class RecordedAgent extends HttpAgent {
  #isAtPace = false;
  #isClosed = false;
  #wake = () => {};

  /** The recorder gets the events with their recorded times. */
  constructor(recording, recorder) {
    const { request } = recording;
    super({
      url: "recording:",
      threadId: request.threadId,
      initialMessages: request.messages,
      initialState: request.state,
      fetch: async () => new Response(this.#stream(recording.events, recorder), { headers: { "content-type": "text/event-stream" } }),
    });
  }

  /** Plays the events at the pace at which they came, or at once. */
  play(runId, isAtPace) {
    this.#isAtPace = isAtPace;
    return this.runAgent({ runId });
  }

  /** Plays the rest at once. */
  skip() {
    this.#isAtPace = false;
    this.#wake();
  }

  abortRun() {
    this.#isClosed = true;
    this.#wake();
  }

  #stream(events, recorder) {
    const begun = performance.now();
    const encoder = new TextEncoder();
    let next = 0;
    return new ReadableStream({
      pull: async (controller) => {
        if (next < events.length) await this.#waitUntil(begun + events[next].ms);
        if (next === events.length || this.#isClosed) return controller.close();
        const first = events[next];
        const parts = [];
        do {
          const { ms, event } = events[next++];
          recorder.record(event, ms);
          parts.push(event);
        } while (!this.#isAtPace && isContinued(first.event, events[next]?.event));
        const [event] = joinParts(parts);
        controller.enqueue(encoder.encode(`data: ${JSON.stringify(event)}\n\n`));
      },
      cancel: () => this.abortRun(),
    });
  }

  async #waitUntil(time) {
    const rest = Math.min(time - performance.now(), MAX_WAIT_MS);
    if (!this.#isAtPace || rest <= 0) return;
    let timer;
    await new Promise((done) => {
      this.#wake = done;
      timer = setTimeout(done, rest);
    });
    clearTimeout(timer);
  }
}
