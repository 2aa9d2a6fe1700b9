// A form for a JSON Schema. Types without a field of their own are entered as JSON.

import { useEffect, useId, useState } from "preact/hooks";

import { Button } from "./parts.jsx";
import { t } from "./texts.js";

const typeOf = (schema) => (Array.isArray(schema?.type) ? schema.type.find((type) => type !== "null") : schema?.type);
/** The values to choose from. An agent can write anything as its schema. */
const choices = (schema) => (Array.isArray(schema?.enum) ? schema.enum : undefined);
const isTextList = (schema) => typeOf(schema) === "array" && typeOf(schema.items) === "string" && !choices(schema.items);
/** Formats that the browser checks, and their types of fields. */
const CHECKED = { email: "email", uri: "url" };

/** Returns the first content of a field: the schema's default, else the empty value of its type. */
function initial(schema, value = schema?.default) {
  if (choices(schema)) return value === undefined ? "" : JSON.stringify(value);
  if (isTextList(schema)) return [value ?? []].flat().join("\n");
  switch (typeOf(schema)) {
    case "boolean":
      return value ?? false;
    case "string":
      return String(value ?? "");
    case "number":
    case "integer":
      return value === undefined ? "" : String(value);
    default:
      return value === undefined ? "" : JSON.stringify(value, undefined, 2);
  }
}

/** Returns the value of a field; undefined if it is left empty. Throws if it is not JSON. */
function read(schema, content) {
  if (choices(schema)) return content === "" ? undefined : JSON.parse(content);
  if (isTextList(schema)) return content.split("\n").filter((line) => line.trim());
  switch (typeOf(schema)) {
    case "boolean":
    case "string":
      return content;
    case "number":
    case "integer":
      return content === "" ? undefined : Number(content);
    default:
      return content.trim() === "" ? undefined : JSON.parse(content);
  }
}

/**
 * @param {{ schema: object, values?: object, refusal?: object, hidden?: string[], labels?: object, actions: (read: () => object | undefined) => any, onSubmit }} props
 *   `refusal`: a field's name, and why its value was refused (`text`); `hidden`: members without a field; `labels`: in place of titles; `actions`: the buttons, given a function that reads the form
 */
export function SchemaForm({ schema: given, values = {}, refusal, hidden = [], labels = {}, actions, onSubmit }) {
  const isTable = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const schema = { ...given, required: Array.isArray(given?.required) ? given.required : [] };
  const fields = Object.entries(isTable(schema.properties) ? schema.properties : {}).filter(([, field]) => isTable(field)).filter(([name]) => !hidden.includes(name));
  const isObject = fields.length > 0 || hidden.length > 0 || typeOf(schema) === "object";
  const shown = isObject ? fields : [["", schema]];
  const [contents, setContents] = useState(() =>
    Object.fromEntries(shown.map(([name, field]) => [name, initial(field, values[name])])),
  );
  const [problem, setProblem] = useState();
  // A form that was sent a moment ago may still be the same one.
  useEffect(() => setProblem(refusal), [refusal]);

  /** Returns the values, or undefined after showing which is wrong. */
  const readForm = () => {
    const result = {};
    for (const [name, field] of shown) {
      try {
        const value = read(field, contents[name]);
        const isLeft = value === undefined || (value === "" && !schema.required.includes(name));
        if (!isLeft) result[name] = value;
      } catch {
        setProblem({ name, text: t("invalidJson") });
        return undefined;
      }
    }
    setProblem(undefined);
    return isObject ? result : result[""];
  };
  const submit = (event) => {
    event.preventDefault();
    const result = readForm();
    if (result !== undefined) onSubmit?.(result);
  };
  return (
    <form class="schema-form" onSubmit={submit}>
      {shown.map(([name, field]) => (
        <Field
          key={name}
          name={name}
          schema={field}
          label={labels[name]}
          content={contents[name]}
          isRequired={schema.required.includes(name)}
          problem={problem?.name === name ? problem.text : undefined}
          onChange={(content) => setContents((before) => ({ ...before, [name]: content }))}
        />
      ))}
      <div class="buttons">{actions(readForm)}</div>
    </form>
  );
}

function Field({ name, schema, label = schema.title ?? (name || t("answer")), content, isRequired, problem, onChange }) {
  const id = useId();
  const description = schema.description ?? (isTextList(schema) ? t("onePerLine") : undefined);
  const common = {
    id,
    required: isRequired,
    "aria-describedby": description || problem ? `${id}-more` : undefined,
    "aria-invalid": problem ? true : undefined,
    onInput: (event) => onChange(event.currentTarget.value),
  };
  const type = typeOf(schema);
  const more = (description || problem) && (
    <small id={`${id}-more`} class={problem ? "problem" : ""} role={problem && "alert"}>{problem ?? description}</small>
  );
  if (type === "boolean") {
    return (
      <div class="field is-check">
        <input id={id} type="checkbox" checked={content} onInput={(event) => onChange(event.currentTarget.checked)} />
        <label for={id}>{label}</label>
        {more}
      </div>
    );
  }
  return (
    <div class="field">
      <label for={id}>{label}{isRequired && <span aria-hidden="true"> *</span>}</label>
      {control(schema, type, content, common)}
      {more}
    </div>
  );
}

function control(schema, type, content, common) {
  if (choices(schema)) {
    return (
      <select {...common} value={content}>
        <option value="" />
        {choices(schema).map((value) => <option value={JSON.stringify(value)}>{String(value)}</option>)}
      </select>
    );
  }
  if (type === "number" || type === "integer") {
    const step = type === "integer" ? 1 : "any";
    return <input {...common} type="number" step={step} min={schema.minimum} max={schema.maximum} value={content} />;
  }
  if (type === "string" && CHECKED[schema.format]) return <input {...common} type={CHECKED[schema.format]} value={content} />;
  if (type === "string") return <textarea {...common} rows={content.includes("\n") ? 4 : 1} value={content} />;
  return <textarea {...common} required={false} class="code" rows={4} spellcheck={false} value={content} />;
}

/** The buttons of a form that is sent or left. */
export const SubmitAndCancel = ({ submit, onCancel }) => (
  <>
    <button type="submit" class="button primary">{submit}</button>
    {onCancel && <Button onClick={onCancel}>{t("abandon")}</Button>}
  </>
);
