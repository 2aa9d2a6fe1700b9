// The members and headers that the next runs send beside the conversation.

import { useState } from "preact/hooks";

import { Button, JsonField } from "./parts.jsx";
import { isObject } from "./recording.js";
import { t } from "./texts.js";

const isText = (value) => typeof value === "string";

function demand(isRight, text) {
  if (!isRight) throw new TypeError(text);
}

/** By member of a request: its empty value, and a check that throws if a value cannot be sent. */
const MEMBERS = {
  forwardedProps: [{}, (value) => demand(isObject(value), t("objectNeeded"))],
  context: [[], (value) =>
    demand(Array.isArray(value) && value.every((entry) => isText(entry?.description) && isText(entry.value)), t("contextNeeded"))],
  headers: [{}, (value) => {
    demand(isObject(value) && Object.values(value).every(isText), t("headersNeeded"));
    new Headers(value); // throws for a name or a value that no header has
  }],
};

export function RequestTab({ session }) {
  const { extras } = session;
  const [version, setVersion] = useState(0);
  const reset = () => (session.setExtras(undefined), setVersion(version + 1));
  return (
    <div class="schema-form" key={version}>
      <p class="muted">{t("requestHint")}</p>
      {Object.entries(MEMBERS).map(([member, [empty, check]]) => (
        <JsonField key={member} label={member} value={extras?.[member] ?? empty} check={check}
          onValue={(value) => value !== undefined && session.setExtras({ ...session.extras, [member]: value })} />
      ))}
      <div class="buttons"><Button disabled={!extras} onClick={reset}>{t("reset")}</Button></div>
    </div>
  );
}
