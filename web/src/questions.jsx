// Questions of the agent: interrupts, with a form for their schema, and calls of the page's tools.

import { useState } from "preact/hooks";

import { Button, Tree, pretty } from "./parts.jsx";
import { SchemaForm, SubmitAndCancel } from "./schema-form.jsx";
import { t } from "./texts.js";

/** The member of the metadata with the URL of a page that the person has to open first. */
const VISIT_URL = "agui-server.visitUrl";

/** The member of the metadata with the name of the MCP server that asks. */
const MCP_SERVER = "agui-server.mcpServer";

/** The member of an approval with the arguments that the user has changed. */
const EDITED = "editedArgs";

export function Question({ session, interrupt }) {
  const { id, message, reason, responseSchema: schema, toolCallId } = interrupt;
  const heading = `question-${id}`;
  const isApproval = schema?.properties?.approved?.type === "boolean";
  const url = visitUrl(interrupt.metadata);
  const Form = url ? Visit : isApproval ? Approval : Answer;
  return (
    <section class="question" aria-labelledby={heading}>
      <h3 id={heading}>{message ?? t("question")}</h3>
      {!message && <p class="muted">{reason}</p>}
      {url && interrupt.metadata[MCP_SERVER] && <p>{t("askedBy", interrupt.metadata[MCP_SERVER])}</p>}
      {interrupt.metadata && !url && <Tree value={interrupt.metadata} />}
      <Form
        schema={schema}
        call={findCall(session, toolCallId)}
        metadata={interrupt.metadata}
        refused={session.refused?.get(id)}
        onAnswer={(payload) => session.answer(id, payload)}
        onAbandon={() => session.answer(id, undefined)}
      />
    </section>
  );
}

function visitUrl(metadata) {
  const url = metadata?.[VISIT_URL];
  // Nothing else, such as a script, may become a link.
  return /^https?:\/\//.test(url) ? url : undefined;
}

/** The person sees the whole address before they go there. */
const Visit = ({ metadata, onAnswer, onAbandon }) => (
  <>
    <code class="address">{visitUrl(metadata)}</code>
    <div class="buttons">
      <a class="button primary" href={visitUrl(metadata)} target="_blank" rel="noopener noreferrer">{t("openPage")}</a>
      <Button onClick={() => onAnswer({ done: true })}>{t("pageDone")}</Button>
      <Button kind="quiet" onClick={onAbandon}>{t("abandon")}</Button>
    </div>
  </>
);

const findCall = (session, id) =>
  session.agent.messages.flatMap(({ toolCalls }) => toolCalls ?? []).find((call) => call.id === id);

function Approval({ schema, call, metadata, onAnswer, onAbandon }) {
  // The arguments that will run: the text that the model wrote may be read in another way.
  const original = metadata?.arguments ?? (call && safeParse(call.function.arguments));
  // The object to review is in the metadata, under the prefix of its author and the name of the member with the reviewed form.
  const reviewed = Object.entries(metadata ?? {}).map(([key, value]) => [key.slice(key.lastIndexOf(".") + 1), value]);
  const values = { ...Object.fromEntries(reviewed), [EDITED]: original };
  const approve = ({ [EDITED]: edited, ...others }) => {
    const isEdited = edited !== undefined && JSON.stringify(edited) !== JSON.stringify(original);
    onAnswer({ ...others, approved: true, ...(isEdited ? { [EDITED]: edited } : {}) });
  };
  const reject = (form) => form && onAnswer({ approved: false, ...(form.reason ? { reason: form.reason } : {}) });
  return (
    <SchemaForm
      schema={withReasonLast(schema)}
      values={values}
      hidden={["approved"]}
      labels={{ [EDITED]: t("arguments") }}
      onSubmit={approve}
      actions={(read) => (
        <>
          <button type="submit" class="button primary">{t("approve")}</button>
          <Button kind="danger" onClick={() => reject(read())}>{t("reject")}</Button>
          <Button kind="quiet" onClick={onAbandon}>{t("abandon")}</Button>
        </>
      )}
    />
  );
}

function withReasonLast(schema) {
  const { reason, ...others } = schema.properties;
  return { ...schema, properties: reason ? { ...others, reason } : others };
}

/** `refused`: the answer that the server has refused, and its reason. */
const Answer = ({ schema, refused, onAnswer, onAbandon }) => (
  <SchemaForm
    schema={schema}
    values={refused?.payload}
    refusal={refused?.refusal}
    onSubmit={onAnswer}
    actions={() => <SubmitAndCancel submit={t("answer")} onCancel={onAbandon} />}
  />
);

function safeParse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function PageToolQuestion({ session, call }) {
  const tool = session.tools.named(call.function.name);
  const [result, setResult] = useState(tool.answer);
  const heading = `call-${call.id}`;
  const send = (event) => {
    event.preventDefault();
    session.answerCall(call, result);
  };
  return (
    <section class="question" aria-labelledby={heading}>
      <h3 id={heading}>{t("toolAsks", call.function.name)}</h3>
      <pre>{pretty(call.function.arguments)}</pre>
      <form class="schema-form" onSubmit={send}>
        <div class="field">
          <label for={`${heading}-result`}>{t("result")}</label>
          <textarea id={`${heading}-result`} class="code" rows="3" value={result} onInput={(event) => setResult(event.currentTarget.value)} />
        </div>
        <div class="buttons"><button type="submit" class="button primary">{t("sendResult")}</button></div>
      </form>
    </section>
  );
}
