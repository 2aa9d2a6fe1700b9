import { HttpAgent, runHttpRequest, transformHttpEventStream } from "@ag-ui/client";
import {
  ActionBarPrimitive,
  AssistantRuntimeProvider,
  AuiConfig,
  AuiIf,
  BranchPickerPrimitive,
  ComposerPrimitive,
  ExportedMessageRepository,
  MessagePrimitive,
  ThreadPrimitive,
  Tools,
} from "@assistant-ui/react";
import { fromAgUiMessages, useAgUiInterrupts, useAgUiRuntime, useAgUiSubmitInterruptResponses } from "@assistant-ui/react-ag-ui";
import { useRef, useState } from "react";
import { createRoot } from "react-dom/client";

import { Question, wrongField } from "../question";

const SERVER = "http://127.0.0.1:8080";
const FILES = ["report-2025.pdf", "report-2026.pdf", "invoice.pdf"];

// A thread for each tab. It is restored after a reload.
const threadId = (sessionStorage.thread ??= crypto.randomUUID());

class ThreadAgent extends HttpAgent {
  connect(input) {
    this.abortController = new AbortController();
    const request = () => this.fetch(`${SERVER}/threads/${threadId}/connect`, this.requestInit(input));
    return transformHttpEventStream(runHttpRequest(request));
  }
}
const agent = new ThreadAgent({ url: `${SERVER}/send-message`, threadId });

// The server keeps the thread, so the page loads it and appends nothing.
const history = {
  async load() {
    // The library reads no thread while a question waits for an answer.
    agent.pendingInterrupts = [];
    await agent.connectAgent();
    const messages = fromAgUiMessages(agent.messages);
    const { pendingInterrupts: interrupts, state } = agent;
    if (interrupts.length > 0) {
      const status = { type: "requires-action", reason: "interrupt" };
      Object.assign(messages.at(-1), { status, metadata: { custom: { agui: { interrupts } } } });
    }
    return { ...ExportedMessageRepository.fromArray(messages), state };
  },
  async append() {},
};

// A tool of the page: the agent calls it, and continues with what `execute` returns.
const toolkit = {
  search_local_files: {
    type: "frontend",
    description: "Searches the user's files by name",
    parameters: { type: "object", properties: { keyword: { type: "string" } }, required: ["keyword"] },
    execute: async ({ keyword }) => FILES.filter((file) => file.includes(keyword)),
    render: ToolCall,
  },
};

function ToolCall({ toolName, argsText, result }) {
  return <p>[{toolName} {argsText}] {result !== undefined && JSON.stringify(result)}</p>;
}

function Message({ message }) {
  if (message.composer.isEditing) {
    return (
      <ComposerPrimitive.Root>
        <ComposerPrimitive.Input aria-label="Edit message" /> <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
      </ComposerPrimitive.Root>
    );
  }
  return (
    <MessagePrimitive.Root>
      {message.role}: <MessagePrimitive.Parts components={{ tools: { Fallback: ToolCall } }} />
      <ActionBarPrimitive.Root>
        {message.role === "user" && <ActionBarPrimitive.Edit>Edit</ActionBarPrimitive.Edit>}
        {message.role === "assistant" && <ActionBarPrimitive.Reload>Repeat</ActionBarPrimitive.Reload>}
      </ActionBarPrimitive.Root>
      <BranchPickerPrimitive.Root hideWhenSingleBranch>
        <BranchPickerPrimitive.Previous>Previous</BranchPickerPrimitive.Previous>{" "}
        <BranchPickerPrimitive.Number /> / <BranchPickerPrimitive.Count />{" "}
        <BranchPickerPrimitive.Next>Next</BranchPickerPrimitive.Next>
      </BranchPickerPrimitive.Root>
    </MessagePrimitive.Root>
  );
}

// An interrupt ends a run with questions. The next run continues with the answers to all of them.
function Questions({ problem, onRefusal }) {
  const interrupts = useAgUiInterrupts();
  const submit = useAgUiSubmitInterruptResponses();
  const answers = useRef([]);
  const answer = (interruptId, reply) => {
    answers.current.push({ interruptId, ...reply });
    if (answers.current.length === interrupts.length) submit(answers.current.splice(0)).catch(onRefusal);
  };
  return interrupts.map(({ id, message, responseSchema, metadata }) => (
    <Question
      key={id}
      id={id}
      message={message}
      schema={responseSchema}
      url={metadata?.["agui-server.visitUrl"]}
      problem={problem}
      resolve={(payload) => answer(id, { status: "resolved", payload })}
      cancel={() => answer(id, { status: "cancelled" })}
    />
  ));
}

// The library takes no message while a question is open.
function Field() {
  const disabled = useAgUiInterrupts().length > 0;
  const placeholder = disabled ? "Answer the question first" : undefined;
  return <ComposerPrimitive.Input aria-label="Message" disabled={disabled} placeholder={placeholder} />;
}

// After an answer that the server refuses, the page reads the thread again, with the questions that are open.
function Page() {
  const [problem, setProblem] = useState();
  const [reads, setReads] = useState(0);
  // The library has not ended the run yet.
  const onRefusal = () => setTimeout(() => setReads(reads + 1), 100);
  return (
    <>
      {!wrongField(problem) && <p role="alert">{problem}</p>}
      <App key={reads} problem={problem} onRefusal={onRefusal} setProblem={setProblem} />
    </>
  );
}

function App({ problem, onRefusal, setProblem }) {
  const onError = ({ message }) => setProblem(message);
  const runtime = useAgUiRuntime({ agent, adapters: { history }, onError });
  return (
    <AssistantRuntimeProvider runtime={runtime} config={AuiConfig({ tools: Tools({ toolkit }) })}>
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Messages>{({ message }) => <Message message={message} />}</ThreadPrimitive.Messages>
        <Questions problem={problem} onRefusal={onRefusal} />
        {/* The library loses a message that is sent while it loads the thread. */}
        <AuiIf condition={({ thread }) => !thread.isLoading}>
          <ComposerPrimitive.Root onSubmit={() => setProblem()}>
            <Field /> <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>{" "}
            <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
          </ComposerPrimitive.Root>
        </AuiIf>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

createRoot(document.getElementById("root")).render(<Page />);
