// The conversation: messages and questions of the agent.

import { Fragment } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Composer } from "./composer.jsx";
import { contentParts, filePart, filesOf, textOf } from "./content.js";
import { fullTime } from "./dates.js";
import { Files } from "./files.jsx";
import { Markdown } from "./markdown.jsx";
import { Button, CopyButton, Tree, isSend, pretty } from "./parts.jsx";
import { PageToolQuestion, Question } from "./questions.jsx";
import { Numbers } from "./runs.jsx";
import { Surface } from "./surface.jsx";
import { currentLanguage, t } from "./texts.js";

/** The distance from the end, in pixels, within which the chat follows new text. */
const NEAR_END = 80;

export function Chat({ session }) {
  const scroller = useRef();
  const follows = useRef(true);
  const { agent, marked } = session;
  const messages = agent?.messages ?? [];
  useLayoutEffect(() => {
    if (follows.current && scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight;
  });
  useEffect(() => {
    if (marked) document.getElementById(`item-${marked}`)?.scrollIntoView({ block: "nearest" });
  }, [marked]);
  const onScroll = ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END;
  };
  const results = new Map(messages.filter(({ role }) => role === "tool").map((message) => [message.toolCallId, message]));
  const callIds = new Set(messages.flatMap(({ toolCalls }) => toolCalls ?? []).map(({ id }) => id));
  const shown = messages.filter((message) => message.role !== "tool" || !callIds.has(message.toolCallId));
  const questions = session.isRunning ? [] : session.questions();
  const calls = session.isRunning ? [] : session.openCalls().filter((call) => session.tools.named(call.function.name).asks);
  return (
    <section class="chat" aria-label={t("chat")}>
      <div class="messages" ref={scroller} onScroll={onScroll} tabindex="0" role="log" aria-live="off" aria-label={t("chat")}>
        {shown.length === 0 && !session.isRunning && !session.recording && <Empty session={session} />}
        {shown.map((message, index) => (
          <Fragment key={message.id}>
            <Message session={session} message={message} results={results} isLast={index === shown.length - 1} />
            {session.answered.filter(({ after }) => after === message.id).map((record) => <Answered record={record} />)}
          </Fragment>
        ))}
        <fieldset disabled={Boolean(session.recording)}>
          {questions.map((interrupt) => <Question key={interrupt.id} session={session} interrupt={interrupt} />)}
        </fieldset>
        {calls.map((call) => <PageToolQuestion key={call.id} session={session} call={call} />)}
        {session.isRunning && <p class="working"><span /><span /><span /></p>}
        {!session.isRunning && <Starters session={session} texts={session.offered} />}
        {session.error && !session.error.isAtField && <ErrorNote session={session} error={session.error} />}
        {!session.error && <EndOfRun session={session} />}
      </div>
      <p class="visually-hidden" role="status">{announcement(session)}</p>
      {session.recording ? <RecordingBar session={session} /> : <Composer session={session} />}
    </section>
  );
}

/** Replaces the field for messages while a recording is shown. */
function RecordingBar({ session }) {
  const { recording, isRunning } = session;
  const { name, agent, startedAt, hasEnd } = recording;
  return (
    <div class="recording-bar" role="group" aria-label={t("recording")}>
      <p>
        <strong>{t("recording")}</strong> {name}
        <small>{agent} · {fullTime(startedAt)}{!hasEnd && ` · ${t("noEnd")}`}</small>
      </p>
      {isRunning ? (
        <Button onClick={() => session.stop()}>{t("showAll")}</Button>
      ) : (
        <Button kind="primary" onClick={() => session.playRecording(recording, true)}>{t("play")}</Button>
      )}
      <Button onClick={() => session.newThread()}>{t("close")}</Button>
    </div>
  );
}

const ANNOUNCEMENTS = { running: "running", finished: "finished", asking: "asking", failed: "runFailed" };
const announcement = (session) => (session.announcement ? t(ANNOUNCEMENTS[session.announcement]) : "");

const ErrorNote = ({ session, error }) => (
  <p class="error" role="alert">
    {error.code && <code>{error.code}</code>} {error.message}
    {session.canRetry && <> <Button onClick={() => session.retry()}>{t("retry")}</Button></>}
  </p>
);

/** The end of the last run, if it has no answer. A refused answer is shown at its question. */
function EndOfRun({ session }) {
  const { thread, isRunning, recording } = session;
  const [run] = thread?.runs ?? [];
  if (isRunning || recording || session.questions().length > 0 || !["failed", "cancelled"].includes(run?.status)) return null;
  return (
    <p class={run.status === "failed" ? "error" : "note"}>
      {run.status === "failed" ? <><code>{run.error?.code}</code> {run.error?.message ?? t("runFailed")}</> : t("runStopped")}
      {" "}<Button onClick={() => session.retry()}>{t("retry")}</Button>
    </p>
  );
}

/** A question that was answered on this page. */
const Answered = ({ record: { message, decision, text } }) => (
  <p class="note">{message} <strong>{decision ? t(decision) : text}</strong></p>
);

/** Messages to begin with, as buttons. */
const Starters = ({ session, texts }) =>
  texts.length > 0 && (
    <div class="buttons starters" role="group" aria-label={t("starters")}>
      {texts.map((text) => <Button onClick={() => session.send(text)}>{text}</Button>)}
    </div>
  );

function Empty({ session }) {
  const agent = session.agents.find(({ name }) => name === session.agentName);
  return (
    <div class="empty">
      <h2>{t("empty", session.agentName)}</h2>
      {agent?.description && <p>{agent.description}</p>}
      <Starters session={session} texts={session.starters(currentLanguage())} />
    </div>
  );
}

function Message({ session, message, results, isLast }) {
  const [isEditing, setEditing] = useState(false);
  const { id, role, toolCalls = [] } = message;
  const isMarked = session.marked === id;
  const canChange = !session.isRunning && !session.recording;
  const hasText = role !== "assistant" || textOf(message.content);
  return (
    <article id={`item-${id}`} class={`message is-${role}${isMarked ? " is-marked" : ""}${isLast ? " is-newest" : ""}`} aria-label={roleName(session, role)}>
      {isEditing ? (
        <EditForm session={session} message={message} onClose={() => setEditing(false)} />
      ) : (
        hasText && <Content message={message} />
      )}
      {toolCalls.map((call) => (
        <ToolCall key={call.id} session={session} call={call} result={results.get(call.id)} />
      ))}
      {!isEditing && (
        <footer class="message-actions">
          <Branches session={session} id={id} />
          {role === "user" && canChange && <Button kind="quiet" onClick={() => setEditing(true)}>{t("edit")}</Button>}
          {role === "assistant" && isLast && canChange && session.questions().length === 0 && (
            <Button kind="quiet" onClick={() => session.regenerate(id)}>{t("regenerate")}</Button>
          )}
          {role === "assistant" && canChange && session.thread && <Button kind="quiet" label={t("forkHint")} onClick={() => session.fork(id)}>{t("fork")}</Button>}
          {role === "assistant" && canChange && session.thread && <Ratings session={session} id={id} />}
          {textOf(message.content) && <CopyButton label={t("copy")} text={() => textOf(message.content)} />}
          <Button kind="quiet" label={t("showEvents")} onClick={() => session.mark(isMarked ? undefined : id)}>
            {t("events")}
          </Button>
          {session.lastOfRun[id] && <Numbers session={session} runId={session.lastOfRun[id]} />}
        </footer>
      )}
    </article>
  );
}

function roleName(session, role) {
  return { user: t("you"), system: t("system"), developer: t("system"), reasoning: t("reasoning"), activity: t("activity") }[role] ?? session.recording?.agent ?? session.agentName;
}

function Content({ message }) {
  if (message.role === "reasoning") {
    return (
      <details class="reasoning" open>
        <summary>{t("reasoning")}</summary>
        <Markdown text={textOf(message.content)} />
      </details>
    );
  }
  const file = filePart(message);
  if (file) return <Files parts={[file]} />;
  if (message.role === "activity") {
    return (
      <div class="activity">
        <strong>{message.activityType}</strong>
        <ActivityContent message={message} />
      </div>
    );
  }
  if (message.role === "user") {
    const text = textOf(message.content);
    return <>{text && <p class="plain">{text}</p>}<Files parts={filesOf(message.content)} /></>;
  }
  return <Markdown text={textOf(message.content)} />;
}

function ActivityContent({ message: { activityType, content } }) {
  if (Array.isArray(content.a2ui_operations)) return <Surface operations={content.a2ui_operations} />;
  if (activityType !== "mcp-apps") return <Tree value={content} />;
  const parts = Array.isArray(content.result?.content) ? content.result.content : [];
  return (
    <>
      <p class="plain">{textOf(parts.filter((part) => typeof part?.text === "string"))}</p>
      <p class="note">{t("pageNotShown", content.resourceUri)}</p>
    </>
  );
}

function ToolCall({ session, call, result }) {
  const isMarked = session.marked === call.id;
  return (
    <details id={`item-${call.id}`} class={`tool-call${isMarked ? " is-marked" : ""}`} open>
      <summary>
        <span class="tool-name">{call.function.name}</span>
        {!result && <span class="badge">{t("noResult")}</span>}
        <Button kind="quiet" label={t("showEvents")} onClick={(event) => {
          event.preventDefault();
          session.mark(isMarked ? undefined : call.id);
        }}>
          {t("events")}
        </Button>
      </summary>
      <dl>
        <dt>{t("arguments")}</dt>
        <dd><pre>{pretty(call.function.arguments)}</pre></dd>
        {result && <dt>{t("result")}</dt>}
        {result && <dd><pre>{pretty(textOf(result.content))}</pre><Files parts={filesOf(result.content)} /></dd>}
      </dl>
    </details>
  );
}

/** Scores, with their names and signs. */
const RATINGS = [[1, "goodAnswer", "👍"], [-1, "badAnswer", "👎"]];

/** Thumbs up and down. A click on the chosen one takes it back. */
function Ratings({ session, id }) {
  const { score } = session.feedback[id] ?? {};
  return RATINGS.map(([value, name, sign]) => (
    <Button key={value} kind="quiet rating" label={t(name)} aria-pressed={score === value}
      onClick={() => session.rate(id, score === value ? undefined : value)}>
      {sign}
    </Button>
  ));
}

/** The other messages in the place of this one. An edit of the first message keeps its id, so the list has it once. */
function Branches({ session, id }) {
  const all = session.alternatives[id];
  if (!all || session.isRunning) return null;
  if (all.length === 1) {
    return <Button kind="quiet" onClick={() => session.switchBranch(id)}>{t("otherVersion")}</Button>;
  }
  const at = all.indexOf(id);
  return (
    <span class="branches">
      <Button kind="quiet" label={t("previous")} disabled={at === 0} onClick={() => session.switchBranch(all[at - 1])}>‹</Button>
      <span aria-label={t("version", at + 1, all.length)}>{at + 1}/{all.length}</span>
      <Button kind="quiet" label={t("next")} disabled={at === all.length - 1} onClick={() => session.switchBranch(all[at + 1])}>›</Button>
    </span>
  );
}

function EditForm({ session, message, onClose }) {
  const [text, setText] = useState(textOf(message.content));
  const save = (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    onClose();
    const others = contentParts(message.content).filter(({ type }) => type !== "text");
    session.edit(message.id, others.length > 0 ? [{ type: "text", text }, ...others] : text);
  };
  const onKeyDown = (event) => {
    if (isSend(event) && event.target.tagName === "TEXTAREA") save(event);
    if (event.key === "Escape") onClose();
  };
  return (
    <form class="edit-form" onSubmit={save} onKeyDown={onKeyDown}>
      <textarea aria-label={t("edit")} rows="3" value={text} onInput={(event) => setText(event.currentTarget.value)}
        ref={(field) => field && document.activeElement === document.body && field.focus()} />
      <div class="buttons">
        <button type="submit" class="button primary" disabled={!text.trim()}>{t("save")}</button>
        <Button onClick={onClose}>{t("cancel")}</Button>
      </div>
    </form>
  );
}
