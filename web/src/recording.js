// Recordings: one run as JSON Lines, in the format of docs/recordings.md.

import "./zod-without-eval.js";

import { EventSchemas, MessageSchema } from "@ag-ui/core/schemas";

import { t } from "./texts.js";

const VERSION = 1;
/** The largest recording that the page opens, in bytes. The server's own have at most 16 MiB by default. */
const MAX_BYTES = 32 * 1024 * 1024;
/** The deepest JSON of a line. The server reads no deeper recordings either. */
const MAX_DEPTH = 127;
const TERMINAL = ["RUN_FINISHED", "RUN_ERROR"];

/**
 * Returns the text of a recording.
 * @param {{ agent: string, startedAt: number, request: object, events: { ms: number, event: object }[] }} run
 *   `request`: the input that the page has sent; `ms`: the time since then
 */
export function writeRecording({ agent, startedAt, request, events }) {
  const last = events.at(-1);
  const isEnded = TERMINAL.includes(last?.event.type);
  const end = { outcome: isEnded ? "finished" : "abandoned", usage: isEnded ? last.event.usage : undefined };
  const lines = [
    { recording: VERSION, agent, startedAt, request },
    ...events.map(({ ms, event }) => ({ ms: Math.round(ms), event })),
    { ms: Math.round(last?.ms ?? 0), end },
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

/** Returns a name that sorts by the start of the run. A server never removes a recording with such a name. */
export function recordingName({ startedAt, request }) {
  const time = new Date(startedAt).toISOString().replace(/[-:]/g, "");
  return `playground-${time}-${request.runId.replace(/[^\w-]/g, "_").slice(0, 32)}.jsonl`;
}

/**
 * Reads a recording from a file of the user. Throws an error with a text for the user if the file has another content.
 * @returns {Promise<{ name, agent, startedAt, request, events: { ms, event }[], hasEnd: boolean }>}
 */
export async function readRecording(file) {
  if (file.size > MAX_BYTES) throw new Error(t("recordingTooLarge", file.name, MAX_BYTES / 1024 / 1024));
  const lines = (await file.text()).split("\n");
  const head = parseLine(file.name, lines[0], 1);
  const { agent, startedAt, request } = head;
  if (typeof head.recording !== "number" || !isHead(head)) throw new Error(t("notRecording", file.name));
  if (head.recording !== VERSION) throw new Error(t("recordingVersion", file.name, head.recording));
  const events = [];
  for (const [index, line] of lines.entries()) {
    if (index === 0 || !line.trim()) continue;
    const { ms, event, exchange, end } = parseLine(file.name, line, index + 1);
    if (isTime(ms) && EventSchemas.safeParse(event).success) events.push({ ms, event });
    else if (!isObject(exchange) && !isObject(end)) throw new Error(t("recordingLine", file.name, index + 1));
  }
  const hasEnd = TERMINAL.includes(events.at(-1)?.event.type);
  return { name: file.name, agent, startedAt, request, events, hasEnd };
}

export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isTime = (value) => Number.isFinite(value) && value >= 0;

const isHead = ({ agent, startedAt, request }) =>
  typeof agent === "string" &&
  // The largest time that a Date can have.
  isTime(startedAt) && startedAt <= 8.64e15 &&
  isObject(request) && typeof request.threadId === "string" && typeof request.runId === "string" &&
  Array.isArray(request.messages) && request.messages.every((message) => MessageSchema.safeParse(message).success);

function parseLine(name, line, number) {
  if (depthOf(line) > MAX_DEPTH) throw new Error(t("recordingTooDeep", name, number, MAX_DEPTH));
  let value;
  try {
    value = JSON.parse(line);
  } catch {
    // Reported below.
  }
  if (isObject(value)) return value;
  throw new Error(number === 1 ? t("notRecording", name) : t("recordingLine", name, number));
}

/** Returns how deep the JSON of a text is, without recursion. */
function depthOf(text) {
  let [depth, deepest] = [0, 0];
  for (let index = 0; index < text.length; index++) {
    const char = text[index];
    if (char === '"') {
      while (++index < text.length && text[index] !== '"') if (text[index] === "\\") index++;
    } else if (char === "{" || char === "[") {
      deepest = Math.max(deepest, ++depth);
    } else if (char === "}" || char === "]") {
      depth--;
    }
  }
  return deepest;
}

/** Returns the run of a recording in the form in which the server lists runs. */
export function recordedRun({ request, startedAt, events }) {
  const last = events.at(-1);
  const { type, outcome, code, message, usage } = last?.event ?? {};
  const error = type === "RUN_ERROR" ? { code, message } : undefined;
  const ended = { interrupt: "interrupted", cancelled: "cancelled" }[outcome?.type] ?? "finished";
  const status = { RUN_FINISHED: ended, RUN_ERROR: code === "cancelled" ? code : "failed" }[type] ?? "abandoned";
  return { runId: request.runId, status, startedAt, endedAt: startedAt + (last?.ms ?? 0), usage, events: events.length, error };
}
