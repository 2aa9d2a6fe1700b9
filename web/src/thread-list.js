// The list of threads: searched, read page by page, and kept current, also with what other tabs and clients change.

import { BASE, call, request } from "./api.js";
import { teeEvents } from "./recorder.js";

/** The pause before another connection after the last one was lost. */
const RETRY_MS = 5000;
/** A list that changes have made as long as this is read again, from its first page. */
const MAX_THREADS = 500;

export class ThreadList {
  /** The threads with the newest runs, the newest first. */
  threads = [];
  /** The cursor of the next page; absent on the last one. */
  next;
  query = "";
  archived = false;

  /** The changes that the server has reported since the newest read began; absent if that read has ended. */
  #changesInRead;
  /** Ends the connection on which the server reports changes. */
  #following;

  /** @param {{ onChange: () => void, onError: (error: Error) => void }} handlers */
  constructor({ onChange, onError }) {
    this.onChange = onChange;
    this.onError = onError;
  }

  /** Reads the list, or with `more` its next page. */
  async read({ more = false } = {}) {
    const parameters = new URLSearchParams();
    if (this.query.trim()) parameters.set("q", this.query.trim());
    if (this.archived) parameters.set("archived", "true");
    if (more && this.next) parameters.set("cursor", this.next);
    const changes = (this.#changesInRead = []);
    const { threads, next, error } = await call("GET", `/threads?${parameters}`).catch((error) => ({ error }));
    if (changes !== this.#changesInRead) return; // a later read has the current list
    this.#changesInRead = undefined;
    if (!error) {
      this.threads = more ? [...this.threads, ...threads] : threads;
      this.next = next;
      // The server may have read the list before they happened.
      for (const change of changes) this.#apply(change);
    } else {
      this.onError(error);
    }
    this.onChange();
  }

  /** Shows the archived threads, or the others. */
  showArchived(archived) {
    this.archived = archived;
    return this.read();
  }

  /** Applies the server's changes as they happen, until `unfollow` is called or the server refuses. */
  async follow() {
    this.unfollow();
    const { signal } = (this.#following = new AbortController());
    while (!signal.aborted) {
      try {
        const response = await request(`${BASE}/threads/events`, { signal });
        this.read();
        await teeEvents(response, (change) => this.#apply(change)).body.pipeTo(new WritableStream());
      } catch (error) {
        if (error.status < 500) return;
      }
      await new Promise((done) => setTimeout(done, RETRY_MS));
    }
  }

  unfollow() {
    this.#following?.abort();
  }

  #apply(change) {
    this.#changesInRead?.push(change);
    const changed = changedThreads(this.threads, change, { isSearch: this.query.trim() !== "", archived: this.archived });
    if (!changed) return void this.read();
    this.threads = changed;
    this.onChange();
  }
}

/**
 * Returns the threads after a change, or undefined if they have to be read again.
 * @param {{ isSearch: boolean, archived: boolean }} shown `isSearch`: whether the list has only what was searched;
 *   `archived`: whether it has the threads that are archived, or the others
 */
function changedThreads(threads, { type, threadId, thread }, { isSearch, archived }) {
  if (type === "missed") return undefined;
  const index = threads.findIndex((listed) => listed.threadId === threadId);
  const others = threads.filter((listed) => listed.threadId !== threadId);
  if (!thread || Boolean(thread.archived) !== archived) return others;
  if (index < 0 && isSearch) return threads;
  if (type === "begun" || type === "created") return others.length < MAX_THREADS ? [thread, ...others] : undefined;
  if (index < 0) return type === "archived" || type === "unarchived" ? undefined : threads;
  return others.toSpliced(index, 0, thread);
}
