// The tools that this page offers to agents, and their answers.

import { useState } from "preact/hooks";

import { Button } from "./parts.jsx";
import { t } from "./texts.js";

/** The tools of the demo agent. */
const EXAMPLES = [
  {
    name: "search_local_files",
    description: "Searches the user's files by name",
    parameters: { type: "object", properties: { keyword: { type: "string" } }, required: ["keyword"] },
    answer: '["report-2025.pdf", "report-2026.pdf"]',
    asks: false,
  },
  {
    name: "confirmAction",
    description: "Asks the user for confirmation",
    parameters: { type: "object", properties: { action: { type: "string" } }, required: ["action"] },
    answer: "confirmed",
    asks: true,
  },
];
const EMPTY = { name: "", description: "", parameters: { type: "object", properties: {} }, answer: "", asks: false };

export function Tools({ session }) {
  const tools = session.tools.list;
  const [edited, setEdited] = useState();
  const save = (tool) => {
    session.setTools(edited === tools.length ? [...tools, tool] : tools.with(edited, tool));
    setEdited(undefined);
  };
  const missing = EXAMPLES.filter(({ name }) => !session.tools.named(name));
  const form = (tool) => (
    <ToolForm tool={tool} isTaken={(name) => tools.some((other, index) => index !== edited && other.name === name)}
      onSave={save} onClose={() => setEdited(undefined)} />
  );
  return (
    <>
      <p class="muted">{t("toolsHint")}</p>
      <ul class="tools">
        {tools.map((tool, index) => (
          <li key={tool.name} class="tool">
            {edited === index ? form(tool) : (
              <>
                <header>
                  <code>{tool.name}</code>
                  <span class="badge">{t(tool.asks ? "asks" : "scripted")}</span>
                </header>
                <p>{tool.description}</p>
                <div class="buttons">
                  <Button kind="quiet" label={`${t("edit")} ${tool.name}`} onClick={() => setEdited(index)}>{t("edit")}</Button>
                  <Button kind="quiet danger" label={`${t("remove")} ${tool.name}`}
                    onClick={() => session.setTools(tools.filter((other) => other !== tool))}>{t("remove")}</Button>
                </div>
              </>
            )}
          </li>
        ))}
        {edited === tools.length && <li class="tool">{form(EMPTY)}</li>}
      </ul>
      {edited === undefined && (
        <div class="buttons">
          <Button onClick={() => setEdited(tools.length)}>{t("addTool")}</Button>
          {missing.length > 0 && <Button onClick={() => session.setTools([...tools, ...missing])}>{t("addExamples")}</Button>}
        </div>
      )}
    </>
  );
}

function ToolForm({ tool, isTaken, onSave, onClose }) {
  const [values, setValues] = useState({ ...tool, parameters: JSON.stringify(tool.parameters, undefined, 2) });
  const [problem, setProblem] = useState();
  const change = (given) => setValues((before) => ({ ...before, ...given }));
  const set = (name) => (event) => change({ [name]: event.currentTarget.value });
  const save = (event) => {
    event.preventDefault();
    const name = values.name.trim();
    if (!name || isTaken(name)) return setProblem(t("nameNeeded"));
    try {
      onSave({ ...values, name, parameters: JSON.parse(values.parameters) });
    } catch {
      setProblem(`${t("parameters")}: ${t("invalidJson")}`);
    }
  };
  return (
    <form class="schema-form" onSubmit={save}>
      <label class="field">{t("name")}<input value={values.name} onInput={set("name")} /></label>
      <label class="field">{t("description")}<input value={values.description} onInput={set("description")} /></label>
      <label class="field">{t("parameters")}<textarea class="code" rows="6" spellcheck={false} value={values.parameters} onInput={set("parameters")} /></label>
      <div class="field" role="radiogroup" aria-label={t("answer")}>
        {[false, true].map((asks) => (
          <label class="choice">
            <input type="radio" name="asks" checked={values.asks === asks} onChange={() => change({ asks })} />
            {t(asks ? "asks" : "scripted")}
          </label>
        ))}
      </div>
      <label class="field">{t("answer")}<textarea class="code" rows="2" spellcheck={false} value={values.answer} onInput={set("answer")} /></label>
      {problem && <p class="problem" role="alert">{problem}</p>}
      <div class="buttons">
        <button type="submit" class="button primary">{t("save")}</button>
        <Button onClick={onClose}>{t("cancel")}</Button>
      </div>
    </form>
  );
}
