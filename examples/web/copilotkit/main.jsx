// The page: a list of threads beside the chat of one of them.
import { CopilotKit, useCopilotKit } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import { useEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";

import { wrongField } from "../question";
import { Chat } from "./chat";
import { activities } from "./files";
import { call, headers, SERVER } from "./server";
import "./style.css";
import { Threads } from "./threads";

// CopilotKit's colours follow a class, those of style.css follow the system.
const darkness = matchMedia("(prefers-color-scheme: dark)");
const applyDarkness = () => document.documentElement.classList.toggle("dark", darkness.matches);
darkness.addEventListener("change", applyDarkness);
applyDarkness();

// CopilotKit loses a message that is sent before it knows the agents.
function Page() {
  const { copilotkit } = useCopilotKit();
  const status = copilotkit.runtimeConnectionStatus;
  // Later, rejoin.js shows that the server is away.
  const wasConnected = useRef(false);
  wasConnected.current ||= status === "connected";
  if (wasConnected.current) return <Conversations />;
  return status === "error" ? <NoServer /> : <p className="wait">Connecting…</p>;
}

function NoServer() {
  const [reason, setReason] = useState("The server does not answer.");
  // A server that refuses, such as for a wrong key, says why.
  useEffect(() => void call("GET", "/copilotkit/info").catch(({ message }) => setReason(message)), []);
  return <p className="wait" role="alert">{reason} <button onClick={() => location.reload()}>Try again</button></p>;
}

function Conversations() {
  // Each tab has a thread, which is restored after a reload.
  const [threadId, setThreadId] = useState(() => (sessionStorage.thread ??= crypto.randomUUID()));
  const [isListOpen, setListOpen] = useState(false);
  const [problem, setProblem] = useState();
  // The sockets of the lists do not outlive a server that is away for long: after a rejoin the list is a new one.
  const [rejoined, setRejoined] = useState(0);
  const open = (id) => {
    sessionStorage.thread = id;
    setThreadId(id);
    setListOpen(false);
    setProblem();
  };
  return (
    <div className="page">
      <Threads key={rejoined} current={threadId} open={open} isShown={isListOpen} onProblem={setProblem} />
      {isListOpen && <div className="backdrop" onClick={() => setListOpen(false)} />}
      <main>
        <button className="icon menu" aria-label="Conversations" onClick={() => setListOpen(true)}>☰</button>
        {problem && !wrongField(problem) && <p className="problem" role="alert">{problem}</p>}
        <Chat key={threadId} threadId={threadId} setProblem={setProblem} problem={problem} onRejoin={() => setRejoined((n) => n + 1)} />
      </main>
    </div>
  );
}

createRoot(document.getElementById("root")).render(
  <CopilotKit
    runtimeUrl={`${SERVER}/copilotkit`}
    headers={headers}
    renderActivityMessages={activities}
    showDevConsole={false} // The page shows errors itself: CopilotKit's banner is for developers, and covers the field.
    enableInspector={false} // It asks CopilotKit's hosts for news.
  >
    <Page />
  </CopilotKit>,
);
