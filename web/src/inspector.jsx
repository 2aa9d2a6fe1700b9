// What happens behind the chat: events, state, runs, the page's tools, and what the agent can do.

import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

import { clock } from "./dates.js";
import { CopyButton, Button, Tree, cut, seconds } from "./parts.jsx";
import { Runs } from "./runs.jsx";
import { t } from "./texts.js";
import { Tools } from "./tools.jsx";

const TABS = { events: Events, state: StateTab, runs: Runs, tools: Tools, capabilities: Capabilities };
/** The tabs of a recording. */
const RECORDED = ["events", "state", "runs"];
/** Rows of events that are shown at once. More are shown on demand. */
const SHOWN_EVENTS = 400;
/** The distance from the end, in pixels, within which the list follows new events. */
const NEAR_END = 80;
/** Characters of an event in its row, and of a value in the list of changes. */
const BRIEF_CHARS = 300;
const CHANGE_CHARS = 5000;

export function Inspector({ session }) {
  const [chosen, setTab] = useState("events");
  const id = useId();
  const names = session.recording ? RECORDED : Object.keys(TABS).filter((name) => name !== "runs" || session.threads.isStored);
  const tab = names.includes(chosen) ? chosen : "events";
  const bar = useRef();
  useEffect(() => {
    if (session.marked) setTab("events");
  }, [session.marked]);
  const onKeyDown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = names[(names.indexOf(tab) + step + names.length) % names.length];
    setTab(next);
    bar.current.querySelector(`[data-tab=${next}]`).focus();
  };
  const Tab = TABS[tab];
  return (
    <aside class="inspector" aria-label={t("inspector")}>
      <div class="tabs" role="tablist" ref={bar} onKeyDown={onKeyDown} aria-label={t("inspector")}>
        {names.map((name) => (
          <button key={name} type="button" role="tab" id={`${id}-${name}`} data-tab={name} aria-selected={name === tab}
            aria-controls={`${id}-panel`} tabindex={name === tab ? 0 : -1} onClick={() => setTab(name)}>
            {t(name)}
          </button>
        ))}
      </div>
      <div class={`panel is-${tab}`} role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${tab}`} tabindex="0">
        <Tab session={session} />
      </div>
    </aside>
  );
}

// --- Events ---------------------------------------------------------------------------------------

function Events({ session }) {
  const { entries } = session.recorder ?? { entries: [] };
  const [filter, setFilter] = useState("");
  const [limit, setLimit] = useState(SHOWN_EVENTS);
  const [opened, setOpened] = useState(new Set());
  const list = useRef();
  const { marked } = session;
  const wanted = filter.trim().toLowerCase();
  const matching = wanted ? entries.filter(({ event }) => JSON.stringify(event).toLowerCase().includes(wanted)) : entries;
  const shown = matching.slice(-limit);
  const follows = useRef(true);
  useEffect(() => {
    const panel = list.current.closest(".panel");
    const onScroll = () => (follows.current = panel.scrollHeight - panel.scrollTop - panel.clientHeight < NEAR_END);
    panel.addEventListener("scroll", onScroll);
    return () => panel.removeEventListener("scroll", onScroll);
  }, []);
  useLayoutEffect(() => {
    const panel = list.current.closest(".panel");
    if (follows.current) panel.scrollTop = panel.scrollHeight;
  }, [entries.length]);
  useEffect(() => {
    if (marked) list.current?.querySelector(".is-marked")?.scrollIntoView({ block: "nearest" });
  }, [marked]);
  const toggle = (entry) => {
    const next = new Set(opened);
    if (!next.delete(entry)) next.add(entry);
    setOpened(next);
    if (entry.anchor) session.mark(entry.anchor);
  };
  const onKeyDown = (event) => {
    const sibling = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const row = sibling && event.target.closest("li")?.[sibling]?.querySelector("button");
    if (!row) return;
    event.preventDefault();
    row.focus();
  };
  return (
    <>
      <div class="panel-bar">
        <input type="search" aria-label={t("filter")} placeholder={t("filter")} value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <CopyButton label={t("copyEvents")} text={() => entries.map(({ event }) => JSON.stringify(event)).join("\n")}>{t("copy")}</CopyButton>
        {session.canSave(entries.at(-1)?.runId) && (
          <Button kind="quiet" label={t("saveLastRecording")} onClick={() => session.saveRecording(entries.at(-1).runId)}>{t("save")}</Button>
        )}
      </div>
      {entries.length === 0 && <p class="muted">{t("noEvents")}</p>}
      {matching.length > shown.length && (
        <Button kind="quiet wide" onClick={() => setLimit(limit + SHOWN_EVENTS)}>
          {t("earlierEvents", Math.min(matching.length - shown.length, SHOWN_EVENTS))}
        </Button>
      )}
      <ol class="events" ref={list} onKeyDown={onKeyDown} aria-label={t("events")}>
        {shown.map((entry) => (
          <li key={entry.number} class={entry.anchor && entry.anchor === marked ? "is-marked" : ""}>
            <button type="button" class={`event is-${family(entry.event.type)}`} aria-expanded={opened.has(entry)} onClick={() => toggle(entry)}>
              <span class="event-time" title={entry.ms === undefined ? undefined : `+${seconds(entry.ms)}`}>{eventTime(session, entry)}</span>
              <span class="event-type">{entry.event.type}</span>
              <span class="event-brief">{brief(entry.event)}</span>
            </button>
            {opened.has(entry) && (
              <div class="event-more">
                {entry.changes?.length > 0 && <Changes changes={entry.changes} />}
                <Tree value={entry.event} />
              </div>
            )}
          </li>
        ))}
      </ol>
    </>
  );
}

/** The time of the day; in a recording, the time since the run's start. */
function eventTime(session, { at, ms }) {
  if (session.recording) return seconds(ms);
  return at ? clock(at) : "";
}

/** The first word of a type decides its colour. */
const family = (type) => type.split("_")[0].toLowerCase();

/** Returns the member of an event that tells it from others of its type. */
function brief(event) {
  const value =
    event.delta ?? event.content ?? event.toolCallName ?? event.stepName ?? event.name ?? event.message ??
    event.outcome?.type ?? event.snapshot ?? event.messages?.length ?? event.role ?? "";
  return cut(typeof value === "string" ? value : JSON.stringify(value), BRIEF_CHARS);
}

function Changes({ changes }) {
  return (
    <ul class="changes" aria-label={t("changed")}>
      {changes.map(({ op, path, value, from }) => (
        <li class={`is-${op}`}>
          <span class="change-op">{op}</span> <code>{path || "/"}</code>
          {from !== undefined && <> ← <code>{from}</code></>}
          {value !== undefined && <> = <code>{cut(JSON.stringify(value), CHANGE_CHARS)}</code></>}
        </li>
      ))}
    </ul>
  );
}

// --- State ----------------------------------------------------------------------------------------

function StateTab({ session }) {
  const state = session.agent?.state;
  const changing = (session.recorder?.entries ?? []).filter(({ changes }) => changes?.length > 0);
  const last = changing.at(-1);
  const isEmpty = state === undefined || state === null || Object.keys(state).length === 0;
  return (
    <>
      <h3>{t("stateOf")}</h3>
      {isEmpty ? <p class="muted">{t("noState")}</p> : <Tree value={state} changed={new Set(last?.changes.map(({ path }) => path))} />}
      {changing.length > 0 && <h3>{t("changed")}</h3>}
      <ol class="state-changes">
        {changing.toReversed().map((entry) => (
          <li key={entry.number}>
            <span class="muted">#{entry.number} {entry.event.type}</span>
            <Changes changes={entry.changes} />
          </li>
        ))}
      </ol>
    </>
  );
}

// --- Capabilities ---------------------------------------------------------------------------------

function Capabilities({ session }) {
  const { capabilities } = session;
  if (!capabilities) return <p class="muted">{t("noCapabilities")}</p>;
  return <Tree value={capabilities} />;
}
