// What the runs of a thread took: in the tab, and below their answers.

import { Button, CopyButton, seconds } from "./parts.jsx";
import { t } from "./texts.js";

/** Digits of a cost. The currency is that of the server's configuration. */
const COST_DIGITS = 3;

/** Returns names and values: times, and what the run's model calls used. */
function numbersOf(session, run) {
  const { sentAt, firstEventAt, firstTextAt, endedAt, usage: reported } = session.recorder.runs.get(run.runId) ?? {};
  const usage = run.usage ?? reported ?? [];
  const sum = (member) => usage.reduce((total, counts) => total + (counts[member] ?? 0), 0);
  // The times of the page include the way to the server, as those of the first event and text do.
  const duration = endedAt >= sentAt ? endedAt - sentAt : new Date(run.endedAt) - new Date(run.startedAt);
  return [
    [t("duration"), duration >= 0 && seconds(duration)],
    [t("firstEvent"), firstEventAt >= sentAt && seconds(firstEventAt - sentAt)],
    [t("firstText"), firstTextAt >= sentAt && seconds(firstTextAt - sentAt)],
    [t("tokens"), usage.length > 0 && t("tokensInOut", sum("inputTokens"), sum("outputTokens"))],
    [t("cost"), run.cost !== undefined && String(Number(run.cost.toPrecision(COST_DIGITS)))],
    [t("events"), run.events],
  ].filter(([, value]) => value);
}

/** A line below the last message of a run that has ended. */
export function Numbers({ session, runId }) {
  const run = session.thread?.runs?.find((run) => run.runId === runId) ?? { runId };
  const left = [t("firstEvent"), t("events")];
  const numbers = numbersOf(session, run).filter(([name]) => !left.includes(name));
  return (
    <small class="numbers">
      {numbers.map(([name, value]) => <span>{name} {value}</span>)}
    </small>
  );
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
  const { sentAt, request, endedAt } = session.recorder.runs.get(run.runId) ?? {};
  return (
    <li class="run">
      <header>
        <span class={`badge is-${run.status}`}>{run.status}</span>
        <code title={run.runId}>{run.runId}</code>
        {run.detached && <span class="badge">{t("detached")}</span>}
      </header>
      <dl>{numbersOf(session, run).map(([name, value]) => <><dt>{name}</dt><dd>{value}</dd></>)}</dl>
      {run.error && <p class="error"><code>{run.error.code}</code> {run.error.message}</p>}
      <div class="buttons">
        {request && <CopyButton label={t("copyCurl")} text={() => session.curl(run.runId)} />}
        {session.canSave(run.runId) && <Button kind="quiet" onClick={() => session.saveRecording(run.runId)}>{t("saveRecording")}</Button>}
        {run.detached && !session.isRunning && !(sentAt !== undefined && endedAt) && <Button kind="quiet" onClick={() => session.readLog(run.runId)}>{t("loadEvents")}</Button>}
      </div>
    </li>
  );
}
