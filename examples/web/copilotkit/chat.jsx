// The chat of one thread, drawn by CopilotKit. The files beside this one add the rest.
import { CopilotChat, useAgent, useCopilotKit } from "@copilotkit/react-core/v2";
import { useMemo } from "react";

import { useAttachments } from "./files";
import { AssistantMessage, Messages, textOf, UserMessage } from "./messages";
import { useQuestions } from "./questions";
import { useRejoin } from "./rejoin";
import { useThread } from "./thread";
import { useTools } from "./tools";

export function Chat({ threadId, problem, setProblem, onRejoin }) {
  const { agent } = useAgent();
  const { copilotkit } = useCopilotKit();
  const thread = useThread(agent, threadId, setProblem);
  const isAway = useRejoin(agent, onRejoin);
  useTools();
  useQuestions(agent, problem);

  const messageView = useMemo(() => {
    /** Starts a branch at a message of the user, or at the last one before it: with another text, or with another answer. */
    const runFrom = (id, text) => {
      const shown = agent.messages.slice(0, agent.messages.findIndex((message) => message.id === id) + 1);
      const at = shown.findLastIndex(({ role }) => role === "user");
      const last = text === undefined ? shown[at] : edited(shown[at], at === 0, text);
      agent.setMessages([...shown.slice(0, at), last]);
      copilotkit.runAgent({ agent });
    };
    const onEditMessage = ({ message }) => {
      const text = prompt("Edit", textOf(message));
      if (text) runFrom(message.id, text);
    };
    const onRegenerate = ({ id }) => runFrom(id);
    return {
      userMessage: (props) => <UserMessage {...props} onEditMessage={onEditMessage} />,
      assistantMessage: (props) => <AssistantMessage {...props} onRegenerate={onRegenerate} />,
    };
  }, [agent, copilotkit]);

  // The library does not send a message while a question is open.
  const isAsking = agent.pendingInterrupts.length > 0;
  const placeholder = isAsking ? "Answer the question first" : "Write a message…";
  const canRetry = problem && !agent.isRunning && !isAsking && agent.messages.at(-1)?.role === "user";
  return (
    <Messages.Provider value={{ ...thread, isRunning: agent.isRunning }}>
      {isAway && <p className="problem" role="status">The connection is lost. The page comes back by itself…</p>}
      {canRetry && <p className="problem"><button onClick={() => copilotkit.runAgent({ agent })}>Try again</button></p>}
      <CopilotChat
        threadId={threadId}
        attachments={useAttachments(setProblem)}
        messageView={messageView}
        input={{ textArea: { disabled: isAsking, placeholder } }}
      />
    </Messages.Provider>
  );
}

/** The server takes a first message with a new id for a further one. Files of the message stay. */
function edited({ id, content, ...rest }, isFirst, text) {
  const files = Array.isArray(content) ? content.filter(({ type }) => type !== "text") : [];
  return { ...rest, id: isFirst ? id : crypto.randomUUID(), content: files.length > 0 ? [{ type: "text", text }, ...files] : text };
}
