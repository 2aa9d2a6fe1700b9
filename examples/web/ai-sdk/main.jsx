import { useChat } from "@ai-sdk/react";
import {
  DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses as isApproved,
  lastAssistantMessageIsCompleteWithToolCalls as isCalled,
} from "ai";
import { createRoot } from "react-dom/client";

const FILES = ["report-2025.pdf", "report-2026.pdf", "invoice.pdf"];
const inputSchema = { type: "object", properties: { keyword: { type: "string" } }, required: ["keyword"] };
const tools = { search_local_files: { description: "Searches the user's files by name", inputSchema } };

// A chat for each tab. It is restored after a reload, with a run that is still running.
const id = (sessionStorage.thread ??= crypto.randomUUID());
const api = "http://127.0.0.1:8080/ai-sdk/default";
const transport = new DefaultChatTransport({ api, body: { tools } });

function Page({ messages }) {
  const chat = useChat({
    id, messages, transport, resume: true,
    sendAutomaticallyWhen: (all) => isApproved(all) || isCalled(all),
    // A tool of the page: the agent calls it, and continues with its output.
    onToolCall: ({ toolCall: { toolName: tool, toolCallId, input } }) => {
      if (tool in tools) chat.addToolOutput({ tool, toolCallId, output: FILES.filter((file) => file.includes(input.keyword)) });
    },
  });
  const isBusy = chat.status === "submitted" || chat.status === "streaming";
  // `chat.stop()` alone would leave the run running.
  const stop = () => (chat.stop(), fetch(`${api}/${id}/stop`, { method: "POST" }));
  const edit = ({ id: messageId }, text = prompt("Edit")) => text && chat.sendMessage({ text, messageId });
  const send = (event) => (event.preventDefault(), chat.sendMessage({ text: event.target.text.value }), event.target.reset());
  return (
    <>
      {chat.messages.map((message) => (
        <p key={message.id}>
          {message.role}: {message.parts.map((part, at) => <Part key={at} part={part} chat={chat} />)}{" "}
          {message.role === "user" && <button disabled={isBusy} onClick={() => edit(message)}>Edit</button>}
        </p>
      ))}
      <p role="alert">{chat.error?.message}</p>
      <form onSubmit={send}>
        <input name="text" aria-label="Message" /> <button disabled={isBusy}>Send</button>{" "}
        <button type="button" disabled={isBusy} onClick={() => chat.regenerate()}>Repeat</button>{" "}
        <button type="button" onClick={stop}>Stop</button>
      </form>
    </>
  );
}

function Part({ part, chat }) {
  if (part.type === "text" || part.type === "reasoning") return `${part.text} `;
  if (!part.toolCallId) return null;
  const answer = (approved) => chat.addToolApprovalResponse({ id: part.approval.id, approved });
  return (
    <span>
      [{part.type} {JSON.stringify(part.input)}] {JSON.stringify(part.output)} {part.errorText}
      {part.state === "approval-requested" && (
        <span>
          {part.approval.requestReason} <button onClick={() => answer(true)}>Approve</button> <button onClick={() => answer(false)}>Decline</button>
        </span>
      )}
    </span>
  );
}

const stored = await fetch(`${api}/${id}`).then((response) => response.json());
createRoot(document.getElementById("root")).render(<Page messages={stored} />);
