import { CopilotChat, CopilotKit, useAgent, useFrontendTool, useInterrupt, useRenderTool } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { z } from "zod";

const threadId = (sessionStorage.thread ??= crypto.randomUUID()); // the tab's thread, also after a reload

function Chat() {
  // Shows the calls of a tool that the agent runs itself.
  useRenderTool({
    name: "get_weather", parameters: z.object({ city: z.string() }),
    render: ({ parameters, result }) => <p>Weather in {parameters.city}: {result ?? "…"}</p>,
  });
  // A tool of the page: the agent calls it, and continues with what the handler returns.
  useFrontendTool({
    name: "search_local_files", description: "Searches the user's files by name", parameters: z.object({ keyword: z.string() }),
    handler: async ({ keyword }) => ["report-2025.pdf", "report-2026.pdf", "invoice.pdf"].filter((file) => file.includes(keyword)),
  });
  // Questions that end a run. The next run continues with the answers to all of them.
  useInterrupt({ render: ({ interrupts, ...act }) => interrupts.map((asked) => <Question key={asked.id} {...asked} {...act} />) });
  const disabled = useAgent().agent.pendingInterrupts.length > 0; // the library sends no message while a question is open
  return <CopilotChat threadId={threadId} input={{ textArea: { disabled } }} />;
}

function Question({ id, message, toolCallId, metadata, responseSchema, resolve, cancel }) {
  const [answer, setAnswer] = useState();
  const calls = useAgent().agent.messages.flatMap(({ toolCalls = [] }) => toolCalls);
  const written = calls.find((call) => call.id === toolCallId)?.function.arguments;
  const button = (name, send) => !answer && <button onClick={() => (setAnswer(name), send())}>{name}</button>;
  return (
    <p className="question">
      {message} <code>{metadata?.arguments ? JSON.stringify(metadata.arguments) : written}</code> <strong>{answer}</strong>
      {button("Decline", () => cancel(id))}
      {responseSchema?.properties?.approved && button("Approve", () => resolve({ approved: true }, id))}
    </p>
  );
}

createRoot(document.getElementById("root")).render(<CopilotKit runtimeUrl="http://127.0.0.1:8080/copilotkit"><Chat /></CopilotKit>);
