// The events of a thread, run by run, and what each changed in the state.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { clock } from "./dates.js";
import { EventRows } from "./event-rows.js";
import { Button, CopyButton, Tree, cut, seconds } from "./parts.jsx";
import { t } from "./texts.js";

/** Rows that are shown at once. More are shown on demand. */
export const SHOWN_EVENTS = 400;
/** Parts of a text that an opened row shows at once. */
const SHOWN_PARTS = 100;
/** The distance from the end, in pixels, within which the list follows new events. */
const NEAR_END = 80;
/** Characters of a value in the list of changes, and of a part of a text. */
const CHANGE_CHARS = 5000;
const NONE = [];

export function Events({ session }) {
  const entries = session.recorder?.entries ?? NONE;
  const [filter, setFilter] = useState("");
  const [limit, setLimit] = useState(SHOWN_EVENTS);
  const [opened, setOpened] = useState(new Set());
  const list = useRef();
  const { marked } = session;
  const wanted = filter.trim().toLowerCase();
  const rows = useMemo(() => new EventRows(entries, wanted), [entries, wanted]).update();
  const shown = rows.slice(-limit);
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
  }, [rows.length]);
  useEffect(() => {
    if (marked) list.current?.querySelector(".is-marked")?.scrollIntoView({ block: "nearest" });
  }, [marked]);
  const toggle = ({ key, entries: [{ anchor }] }) => {
    const next = new Set(opened);
    if (!next.delete(key)) next.add(key);
    setOpened(next);
    if (anchor) session.mark(anchor);
  };
  const onKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const buttons = step ? [...list.current.querySelectorAll(".event")] : NONE;
    const row = buttons[buttons.indexOf(event.target) + step];
    if (!row || !buttons.includes(event.target)) return;
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
      {rows.length > shown.length && (
        <Button kind="quiet wide" onClick={() => setLimit(limit + SHOWN_EVENTS)}>
          {t("earlierEvents", Math.min(rows.length - shown.length, SHOWN_EVENTS))}
        </Button>
      )}
      <ol class="events" ref={list} onKeyDown={onKeyDown} aria-label={t("events")}>
        {shown.map((row) =>
          row.number ? <RunHead key={row.key} session={session} row={row} /> : (
            <Row key={row.key} session={session} row={row} isOpen={opened.has(row.key)} onToggle={() => toggle(row)} />
          ))}
      </ol>
    </>
  );
}

function RunHead({ session, row: { head, number } }) {
  const { agent, sentAt, endedAt } = session.recorder.runs.get(head) ?? {};
  return (
    <li class="run-head">
      <strong>{t("runNumber", number)}</strong> {agent} <code title={head}>{head}</code>
      {endedAt >= sentAt && <span>{seconds(endedAt - sentAt)}</span>}
    </li>
  );
}

function Row({ session, row: { entries, text }, isOpen, onToggle }) {
  const [{ event, anchor, changes }] = entries;
  return (
    <li class={anchor && anchor === session.marked ? "is-marked" : ""}>
      <button type="button" class={`event is-${family(event.type)}`} aria-expanded={isOpen} onClick={onToggle}>
        <Time session={session} entry={entries[0]} />
        <span class="event-type">{event.type}</span>
        {entries.length > 1 && <span class="badge">{entries.length}</span>}
        <span class="event-brief">{text}</span>
      </button>
      {isOpen && (
        <div class="event-more">
          {changes?.length > 0 && <Changes changes={changes} />}
          {entries.length > 1 ? <Parts session={session} entries={entries} /> : <Tree value={event} />}
        </div>
      )}
    </li>
  );
}

/** The parts of a text, as they came. */
function Parts({ session, entries }) {
  const [limit, setLimit] = useState(SHOWN_PARTS);
  return (
    <ol class="parts">
      {entries.slice(0, limit).map((entry) => (
        <li><Time session={session} entry={entry} /> <code>{JSON.stringify(cut(entry.event.delta, CHANGE_CHARS))}</code></li>
      ))}
      {entries.length > limit && (
        <li><Button kind="quiet" onClick={() => setLimit(limit + SHOWN_PARTS)}>{t("moreMembers", entries.length - limit)}</Button></li>
      )}
    </ol>
  );
}

/** The time of the day; in a recording, the time since the run's start. */
function Time({ session, entry: { at, ms } }) {
  const sinceStart = ms === undefined ? undefined : seconds(ms);
  const ofDay = at ? clock(at) : "";
  return <span class="event-time" title={sinceStart && `+${sinceStart}`}>{session.recording ? sinceStart : ofDay}</span>;
}

/** The first word of a type decides its colour. */
const family = (type) => type.split("_")[0].toLowerCase();

/** The operations that an event has applied to the state. */
export function Changes({ changes }) {
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
