// Messages as CopilotKit draws them, with the branches that begin there and the tokens that they took.
import { CopilotChatAssistantMessage, CopilotChatUserMessage } from "@copilotkit/react-core/v2";
import { createContext, useContext } from "react";

/** The value of useThread, and `isRunning`. */
export const Messages = createContext();

export const UserMessage = (props) => (
  <>
    <CopilotChatUserMessage {...props} />
    <p className="below is-user"><Branches id={props.message.id} /></p>
  </>
);

export const AssistantMessage = (props) => (
  <>
    <CopilotChatAssistantMessage {...props} />
    <p className="below"><Branches id={props.message.id} /> <Usage id={props.message.id} /></p>
  </>
);

/** Arrows between the messages in one place: edits of a question, answers to it. */
function Branches({ id }) {
  const { alternatives, isRunning, switchTo } = useContext(Messages);
  const all = alternatives[id];
  if (!all || isRunning) return null;
  const at = all.indexOf(id);
  // The edits of the first message have one id, which stands for the newest one that is not shown.
  if (all.length === 1) return <button className="icon" onClick={() => switchTo(id)}>Other version</button>;
  const arrow = (name, sign, to) => (
    <button className="icon" aria-label={name} disabled={!all[to]} onClick={() => switchTo(all[to])}>{sign}</button>
  );
  return <>{arrow("Previous version", "‹", at - 1)} {at + 1} of {all.length} {arrow("Next version", "›", at + 1)}</>;
}

/** The tokens of the run that ended with this message, and their cost if the server has prices. */
function Usage({ id }) {
  const { runs, runOf } = useContext(Messages);
  const { usage = [], cost } = runs.find(({ runId }) => runId === runOf[id]) ?? {};
  if (usage.length === 0) return null;
  const sum = (member) => usage.reduce((total, counts) => total + (counts[member] ?? 0), 0).toLocaleString();
  return <small>{sum("inputTokens")} tokens in, {sum("outputTokens")} out{cost > 0 && `, cost ${cost.toPrecision(2)}`}</small>;
}

export const textOf = ({ content }) =>
  Array.isArray(content) ? content.map(({ text }) => text ?? "").join("") : content;
