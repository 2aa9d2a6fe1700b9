// The tools of the page, and how it draws calls of the agent's tools. Replace them with yours.
import { useDefaultRenderTool, useFrontendTool, useRenderTool } from "@copilotkit/react-core/v2";
import { z } from "zod";

const FILES = ["report-2025.pdf", "report-2026.pdf", "invoice.pdf"];

export function useTools() {
  // Shows the calls of a tool that the agent runs itself.
  useRenderTool({
    name: "get_weather",
    parameters: z.object({ city: z.string() }),
    render: ({ parameters, result }) => <p className="card">Weather in {parameters.city}: {result ?? "…"}</p>,
  });
  // Shows the calls of all other tools. Surfaces and clicks on them are calls too.
  useDefaultRenderTool({
    render: ({ name, status, result }) =>
      /_a2ui/.test(name) ? <></> : <p className="card">{name} <small>{status === "complete" ? result : "…"}</small></p>,
  });
  // A tool of the page: the agent calls it, and continues with what the handler returns.
  useFrontendTool({
    name: "search_local_files",
    description: "Searches the user's files by name",
    parameters: z.object({ keyword: z.string() }),
    handler: async ({ keyword }) => FILES.filter((file) => file.includes(keyword)),
  });
}
