import { clientTools, fetchServerSentEvents, useChat } from "@tanstack/ai-react";
import { toolDefinition } from "@tanstack/ai/client";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { z } from "zod";

const SERVER = "http://127.0.0.1:8080";
const FILES = ["report-2025.pdf", "report-2026.pdf", "invoice.pdf"];

// A thread for each tab. It is restored after a reload, with a run that is still going on.
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

function App() {
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
  // A question that is no approval, such as a form, can only be declined here.
  const isApproval = interrupts.every(({ responseSchema }) => responseSchema?.properties?.approved);
  const answer = (approved) =>
    interrupts.forEach((interrupt) => (isApproval ? interrupt.resolveInterrupt({ approved }) : interrupt.cancel()));
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
      {interrupts.map(({ id, message }) => <p key={id}>{message}</p>)}
      {interrupts.length > 0 && (
        <p>
          {isApproval && <button onClick={() => answer(true)}>Approve</button>}{" "}
          <button onClick={() => answer(false)}>Decline</button>
        </p>
      )}
      <p role="alert">{error?.message}</p>
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} /> <button>Send</button>{" "}
        <button type="button" disabled={isLoading} onClick={chat.reload}>Repeat</button>{" "}
        <button type="button" onClick={stop}>Stop</button>
      </form>
    </>
  );
}

createRoot(document.getElementById("root")).render(<App />);
