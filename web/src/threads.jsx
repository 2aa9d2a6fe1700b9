// The list of threads.

import { useEffect, useRef, useState } from "preact/hooks";

import { shortTime } from "./dates.js";
import { Button } from "./parts.jsx";
import { t } from "./texts.js";

const SEARCH_DELAY_MS = 250;

export function Threads({ session, onOpen }) {
  const { threads, next, query, archived } = session.threads;
  const [renamed, setRenamed] = useState();
  const [removed, setRemoved] = useState();
  const file = useRef();
  const recording = useRef();
  const delay = useRef();
  const openId = session.recording ? undefined : session.agent?.threadId;
  const search = (event) => {
    session.threads.query = event.currentTarget.value;
    clearTimeout(delay.current);
    delay.current = setTimeout(() => session.threads.read(), SEARCH_DELAY_MS);
    session.changed();
  };
  const open = (thread) => {
    if (thread.threadId !== openId) session.openThread(thread.threadId, thread.agent);
    onOpen();
  };
  return (
    <nav class="threads" aria-label={t("threads")}>
      <Button kind="primary wide" onClick={() => (session.startThread(), onOpen())}>{t("newThread")}</Button>
      <input type="search" aria-label={t("search")} placeholder={t("search")} maxlength="200" value={query} onInput={search} />
      <ul>
        {threads.length === 0 && <li class="muted">{t("noThreads")}</li>}
        {threads.map((thread) => (
          <li key={thread.threadId} class={thread.threadId === openId ? "is-current" : ""}>
            {renamed === thread.threadId ? (
              <RenameForm session={session} thread={thread} onClose={() => setRenamed(undefined)} />
            ) : (
              <>
                <button type="button" class="thread" onClick={() => open(thread)}
                  aria-current={thread.threadId === openId ? "true" : undefined}>
                  <span class="thread-title">{thread.title ?? t("untitled")}</span>
                  <span class="thread-more">
                    {thread.activeRunId && <span class="dot" title={t("running")} />}
                    {thread.agent} · {shortTime(thread.updatedAt)}
                  </span>
                </button>
                <Menu label={`${t("actions")}: ${thread.title ?? t("untitled")}`}>
                  <Button kind="quiet" onClick={() => setRenamed(thread.threadId)}>{t("rename")}</Button>
                  <Button kind="quiet" onClick={() => session.editThread(thread.threadId, { archived: !thread.archived })}>
                    {t(thread.archived ? "unarchive" : "archive")}
                  </Button>
                  <Button kind="quiet" onClick={() => session.exportThread(thread.threadId)}>{t("exportThread")}</Button>
                  <Button kind="quiet danger" onClick={() => setRemoved(thread)}>{t("remove")}</Button>
                </Menu>
              </>
            )}
          </li>
        ))}
        {next && <li><Button kind="quiet wide" onClick={() => session.threads.read({ more: true })}>{t("more")}</Button></li>}
      </ul>
      <div class="threads-footer">
        <label>
          <input type="checkbox" checked={archived} onInput={(event) => session.threads.showArchived(event.currentTarget.checked)} />
          {t("archivedOnly")}
        </label>
        <Button kind="quiet" onClick={() => file.current.click()}>{t("importThread")}</Button>
        <input ref={file} type="file" accept="application/json,.json" hidden aria-label={t("importThread")}
          onChange={(event) => {
            session.importThread(event.currentTarget.files[0]);
            event.currentTarget.value = "";
          }} />
      </div>
      {removed && <RemoveDialog session={session} thread={removed} onClose={() => setRemoved(undefined)} />}
      <Button kind="quiet wide" onClick={() => recording.current.click()}>{t("openRecording")}</Button>
      <input ref={recording} type="file" accept=".jsonl" hidden aria-label={t("openRecording")}
        onChange={(event) => {
          session.openRecording(event.currentTarget.files[0]);
          event.currentTarget.value = "";
          onOpen();
        }} />
    </nav>
  );
}

/** A button that opens a few actions. Escape and a click elsewhere close it. */
function Menu({ label, children }) {
  const details = useRef();
  // An action can remove the menu, with its thread.
  const close = () => details.current && (details.current.open = false);
  const onKeyDown = (event) => {
    if (event.key !== "Escape" || !details.current.open) return;
    event.stopPropagation();
    close();
    details.current.querySelector("summary").focus();
  };
  const onFocusOut = (event) => !event.currentTarget.contains(event.relatedTarget) && close();
  return (
    <details class="menu" ref={details} onKeyDown={onKeyDown} onFocusOut={onFocusOut}>
      <summary aria-label={label} title={label}>⋯</summary>
      <div class="menu-items" onClick={close}>{children}</div>
    </details>
  );
}

function RenameForm({ session, thread, onClose }) {
  const [title, setTitle] = useState(thread.title ?? "");
  const field = useRef();
  useEffect(() => field.current.select(), []);
  const save = (event) => {
    event.preventDefault();
    onClose();
    session.editThread(thread.threadId, { title: title.trim() || null });
  };
  return (
    <form class="rename-form" onSubmit={save} onKeyDown={(event) => event.key === "Escape" && onClose()}>
      <input ref={field} aria-label={t("title")} value={title} onInput={(event) => setTitle(event.currentTarget.value)} />
      <button type="submit" class="button primary">{t("save")}</button>
    </form>
  );
}

function RemoveDialog({ session, thread, onClose }) {
  const dialog = useRef();
  useEffect(() => dialog.current.showModal(), []);
  const remove = () => {
    onClose();
    session.deleteThread(thread.threadId);
  };
  return (
    <dialog ref={dialog} onClose={onClose} aria-label={t("remove")}>
      <p>{t("removeThis")}</p>
      <p><strong>{thread.title ?? t("untitled")}</strong></p>
      <div class="buttons">
        <Button kind="danger" onClick={remove}>{t("remove")}</Button>
        <Button onClick={() => dialog.current.close()}>{t("cancel")}</Button>
      </div>
    </dialog>
  );
}
