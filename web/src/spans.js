// The spans of a run: its steps, tool calls and texts, from the events that begin and end them.

/** `called`: the event after which a tool works, and before which its arguments are written. */
const KINDS = [
  { kind: "step", start: "STEP_STARTED", end: "STEP_FINISHED", id: "stepName", name: "stepName" },
  { kind: "tool", start: "TOOL_CALL_START", called: "TOOL_CALL_END", end: "TOOL_CALL_RESULT", id: "toolCallId", name: "toolCallName" },
  { kind: "reasoning", start: "REASONING_MESSAGE_START", end: "REASONING_MESSAGE_END", id: "messageId" },
  { kind: "text", start: "TEXT_MESSAGE_START", end: "TEXT_MESSAGE_END", id: "messageId" },
];

/**
 * Returns the spans of a run, the first begun first, and the end of the run: { spans, to }. Times are ms since the request.
 * A span is { kind, name, anchor, start, called, end }; one that the run has not ended has no `end`.
 */
export function spansOf(entries, runId) {
  const spans = [];
  const open = new Map();
  let to;
  for (const { event, runId: of, ms, anchor } of entries) {
    // A page that follows a run gets its beginning at once, without times.
    if (of !== runId || ms === undefined) continue;
    to = ms;
    for (const { kind, start, called, end, id, name } of KINDS) {
      const key = `${kind} ${event[id]}`;
      if (event.type === start) {
        open.set(key, { kind, name: event[name], anchor, start: ms });
        spans.push(open.get(key));
      } else if (event.type === called || event.type === end) {
        Object.assign(open.get(key) ?? {}, { [event.type === end ? "end" : "called"]: ms });
      }
    }
  }
  return { spans, to };
}
