// The server makes up the ids of messages and tool calls. To compare what two runs said, or a run with what
// was expected, ids are replaced by the order in which they first appear: which things belong together
// still has to agree.

const ID_KEYS = new Set(["id", "messageId", "toolCallId", "parentMessageId", "entityId"]);
const ID_LIST_KEYS = new Set(["pendingToolCallIds"]);

/** A copy of `value` with its ids as `#1`, `#2`, …, and the ids themselves in that order. */
export function identify(value) {
  const names = new Map();
  const name = (id) => {
    if (!names.has(id)) names.set(id, `#${names.size + 1}`);
    return names.get(id);
  };
  return { value: mapIds(value, name), ids: [...names.keys()] };
}

/** A copy of `value` with every id put through `rename`. */
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

/** `value` as another program would read it: members that are undefined are not there. */
export const asJson = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));
