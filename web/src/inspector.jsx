// The tabs beside the chat. The small ones are here: the state, and the agent's capabilities.

import { useEffect, useId, useRef, useState } from "preact/hooks";

import { Changes, Events, SHOWN_EVENTS } from "./events.jsx";
import { Button, JsonField, Tree } from "./parts.jsx";
import { RequestTab } from "./request.jsx";
import { Runs } from "./runs.jsx";
import { t } from "./texts.js";
import { Tools } from "./tools.jsx";
import { UseAgent } from "./use-agent.jsx";

const TABS = { events: Events, state: StateTab, runs: Runs, tools: Tools, request: RequestTab, capabilities: Capabilities, useAgent: UseAgent };
/** Names that are too long for one row of tabs. */
const SHORT = { useAgent: "use" };
/** The tabs of a recording. */
const RECORDED = ["events", "state", "runs"];

export function Inspector({ session }) {
  const [chosen, setTab] = useState("events");
  const id = useId();
  const names = session.recording ? RECORDED : Object.keys(TABS);
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
            aria-controls={`${id}-panel`} tabindex={name === tab ? 0 : -1} onClick={() => setTab(name)}
            aria-label={name in SHORT ? t(name) : undefined} title={name in SHORT ? t(name) : undefined}>
            {t(SHORT[name] ?? name)}{name === "request" && session.extras && <span class="dot" title={t("requestSet")} />}
          </button>
        ))}
      </div>
      <div class={`panel is-${tab}`} role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${tab}`} tabindex="0">
        <Tab key={session.agent?.threadId} session={session} />
      </div>
    </aside>
  );
}

// --- State ----------------------------------------------------------------------------------------

function StateTab({ session }) {
  const [isEditing, setEditing] = useState(false);
  const state = session.agent?.state;
  const changing = (session.recorder?.entries ?? []).filter(({ changes }) => changes?.length > 0);
  const last = changing.at(-1);
  const isEmpty = state === undefined || state === null || Object.keys(state).length === 0;
  if (isEditing) return <StateForm session={session} onClose={() => setEditing(false)} />;
  return (
    <>
      <div class="panel-bar">
        <h3>{t("stateOf")}</h3>
        {!session.recording && <Button kind="quiet" disabled={session.isRunning} onClick={() => setEditing(true)}>{t("edit")}</Button>}
      </div>
      {isEmpty ? <p class="muted">{t("noState")}</p> : <Tree value={state} changed={new Set(last?.changes.map(({ path }) => path))} />}
      {changing.length > 0 && <h3>{t("changed")}</h3>}
      <ol class="state-changes">
        {changing.slice(-SHOWN_EVENTS).toReversed().map((entry) => (
          <li key={entry.number}>
            <span class="muted">#{entry.number} {entry.event.type}</span>
            <Changes changes={entry.changes} />
          </li>
        ))}
      </ol>
    </>
  );
}

/** The state of the next run, in this thread or in a copy of it. */
function StateForm({ session, onClose }) {
  const { agent, isRunning, thread } = session;
  const [value, setValue] = useState(agent.state);
  const cannotSave = value === undefined || isRunning;
  const save = (event) => {
    event.preventDefault();
    session.setState(value);
    onClose();
  };
  const fork = async () => {
    onClose();
    await session.fork(undefined, value);
  };
  return (
    <form class="schema-form" onSubmit={save}>
      <p class="muted">{t("stateHint")}</p>
      <JsonField label={t("state")} value={agent.state} rows={16} onValue={setValue} />
      <div class="buttons">
        <button type="submit" class="button primary" disabled={cannotSave}>{t("save")}</button>
        {thread && <Button disabled={cannotSave} onClick={fork}>{t("saveInFork")}</Button>}
        <Button onClick={onClose}>{t("cancel")}</Button>
      </div>
    </form>
  );
}

// --- Capabilities ---------------------------------------------------------------------------------

function Capabilities({ session }) {
  const { capabilities } = session;
  if (!capabilities) return <p class="muted">{t("noCapabilities")}</p>;
  return <Tree value={capabilities} />;
}
