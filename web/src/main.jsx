// The page: its frame, its settings, and the session behind it.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";

import { readKey } from "./api.js";
import { ApiLink } from "./api-link.jsx";
import { Chat } from "./chat.jsx";
import { Inspector } from "./inspector.jsx";
import { Button } from "./parts.jsx";
import { Session } from "./session.js";
import { readSetting, writeSetting } from "./storage.js";
import { SurfaceActions } from "./surface.jsx";
import { currentLanguage, t, useLanguage } from "./texts.js";
import { Threads } from "./threads.jsx";

const THEMES = ["auto", "light", "dark"];
const VIEWS = ["threads", "chat", "inspector"];

function applyTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function App({ session }) {
  const [, setVersion] = useState(0);
  const [theme, setTheme] = useState(THEMES.includes(readSetting("theme")) ? readSetting("theme") : "auto");
  // On a narrow screen one part is shown at a time.
  const [view, setView] = useState("chat");
  const redraw = () => setVersion((version) => version + 1);
  useEffect(() => session.subscribe(redraw), [session]);
  useEffect(() => {
    const onKeyDown = (event) => {
      if (event.key === "Escape" && session.isRunning && !document.querySelector("dialog[open]")) session.stop();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [session]);
  useEffect(() => {
    const isOfFiles = (event) => event.dataTransfer?.types.includes("Files") && !event.defaultPrevented;
    // Without it, the browser leaves the page for the file.
    const onDragOver = (event) => isOfFiles(event) && event.preventDefault();
    const onDrop = (event) => {
      if (!isOfFiles(event)) return;
      event.preventDefault();
      if (session.phase !== "ready") return;
      const [...files] = event.dataTransfer.files;
      const isRecording = session.recording || (files[0]?.name.endsWith(".jsonl") && !event.target.closest(".composer"));
      if (isRecording) session.openRecording(files[0]);
      else session.uploads.add(files);
    };
    document.addEventListener("dragover", onDragOver);
    document.addEventListener("drop", onDrop);
    return () => {
      document.removeEventListener("dragover", onDragOver);
      document.removeEventListener("drop", onDrop);
    };
  }, [session]);
  const chooseTheme = (event) => {
    applyTheme(event.currentTarget.value);
    writeSetting("theme", event.currentTarget.value === "auto" ? undefined : event.currentTarget.value);
    setTheme(event.currentTarget.value);
  };
  const isReady = session.phase === "ready";
  return (
    <div class="page" data-view={view}>
      <header class="top">
        <h1>agui-server <span>{t("playground")}</span></h1>
        {isReady && session.agentName && !session.recording && (
          <label>
            {t("agent")}
            <select value={session.agentName} disabled={session.isRunning} onChange={(event) => session.chooseAgent(event.currentTarget.value)}>
              {session.agents.map(({ name }) => <option value={name}>{name}</option>)}
            </select>
          </label>
        )}
        <span class="spacer" />
        {isReady && <ApiLink session={session} />}
        {isReady && readKey() && <Button kind="quiet" onClick={() => session.forgetKey()}>{t("forgetKey")}</Button>}
        <select aria-label={t("theme")} value={theme} onChange={chooseTheme}>
          {THEMES.map((name) => <option value={name}>{t(name)}</option>)}
        </select>
        <select aria-label={t("language")} value={currentLanguage()} onChange={(event) => (useLanguage(event.currentTarget.value), redraw())}>
          <option value="en" lang="en">English</option>
          <option value="zh" lang="zh">中文</option>
        </select>
      </header>
      {isReady && (
        <div class="views" role="group" aria-label={t("playground")}>
          {VIEWS.map((name) => (
            <button type="button" aria-pressed={view === name} onClick={() => setView(name)}>{t(name)}</button>
          ))}
        </div>
      )}
      {isReady ? (
        <main>
          <Threads session={session} onOpen={() => setView("chat")} />
          <SurfaceActions.Provider value={{ isLocked: !session.canAct(), act: (action) => session.act(action) }}>
            <Chat session={session} />
          </SurfaceActions.Provider>
          <Inspector session={session} />
        </main>
      ) : (
        <main class="alone"><Start session={session} /></main>
      )}
    </div>
  );
}

/** The page until the agents are known. */
function Start({ session }) {
  const [key, setKey] = useState("");
  if (session.phase === "failed") {
    return (
      <section class="card">
        <h2>{t("failed")}</h2>
        <p class="error" role="alert">{session.error?.message}</p>
        <Button kind="primary" onClick={() => session.load()}>{t("retry")}</Button>
      </section>
    );
  }
  if (session.phase !== "key") return null;
  const use = (event) => {
    event.preventDefault();
    session.useKey(key.trim());
  };
  return (
    <form class="card" onSubmit={use}>
      <h2>{t("keyNeeded")}</h2>
      <p class="muted">{t("keyHint")}</p>
      <label class="field">
        {t("key")}
        <input type="password" autocomplete="off" autofocus value={key} onInput={(event) => setKey(event.currentTarget.value)} />
      </label>
      {session.keyProblem && <p class="error" role="alert">{session.keyProblem}</p>}
      <button type="submit" class="button primary" disabled={!key.trim()}>{t("useKey")}</button>
    </form>
  );
}

useLanguage(currentLanguage());
applyTheme(readSetting("theme") ?? "auto");
const session = new Session();
render(<App session={session} />, document.body);
session.start();
