// The rows of the list of events: a head for each run, and one row for the parts of a text that follow each other.

import { isContinued } from "./deltas.js";
import { cut } from "./parts.jsx";

/** Characters of a row. */
const MAX_CHARS = 300;

/**
 * Rows of a list of entries that grows: { head, number } names a run and its place, others are { entries, text }. Each entry
 * is read once, however often the rows are shown.
 */
export class EventRows {
  rows = [];
  #entries;
  #wanted;
  #read = 0;
  #runs = 0;

  /** @param {string} wanted a part of the events that have rows, in lower case */
  constructor(entries, wanted) {
    this.#entries = entries;
    this.#wanted = wanted;
  }

  /** Adds the entries that have come since the last time, and returns all rows. */
  update() {
    for (; this.#read < this.#entries.length; this.#read++) {
      const entry = this.#entries[this.#read];
      if (!this.#wanted || JSON.stringify(entry.event).toLowerCase().includes(this.#wanted)) this.#add(entry);
    }
    return this.rows;
  }

  #add(entry) {
    const row = this.rows.at(-1);
    const before = row?.entries.at(-1);
    if (before?.runId !== entry.runId || !row) {
      this.rows.push({ key: `run ${entry.number}`, head: entry.runId, number: ++this.#runs, entries: [] });
    } else if (isContinued(before.event, entry.event)) {
      row.entries.push(entry);
      row.text = cut(row.text + cut(entry.event.delta, MAX_CHARS), MAX_CHARS);
      return;
    }
    this.rows.push({ key: entry.number, entries: [entry], text: cut(textOf(entry.event), MAX_CHARS) });
  }
}

/** Returns the member of an event that tells it from others of its type. */
function textOf(event) {
  const value =
    event.delta ?? event.content ?? event.toolCallName ?? event.stepName ?? event.name ?? event.message ??
    event.outcome?.type ?? event.snapshot ?? event.messages?.length ?? event.role ?? "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
