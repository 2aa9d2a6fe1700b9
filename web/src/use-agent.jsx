// The lines with which a program uses the chosen agent, for each client. docs/protocol.md says what each can do.

import { useEffect, useMemo, useState } from "preact/hooks";

import { dependencies } from "../../examples/web/package.json";
import { BASE, curlCommand, readKey, request } from "./api.js";
import { CopyButton } from "./parts.jsx";
import { t } from "./texts.js";

const GREETING = "Hello";

/** Returns the command that installs packages in the versions with which the examples are tested. */
const install = (...names) => `npm install ${names.map((name) => `${name}@${dependencies[name]}`).join(" ")}`;

/** Returns names and lines. `copilotKit`: the path of CopilotKit's runtime, if the server has one. */
function linesFor(name, copilotKit) {
  const url = `${BASE}/agents/${encodeURIComponent(name)}/send-message`;
  const key = readKey() ? { object: ', headers: { Authorization: "Bearer …" }', second: ', { headers: { Authorization: "Bearer …" } }', prop: ' headers={{ Authorization: "Bearer …" }}' } : {};
  const message = { id: crypto.randomUUID(), role: "user", content: GREETING };
  const body = JSON.stringify({ threadId: crypto.randomUUID(), runId: crypto.randomUUID(), messages: [message] });
  const quoted = JSON.stringify(name);
  return {
    curl: curlCommand({ url, body }),
    HttpAgent: `// ${install("@ag-ui/client")}
import { HttpAgent } from "@ag-ui/client";

const agent = new HttpAgent({ url: "${url}"${key.object ?? ""} });
agent.addMessage({ id: crypto.randomUUID(), role: "user", content: "${GREETING}" });
await agent.runAgent();
console.log(agent.messages.at(-1).content);`,
    ...(copilotKit && {
      CopilotKit: `// ${install("@copilotkit/react-core", "react", "react-dom", "zod")}
import { CopilotChat, CopilotKit } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";

export const App = () => (
  <CopilotKit runtimeUrl="${BASE}${copilotKit}"${key.prop ?? ""}>
    <CopilotChat agentId={${quoted}} />
  </CopilotKit>
);`,
    }),
    "TanStack AI": `// ${install("@tanstack/ai-react", "react", "react-dom")}
import { fetchServerSentEvents, useChat } from "@tanstack/ai-react";

const connection = fetchServerSentEvents("${url}"${key.second ?? ""});

export function App() {
  const { messages, sendMessage } = useChat({ connection });
  const text = ({ parts }) => parts.map((part) => part.type === "text" && part.content);
  return (
    <>
      {messages.map((message) => <p key={message.id}>{message.role}: {text(message)}</p>)}
      <button onClick={() => sendMessage("${GREETING}")}>${GREETING}</button>
    </>
  );
}`,
    Rust: `// agui-server = { git = "https://github.com/agui-server/agui-server" }, tokio = { version = "1", features = ["full"] }
use agui_server::agent::builtin::{Remote, RemoteOptions};
use agui_server::prelude::*;

// A server of your own, with this agent behind it.
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ${key.object ? "mut " : ""}options = RemoteOptions::new("${url}");${key.object ? `
    // The variable has the whole value: "Bearer …".
    options.headers_env.insert("Authorization".into(), "UPSTREAM_TOKEN".into());` : ""}
    Ok(Server::new().agent(${quoted}, Remote::new(options)?).serve("127.0.0.1:9000").await?)
}`,
  };
}

export function UseAgent({ session }) {
  const [copilotKit, setCopilotKit] = useState();
  useEffect(() => {
    session.attempt(async () => {
      const description = await (await request(`${BASE}/`, { headers: { accept: "application/json" } })).json();
      setCopilotKit(description.routes.find(({ purpose }) => purpose.includes("CopilotKit"))?.path);
    });
  }, [session]);
  const name = session.agentName;
  const lines = useMemo(() => linesFor(name, copilotKit), [name, copilotKit]);
  return (
    <>
      <p class="muted">{t("useHint")}</p>
      {Object.entries(lines).map(([client, text]) => (
        <section class="lines" aria-label={client}>
          <header>
            <h3>{client}</h3>
            <CopyButton label={`${t("copy")}: ${client}`} text={() => text}>{t("copy")}</CopyButton>
          </header>
          <pre>{text}</pre>
        </section>
      ))}
    </>
  );
}
