// The field for the next message, with its files.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { acceptedTypes } from "./content.js";
import { UploadList } from "./files.jsx";
import { Microphone } from "./microphone.jsx";
import { Button, isSend } from "./parts.jsx";
import { readTab, writeTab } from "./storage.js";
import { t } from "./texts.js";

export function Composer({ session }) {
  const { uploads } = session;
  // The draft of each thread stays in the tab.
  const draft = `draft.${session.draftKey()}`;
  const [text, setText] = useState("");
  const write = (text) => (setText(text), writeTab(draft, text || undefined));
  const picker = useRef();
  const field = useRef();
  const threadId = session.agent?.threadId;
  useEffect(() => field.current.focus(), [threadId]);
  useEffect(() => setText(readTab(draft) ?? ""), [draft]);
  useLayoutEffect(() => {
    field.current.style.height = "auto";
    field.current.style.height = `${field.current.scrollHeight + 2}px`;
  }, [text]);
  const isAsking = !session.isRunning && (session.questions().length > 0 || session.openCalls().length > 0);
  const isBlocked = session.isRunning || isAsking;
  const canSend = !isBlocked && uploads.areDone && (text.trim() || uploads.list.some(({ part }) => part));
  const send = () => {
    if (!canSend) return;
    const parts = uploads.take();
    const content = parts.length > 0 ? [...(text.trim() ? [{ type: "text", text }] : []), ...parts] : text;
    write("");
    session.send(content);
  };
  const onKeyDown = (event) => {
    if (!isSend(event)) return;
    event.preventDefault();
    send();
  };
  return (
    <form class="composer" onSubmit={(event) => (event.preventDefault(), send())}>
      <UploadList uploads={uploads} />
      <textarea ref={field} rows="1" aria-label={t("message")} placeholder={t(isAsking ? "asking" : "message")} title={t("sendHint")} value={text}
        onInput={(event) => write(event.currentTarget.value)} onKeyDown={onKeyDown}
        onPaste={(event) => event.clipboardData.files.length > 0 && (event.preventDefault(), uploads.add(event.clipboardData.files))} />
      <input ref={picker} type="file" multiple hidden aria-label={t("attach")} accept={acceptedTypes(session.capabilities)}
        onChange={(event) => (uploads.add(event.currentTarget.files), (event.currentTarget.value = ""))} />
      <Button kind="icon" label={t("attach")} onClick={() => picker.current.click()}>+</Button>
      {session.transcribePath && (
        <Microphone path={session.transcribePath} onText={(said) => write(field.current.value ? `${field.current.value} ${said}` : said)} />
      )}
      {session.isRunning ? (
        <Button kind="stop" onClick={() => session.stop()}>{t("stop")}</Button>
      ) : (
        <button type="submit" class="button primary" disabled={!canSend}>{t("send")}</button>
      )}
    </form>
  );
}
