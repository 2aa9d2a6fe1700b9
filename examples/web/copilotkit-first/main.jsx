import { CopilotChat, CopilotKit, useFrontendTool, useInterrupt, useRenderTool } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import { createRoot } from "react-dom/client";
import { z } from "zod";

const threadId = (sessionStorage.thread ??= crypto.randomUUID()); // the tab's thread, also after a reload
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
  // A question that ends a run. The next run continues with the answer.
  useInterrupt({
    render: ({ interrupts, resolve, cancel }) => interrupts.map(({ id, message, responseSchema }) => (
      <p key={id}>
        {message} <button onClick={() => cancel(id)}>Decline</button>{" "}
        {responseSchema.properties.approved && <button onClick={() => resolve({ approved: true }, id)}>Approve</button>}
      </p>
    )),
  });
  return <CopilotChat threadId={threadId} />;
}

const root = createRoot(document.getElementById("root"));
root.render(<CopilotKit runtimeUrl="http://127.0.0.1:8080/copilotkit"><Chat /></CopilotKit>);
