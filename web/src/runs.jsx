// Times, tokens and cost of the runs of a thread: in the tab, and below their answers.

import { useMemo } from "preact/hooks";

import { Button, CopyButton, seconds } from "./parts.jsx";
import { spansOf } from "./spans.js";
import { t } from "./texts.js";

const STATUSES = { running: "statusRunning", finished: "statusFinished", interrupted: "statusInterrupted", cancelled: "statusCancelled", failed: "statusFailed" };
/** Bars of a run. */
const MAX_BARS = 200;
/** The shortest bar, in percent. */
const MIN_WIDTH = 0.8;
/** Digits of a cost. The currency is that of the server's configuration. */
const COST_DIGITS = 3;

/** Returns names and values: the times of a run, and what its model calls used. */
function numbersOf(session, run) {
  const { sentAt, firstTextAt, endedAt, usage: reported } = session.recorder.runs.get(run.runId) ?? {};
  const usage = run.usage ?? reported ?? [];
  const sum = (member) => usage.reduce((total, counts) => total + (counts[member] ?? 0), 0);
  // The times of the page include the way to the server, as those of the first event and text do.
  const duration = endedAt >= sentAt ? endedAt - sentAt : new Date(run.endedAt) - new Date(run.startedAt);
  return [
    [t("duration"), duration >= 0 && seconds(duration)],
    [t("firstText"), firstTextAt >= sentAt && seconds(firstTextAt - sentAt)],
    [t("tokens"), usage.length > 0 && t("tokensInOut", sum("inputTokens"), sum("outputTokens"))],
    [t("cost"), run.cost !== undefined && String(Number(run.cost.toPrecision(COST_DIGITS)))],
  ].filter(([, value]) => value);
}

/** A line below the last message of a run that has ended. */
export function Numbers({ session, runId }) {
  const run = session.thread?.runs?.find((run) => run.runId === runId) ?? { runId };
  return <small class="numbers">{numbersOf(session, run).map(([name, value]) => <span>{name} {value}</span>)}</small>;
}

export function Runs({ session }) {
  const runs = session.thread?.runs ?? [];
  if (runs.length === 0) return <p class="muted">{t("noRuns")}</p>;
  return (
    <ol class="runs">
      {runs.map((run) => <Run key={run.runId} session={session} run={run} />)}
    </ol>
  );
}

function Run({ session, run }) {
  const { sentAt, firstEventAt, request, endedAt } = session.recorder.runs.get(run.runId) ?? {};
  const numbers = numbersOf(session, run);
  if (firstEventAt >= sentAt) numbers.push([t("firstEvent"), seconds(firstEventAt - sentAt)]);
  numbers.push([t("events"), run.events]);
  return (
    <li class="run">
      <header>
        <span class={`badge is-${run.status}`}>{t(STATUSES[run.status])}</span>
        <code title={run.runId}>{run.runId}</code>
        {run.detached && <span class="badge">{t("detached")}</span>}
      </header>
      <dl>{numbers.map(([name, value]) => <><dt>{name}</dt><dd>{value}</dd></>)}</dl>
      {run.error && <p class="error"><code>{run.error.code}</code> {run.error.message}</p>}
      <Waterfall session={session} runId={run.runId} />
      <div class="buttons">
        {request && <CopyButton label={t("copyCurl")} text={() => session.curl(run.runId)} />}
        {session.canSave(run.runId) && <Button kind="quiet" onClick={() => session.saveRecording(run.runId)}>{t("saveRecording")}</Button>}
        {run.detached && !session.isRunning && !(sentAt !== undefined && endedAt) && <Button kind="quiet" onClick={() => session.readLog(run.runId)}>{t("loadEvents")}</Button>}
      </div>
    </li>
  );
}

/** The steps, tool calls and texts of a run whose events are known, as bars along its time. */
function Waterfall({ session, runId }) {
  const { entries } = session.recorder;
  const { spans, to } = useMemo(() => spansOf(entries, runId), [entries, entries.length, runId]);
  if (spans.length === 0) return null;
  const percent = (ms) => (100 * ms) / (to || 1);
  const bar = (start, end, part) => (
    <rect class={part} x={`${Math.min(percent(start), 100 - MIN_WIDTH)}%`} width={`${Math.max(percent(end - start), MIN_WIDTH)}%`} height="100%" rx="2" />
  );
  return (
    <ol class="waterfall" aria-label={t("waterfall")}>
      {spans.slice(0, MAX_BARS).map(({ kind, name, anchor, start, called = start, end = to }) => (
        <li>
          <button type="button" class={`span is-${kind}`} disabled={!anchor} onClick={() => session.mark(anchor)}>
            <span class="span-name" title={name}>{name ?? t(kind === "text" ? "text" : "reasoning")}</span>
            <svg aria-hidden="true">
              {called > start && bar(start, called, "is-begun")}
              {bar(called, end)}
            </svg>
            <span class="event-time">{seconds(end - start)}</span>
          </button>
        </li>
      ))}
    </ol>
  );
}
