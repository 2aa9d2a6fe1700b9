// The fields of A2UI's basic catalog. A person's input goes into the data of the surface, which a button sends.

import { useId, useState } from "preact/hooks";

import { t } from "./texts.js";

const TYPES = { number: "number", obscured: "password", shortText: "text" };

/** A label, a field, and the first check that fails once the field was left. */
function Field({ label, tools, children }) {
  const id = useId();
  const [wasLeft, setLeft] = useState(false);
  const problem = wasLeft ? tools.problem : undefined;
  const common = { id, "aria-invalid": problem ? true : undefined, "aria-describedby": problem ? `${id}-more` : undefined };
  return (
    <div class="field" onFocusOut={() => setLeft(true)}>
      <label for={id}>{tools.text(label)}</label>
      {children({ ...common, disabled: tools.isLocked })}
      {problem && <small id={`${id}-more`} class="problem" role="alert">{problem}</small>}
    </div>
  );
}

function TextField({ label, value, variant, validationRegexp, tools }) {
  const written = ({ currentTarget: { value: text, type } }) => tools.change(value, type === "number" && text !== "" ? Number(text) : text);
  const common = { value: tools.text(value), onInput: written };
  return (
    <Field label={label} tools={tools}>
      {(given) =>
        variant === "longText"
          ? <textarea rows="3" {...given} {...common} />
          : <input type={TYPES[variant] ?? "text"} step="any" pattern={validationRegexp} {...given} {...common} />}
    </Field>
  );
}

function CheckBox({ label, value, tools }) {
  const id = useId();
  return (
    <div class="field is-check">
      <input id={id} type="checkbox" checked={Boolean(tools.value(value))} disabled={tools.isLocked}
        onInput={({ currentTarget }) => tools.change(value, currentTarget.checked)} />
      <label for={id}>{tools.text(label)}</label>
    </div>
  );
}

function ChoicePicker({ label, variant, options, value, displayStyle, filterable, tools }) {
  const name = useId();
  const [filter, setFilter] = useState("");
  const chosen = [tools.value(value) ?? []].flat();
  const isMultiple = variant === "multipleSelection";
  const all = (Array.isArray(options) ? options : []).map((option) => ({ value: option?.value, label: tools.text(option?.label) }));
  const choose = (one, isChosen) =>
    tools.change(value, isMultiple ? [...chosen.filter((other) => other !== one), ...(isChosen ? [one] : [])] : [one]);
  return (
    <fieldset class={`surface-choices is-${displayStyle === "chips" ? "chips" : "list"}`} disabled={tools.isLocked}>
      {label && <legend>{tools.text(label)}</legend>}
      {filterable && <input type="search" aria-label={t("filterChoices")} placeholder={t("filterChoices")} value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />}
      {all.filter((option) => option.label.toLowerCase().includes(filter.toLowerCase())).map((option) => (
        <label key={option.value}>
          <input type={isMultiple ? "checkbox" : "radio"} name={name} checked={chosen.includes(option.value)}
            onInput={({ currentTarget }) => choose(option.value, currentTarget.checked)} />
          {option.label}
        </label>
      ))}
    </fieldset>
  );
}

function Slider({ label, min = 0, max, step, value, tools }) {
  const number = Number(tools.value(value) ?? min);
  return (
    <Field label={label} tools={tools}>
      {(given) => (
        <span class="surface-slider">
          <input type="range" {...given} min={min} max={max} step={step ?? "any"} value={number}
            onInput={({ currentTarget }) => tools.change(value, Number(currentTarget.value))} />
          <output for={given.id}>{number.toLocaleString(undefined, { maximumFractionDigits: 2 })}</output>
        </span>
      )}
    </Field>
  );
}

function DateTimeInput({ label, value, enableDate, enableTime, min, max, tools }) {
  const isTime = enableTime && !enableDate;
  const type = enableDate && enableTime ? "datetime-local" : isTime ? "time" : "date";
  // The field takes no zone and no seconds.
  const cut = (text) => (isTime ? text.replace(/^.*T/, "") : text).replace(/(Z|[+-]\d\d:\d\d)$/, "").slice(0, { date: 10, time: 5 }[type] ?? 16);
  return (
    <Field label={label} tools={tools}>
      {(given) => (
        <input type={type} {...given} min={cut(tools.text(min))} max={cut(tools.text(max))} value={cut(tools.text(value))}
          onInput={({ currentTarget }) => tools.change(value, currentTarget.value)} />
      )}
    </Field>
  );
}

export const INPUTS = { TextField, CheckBox, ChoicePicker, MultipleChoice: ChoicePicker, Slider, DateTimeInput };
