import { clientTools, fetchServerSentEvents, useChat } from "@tanstack/ai-react";
import { toolDefinition } from "@tanstack/ai/client";
import { useEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { z } from "zod";

import { Question, wrongField } from "../question";

const SERVER = "http://127.0.0.1:8080";
const FILES = ["report-2025.pdf", "report-2026.pdf", "invoice.pdf"];

// A thread for each tab. It is restored after a reload, with a run that is still running.
const threadId = (sessionStorage.thread ??= crypto.randomUUID());

// A tool of the page: the agent calls it, and continues with its result.
const searchFiles = toolDefinition({
  name: "search_local_files",
  description: "Searches the user's files by name",
  inputSchema: z.object({ keyword: z.string() }),
}).client(({ keyword }) => FILES.filter((file) => file.includes(keyword)));
const tools = clientTools(searchFiles);
const connection = fetchServerSentEvents(`${SERVER}/send-message`);

function Part({ part }) {
  if (part.type === "text") return part.content;
  if (part.type === "tool-call") return `[${part.name} ${part.arguments}] `;
  if (part.type === "tool-result") return `${part.content} `;
  return null;
}

// After an answer that the server refuses, the page reads the thread again, with the questions that are open.
function Page() {
  const [{ reads, problem }, setRead] = useState({ reads: 0 });
  const onRefusal = (error) => setRead({ reads: reads + 1, problem: error.message });
  const forget = () => setRead({ reads });
  return (
    <>
      {!wrongField(problem) && <p role="alert">{problem}</p>}
      <App key={reads} problem={problem} onRefusal={onRefusal} onReply={forget} />
    </>
  );
}

function App({ problem, onRefusal, onReply }) {
  const chat = useChat({
    threadId, connection, tools, persistence: true, forwardedProps: { onDisconnect: "continue" },
  });
  const { messages, isLoading, error, interrupts } = chat;
  const [text, setText] = useState("");

  const send = (event) => {
    event.preventDefault();
    chat.sendMessage(text);
    setText("");
  };
  // The next run begins when all interrupts are answered.
  const isReply = useRef(false);
  const reply = (send) => ((isReply.current = true), onReply(), send());
  useEffect(() => {
    if (error && isReply.current) onRefusal(error);
    if (!isLoading) isReply.current = false;
  }, [error, isLoading]);
  const isLocked = interrupts.length > 0;
  // `chat.stop()` would leave the detached run running.
  const stop = () => fetch(`${SERVER}/threads/${threadId}/runs/${chat.runId}/cancel`, { method: "POST" });
  const edit = (index) => {
    const content = prompt("Edit");
    if (!content) return;
    chat.setMessages(messages.slice(0, index));
    chat.sendMessage(content);
  };

  return (
    <>
      {messages.map(({ id, role, parts }, index) => (
        <p key={id}>
          {role}: {parts.map((part, at) => <Part key={at} part={part} />)}{" "}
          {role === "user" && <button disabled={isLoading} onClick={() => edit(index)}>Edit</button>}
        </p>
      ))}
      {interrupts.map((interrupt) => (
        <Question
          key={interrupt.id}
          id={interrupt.id}
          message={interrupt.message}
          schema={interrupt.responseSchema}
          url={interrupt.metadata?.["agui-server.visitUrl"]}
          problem={problem}
          resolve={(payload) => reply(() => interrupt.resolveInterrupt(payload))}
          cancel={() => reply(() => interrupt.cancel())}
        />
      ))}
      <p role="alert">{error?.message}</p>
      <form onSubmit={send}>
        <input
          aria-label="Message"
          value={text}
          onChange={(event) => setText(event.target.value)}
          disabled={isLocked}
          placeholder={isLocked ? "Answer the question first" : undefined}
        />{" "}
        <button disabled={isLocked}>Send</button>{" "}
        <button type="button" disabled={isLoading} onClick={chat.reload}>Repeat</button>{" "}
        <button type="button" onClick={stop}>Stop</button>
      </form>
    </>
  );
}

createRoot(document.getElementById("root")).render(<Page />);
