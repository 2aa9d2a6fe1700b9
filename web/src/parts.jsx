// Small components that several parts of the page use.

import { useId, useState } from "preact/hooks";

import { t } from "./texts.js";

export const Button = ({ kind = "", label, children, ...rest }) => (
  <button type="button" class={`button ${kind}`} aria-label={label} title={label} {...rest}>
    {children}
  </button>
);

/** Copies a text, and says so for a moment. */
export function CopyButton({ text, label, children = label }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text());
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <Button kind="quiet" label={label} onClick={copy}>
      <span aria-live="polite">{isCopied ? t("copied") : children}</span>
    </Button>
  );
}

/** Members of an object or array that are shown at once. */
const SHOWN_MEMBERS = 200;

const isContainer = (value) => typeof value === "object" && value !== null;

/** Any JSON as a tree that can be folded. `changed` has the JSON Pointers that are marked. */
export function Tree({ value, name, path = "", changed, depth = 0 }) {
  const [isOpen, setOpen] = useState(depth < 3);
  const [limit, setLimit] = useState(SHOWN_MEMBERS);
  const isChanged = changed?.has(path);
  const label = name !== undefined && <span class="tree-name">{name}: </span>;
  if (!isContainer(value)) {
    return (
      <div class={`tree-leaf${isChanged ? " is-changed" : ""}`}>
        {label}
        <span class={`tree-${value === null ? "null" : typeof value}`}>{JSON.stringify(value)}</span>
      </div>
    );
  }
  const entries = Object.entries(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  if (entries.length === 0) return <div class={`tree-leaf${isChanged ? " is-changed" : ""}`}>{label}{size}</div>;
  return (
    <details class="tree" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class={isChanged ? "is-changed" : ""}>{label}<span class="tree-size">{size}</span></summary>
      {isOpen && entries.slice(0, limit).map(([key, member]) => {
        const below = `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
        return <Tree key={key} name={key} value={member} path={below} changed={changed} depth={depth + 1} />;
      })}
      {isOpen && entries.length > limit && (
        <Button kind="quiet" onClick={() => setLimit(limit + SHOWN_MEMBERS)}>{t("moreMembers", entries.length - limit)}</Button>
      )}
    </details>
  );
}

/** JSON in a readable form; a text that is no JSON stays as it is. */
export function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}

/**
 * A field for JSON that says why a text is refused.
 * @param {{ label: string, value: any, rows?: number, check?: (value: any) => void, onValue: (value: any) => void }} props `check`
 *   throws if the value is wrong; `onValue` gets each right value, and undefined for a wrong text
 */
export function JsonField({ label, value, rows = 6, check = () => {}, onValue }) {
  const id = useId();
  const [text, setText] = useState(() => (value === undefined ? "" : JSON.stringify(value, undefined, 2)));
  const [problem, setProblem] = useState();
  const write = ({ currentTarget: { value: written } }) => {
    setText(written);
    let read;
    try {
      read = JSON.parse(written);
      check(read);
      setProblem(undefined);
    } catch (error) {
      read = undefined;
      setProblem(error instanceof SyntaxError ? `${t("invalidJson")}: ${error.message}` : error.message);
    }
    onValue(read);
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea id={id} class="code" rows={rows} spellcheck={false} value={text} onInput={write}
        aria-invalid={Boolean(problem)} aria-describedby={`${id}-problem`} />
      <small id={`${id}-problem`} class="problem" role="alert">{problem}</small>
    </div>
  );
}

/** Enter sends a text. With Shift it begins a line, and while a word is composed it ends the word. */
export const isSend = ({ key, shiftKey, isComposing }) => key === "Enter" && !shiftKey && !isComposing;

/** Cuts a text that is too long to be shown in a line. */
export const cut = (text, length) => (text.length > length ? `${text.slice(0, length)}…` : text);

export const seconds = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`);
