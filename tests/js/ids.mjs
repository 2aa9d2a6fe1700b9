// The server generates the ids of messages and tool calls. To compare two runs, or a run with a scenario, each id is
// replaced by the order of its first appearance. References between events must still agree.

const ID_KEYS = new Set(["id", "messageId", "toolCallId", "parentMessageId", "entityId"]);
const ID_LIST_KEYS = new Set(["pendingToolCallIds"]);

/** Returns a copy of `value` with ids `#1`, `#2`, …, and the original ids in that order. */
export function identify(value) {
  const names = new Map();
  const name = (id) => {
    if (!names.has(id)) names.set(id, `#${names.size + 1}`);
    return names.get(id);
  };
  return { value: mapIds(value, name), ids: [...names.keys()] };
}

/** Returns a copy of `value` with `rename` applied to every id. */
export function mapIds(value, rename) {
  if (Array.isArray(value)) return value.map((item) => mapIds(item, rename));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => {
    if (ID_KEYS.has(key) && typeof member === "string") return [key, rename(member)];
    if (ID_LIST_KEYS.has(key)) return [key, member.map(rename)];
    return [key, mapIds(member, rename)];
  });
  return Object.fromEntries(entries);
}

/** Returns `value` after a JSON round trip: undefined members are absent. */
export const asJson = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));
