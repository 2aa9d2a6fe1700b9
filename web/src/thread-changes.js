// The changes of threads as they happen, also those by other tabs and clients.

import { BASE, request } from "./api.js";
import { parseEvents } from "./recorder.js";

/** The pause before another connection after the last one was lost. */
const RETRY_MS = 5000;
/** A list that changes have made as long as this is read again, from its first page. */
const MAX_THREADS = 500;

/**
 * Follows the changes until `signal` is aborted, or the server refuses.
 * @param {{ onConnect: () => void, onChange: (change: object) => void }} handlers
 *   `onConnect`: changes from now on are reported
 */
export async function followThreadChanges(signal, { onConnect, onChange }) {
  while (!signal.aborted) {
    try {
      const response = await request(`${BASE}/threads/events`, { signal });
      onConnect();
      await readChanges(response.body, onChange);
    } catch (error) {
      if (error.status < 500) return;
    }
    await new Promise((done) => setTimeout(done, RETRY_MS));
  }
}

async function readChanges(body, onChange) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const frames = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = frames.pop();
    frames.flatMap(parseEvents).forEach(onChange);
  }
}

/**
 * Returns the list after a change, or undefined if it has to be read again.
 * @param {object[]} list the threads with the newest runs, the newest first
 * @param {{ isSearch: boolean, archived: boolean }} shown `isSearch`: whether the list has only what was searched;
 *   `archived`: whether it has the threads that are archived, or the others
 */
export function changedList(list, { type, threadId, thread }, { isSearch, archived }) {
  if (type === "missed") return undefined;
  const index = list.findIndex((listed) => listed.threadId === threadId);
  const others = list.filter((listed) => listed.threadId !== threadId);
  if (!thread || Boolean(thread.archived) !== archived) return others;
  if (index < 0 && isSearch) return list;
  if (type === "begun" || type === "created") return others.length < MAX_THREADS ? [thread, ...others] : undefined;
  if (index < 0) return type === "archived" || type === "unarchived" ? undefined : list;
  return others.toSpliced(index, 0, thread);
}
