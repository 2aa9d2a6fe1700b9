// Events with a part of a text, of which many follow each other.

const PARTS = ["TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "TOOL_CALL_ARGS"];

/** Returns whether an event has the next part of the text of another one. */
export const isContinued = (event, next) =>
  PARTS.includes(event.type) && next?.type === event.type &&
  next.messageId === event.messageId && next.toolCallId === event.toolCallId;

/** Joins parts of a text that follow each other: the stock client copies all messages for each event. */
export function joinParts(events) {
  const joined = [];
  for (let at = 0; at < events.length; at++) {
    const first = at;
    while (isContinued(events[at], events[at + 1])) at++;
    const parts = events.slice(first, at + 1);
    joined.push(parts.length > 1 ? { ...events[at], delta: parts.map(({ delta }) => delta).join("") } : events[at]);
  }
  return joined;
}
