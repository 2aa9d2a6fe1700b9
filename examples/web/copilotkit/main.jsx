// The page of ../copilotkit-first and more. With ../question.jsx it is complete, and can be copied.
import {
  CopilotChat, CopilotKit, useAgent, useCopilotKit, useFrontendTool, useInterrupt, useRenderTool, useThreads,
} from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { z } from "zod";

import { Question } from "../question";

// A thread for each tab. It is restored after a reload.
const threadId = (sessionStorage.thread ??= crypto.randomUUID());
const FILES = ["report-2025.pdf", "report-2026.pdf", "invoice.pdf"];

function Chat() {
  // Shows the calls of a tool that the agent runs itself.
  useRenderTool({
    name: "get_weather",
    parameters: z.object({ city: z.string() }),
    render: ({ parameters, result }) => <p>Weather in {parameters.city}: {result ?? "…"}</p>,
  });
  // A tool of the page: the agent calls it, and continues with what the handler returns.
  useFrontendTool({
    name: "search_local_files",
    description: "Searches the user's files by name",
    parameters: z.object({ keyword: z.string() }),
    handler: async ({ keyword }) => FILES.filter((file) => file.includes(keyword)),
  });
  const { agent } = useAgent();
  const argumentsOf = (toolCallId) => {
    const calls = agent.messages.flatMap(({ toolCalls = [] }) => toolCalls);
    return calls.find((call) => call.id === toolCallId)?.function.arguments;
  };
  // A question that ends a run. The next run continues with the answer.
  useInterrupt({
    render: ({ interrupts, resolve, cancel }) =>
      interrupts.map(({ id, message, toolCallId, responseSchema }) => (
        <Question
          key={id}
          message={message}
          args={argumentsOf(toolCallId)}
          schema={responseSchema}
          resolve={(payload) => resolve(payload, id)}
          cancel={() => cancel(id)}
        />
      )),
  });

  // Edit and regenerate: the next run starts a branch at the user's message with this id, or at the last one before it.
  const { copilotkit } = useCopilotKit();
  const runFrom = (id, content) => {
    const shown = agent.messages.slice(0, agent.messages.findIndex((message) => message.id === id) + 1);
    const at = shown.findLastIndex(({ role }) => role === "user");
    agent.setMessages([...shown.slice(0, at), { ...shown[at], content: content ?? shown[at].content }]);
    copilotkit.runAgent({ agent });
  };
  const onEditMessage = ({ message: { id, content } }) => {
    const edited = prompt("Edit", content);
    if (edited) runFrom(id, edited);
  };
  const onRegenerate = ({ id }) => runFrom(id);
  const messageView = { userMessage: { onEditMessage }, assistantMessage: { onRegenerate } };

  // A question may be answered in another tab, or the server may refuse an answer. The page then reads the thread again, with
  // the questions that are open. The library does so only while none waits for an answer.
  const [problem, setProblem] = useState();
  useEffect(() => {
    const connect = agent.connectAgent;
    agent.connectAgent = (...all) => ((agent.pendingInterrupts = []), connect.apply(agent, all));
    const readAgain = () => !agent.isRunning && copilotkit.connectAgent({ agent });
    const { unsubscribe } = agent.subscribe({
      onRunInitialized: ({ input }) => void (input.resume && setProblem()),
      onRunErrorEvent: ({ event, input }) => {
        if (input.resume) setProblem(event.message), setTimeout(readAgain, 100);
      },
    });
    return () => ((agent.connectAgent = connect), unsubscribe());
  }, [agent, copilotkit]);
  // The library does not send a message while a question is open.
  const disabled = agent.pendingInterrupts.length > 0;
  const input = { textArea: { disabled, ...(disabled && { placeholder: "Answer the question first" }) } };
  return (
    <>
      {problem && <p role="alert">{problem}</p>}
      <CopilotChat threadId={threadId} messageView={messageView} input={input} />
    </>
  );
}

// The threads that are not archived. The list keeps itself current.
function Threads() {
  const { threads, renameThread, archiveThread } = useThreads({ agentId: "default" });
  const open = (id) => ((sessionStorage.thread = id), location.reload());
  return (
    <nav>
      <button onClick={() => open(crypto.randomUUID())}>New</button>
      {threads.map(({ id, name }) => (
        <span key={id}>
          <button onClick={() => open(id)}>{name ?? id}</button>{" "}
          <button onClick={() => renameThread(id, prompt("Name", name) ?? name)}>Rename</button>{" "}
          <button onClick={() => archiveThread(id)}>Archive</button>
        </span>
      ))}
    </nav>
  );
}

// CopilotKit loses a message that is sent before it knows the agents.
function Page() {
  const { copilotkit } = useCopilotKit();
  if (!["connected", "error"].includes(copilotkit.runtimeConnectionStatus)) return <p>Connecting…</p>;
  return <><Threads /><Chat /></>;
}

createRoot(document.getElementById("root")).render(
  <CopilotKit runtimeUrl="http://127.0.0.1:8080/copilotkit">
    <Page />
  </CopilotKit>,
);
