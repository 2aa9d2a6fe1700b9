// The events of a thread as they arrive, with their times and what each changed in the state.

import jsonPatch from "fast-json-patch";

import { joinParts } from "./deltas.js";

const START_OF = { TEXT_MESSAGE_CONTENT: "firstTextAt", TEXT_MESSAGE_CHUNK: "firstTextAt" };

export class Recorder {
  /**
   * All events, the oldest first: { number, at, ms, event, runId, anchor, changes }. `ms` is the time since the
   * request, if the request is known.
   */
  entries = [];
  /** By run: the agent, the request and its time, when the first event, the first text and the end came, and the usage. */
  runs = new Map();
  state = {};

  constructor(onChange) {
    this.onChange = onChange;
  }

  begin(runId, { agent, request, startedAt = Date.now(), sentAt = performance.now() }) {
    this.runs.set(runId, { agent, request, startedAt, sentAt });
    this.runId = runId;
  }

  /** Times are those of `performance.now()`, or of a recording. */
  record(event, at = performance.now()) {
    if (event.type === "RUN_STARTED") this.runId = event.runId;
    const run = this.runs.get(this.runId) ?? {};
    this.runs.set(this.runId, run);
    run.firstEventAt ??= at;
    if (START_OF[event.type]) run[START_OF[event.type]] ??= at;
    if (event.type === "RUN_FINISHED" || event.type === "RUN_ERROR") Object.assign(run, { endedAt: at, usage: event.usage });
    const changes = this.#apply(event);
    const number = this.entries.length + 1;
    const ms = run.sentAt === undefined ? undefined : at - run.sentAt;
    this.entries.push({ number, at: Date.now(), ms, event, runId: this.runId, anchor: anchorOf(event), changes });
    this.onChange(event);
  }

  /** Puts the events of an earlier run, { ms, event }, before all others. */
  addEarlier(runId, startedAt, events) {
    const earlier = events.map(({ ms, event }) => {
      const changes = event.type === "STATE_DELTA" ? event.delta : undefined;
      return { at: startedAt + ms, ms, event, runId, anchor: anchorOf(event), changes };
    });
    this.entries = [...earlier, ...this.entries.filter((entry) => entry.runId !== runId)];
    this.entries.forEach((entry, index) => (entry.number = index + 1));
  }

  /** Returns a run that the page has started, for `writeRecording`; undefined for others. */
  recorded(runId) {
    const { agent, request, startedAt } = this.runs.get(runId) ?? {};
    if (!request) return undefined;
    const events = this.entries.filter((entry) => entry.runId === runId);
    return { agent, startedAt, request: JSON.parse(request.body), events };
  }

  /** Returns the operations that lead from the state before the event to that after it. */
  #apply(event) {
    if (event.type === "STATE_SNAPSHOT") {
      const changes = jsonPatch.compare(wrap(this.state), wrap(event.snapshot));
      this.state = event.snapshot;
      return changes.map((change) => ({ ...change, path: change.path.slice("/state".length) }));
    }
    if (event.type === "STATE_DELTA") {
      try {
        this.state = jsonPatch.applyPatch(this.state, event.delta, false, false).newDocument;
        return event.delta;
      } catch {
        return []; // The client reports a patch that does not apply.
      }
    }
    return undefined;
  }
}

/** The item of the chat that an event is about: a tool call, or a message. */
const anchorOf = (event) => event.toolCallId ?? event.messageId;

const wrap = (state) => ({ state: state ?? {} });

/** Returns the events of a part of a stream. The server writes each into one line. */
const parseEvents = (text) =>
  text.split("\n").filter((line) => line.startsWith("data: ")).map((line) => JSON.parse(line.slice("data: ".length)));

/** Reads the events of a response's stream for `record`, and passes them on with joined texts. */
export function teeEvents(response, record) {
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
  let rest = "";
  const tap = new TransformStream({
    transform(text, controller) {
      const frames = (rest + text).split("\n\n");
      rest = frames.pop();
      const events = frames.flatMap(parseEvents);
      events.forEach((event) => record(event));
      controller.enqueue(joinParts(events).map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
    },
    flush: (controller) => controller.enqueue(rest),
  });
  const { status, statusText, headers } = response;
  const body = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(tap).pipeThrough(new TextEncoderStream());
  return new Response(body, { status, statusText, headers });
}
