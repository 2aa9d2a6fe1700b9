// The components of A2UI's basic catalog that show and arrange. `tools` is what surface.jsx gives to each component.

import { useId, useRef, useState } from "preact/hooks";

import { Markdown } from "./markdown.jsx";
import { Button as PageButton } from "./parts.jsx";
import { t } from "./texts.js";

const HEADINGS = { h1: "h3", h2: "h3", h3: "h4", h4: "h5", h5: "h6" };
const ALIGNMENTS = ["start", "center", "end", "stretch", "spaceBetween", "spaceAround", "spaceEvenly"];
const oneOf = (names, name, otherwise) => (names.includes(name) ? name : otherwise);

/** Signs of icons. Those without one are shown by their names. */
const SIGNS = {
  add: "+", arrowBack: "←", arrowForward: "→", call: "☎", phone: "☎", check: "✓", close: "✕", delete: "✕", download: "↓", upload: "↑",
  edit: "✎", error: "⚠", warning: "⚠", favorite: "♥", favoriteOff: "♡", help: "?", info: "ℹ", home: "⌂", mail: "✉", send: "➤", menu: "☰",
  moreVert: "⋮", moreHoriz: "⋯", pause: "⏸", play: "▶", stop: "■", refresh: "↻", search: "⌕", settings: "⚙", star: "★", starOff: "☆",
  skipNext: "⏭", skipPrevious: "⏮", fastForward: "⏩", rewind: "⏪", person: "☺", accountCircle: "☺", payment: "¤", event: "▦", calendarToday: "▦",
};

function Text({ text, variant, tools }) {
  const content = tools.text(text);
  const Heading = HEADINGS[variant];
  if (Heading) return <Heading class={`surface-${variant}`}>{content}</Heading>;
  return variant === "caption" ? <small>{content}</small> : <Markdown text={content} />;
}

/** The page loads nothing from elsewhere: such a picture is a link. */
function Media({ tag: Tag, url, description, variant, tools }) {
  const [address, name] = [tools.text(url), tools.text(description)];
  const isOwn = address.startsWith("data:") || address.startsWith(`${location.origin}/`);
  if (isOwn && Tag === "img") return <img class={`surface-image is-${variant ?? "mediumFeature"}`} src={address} alt={name} />;
  if (isOwn) return <Tag class="attachment" controls src={address} aria-label={name} />;
  return /^https?:/.test(address) ? <a href={address} target="_blank" rel="noopener noreferrer">{name || address}</a> : name;
}

function Icon({ name, tools }) {
  const value = typeof name?.svgPath === "string" ? name : tools.value(name);
  if (value?.svgPath) return <svg class="surface-icon" viewBox="0 0 24 24" aria-hidden="true"><path d={value.svgPath} /></svg>;
  return <span class="surface-icon" role="img" aria-label={String(value)}>{SIGNS[value] ?? <small>{String(value)}</small>}</span>;
}

const Box = ({ kind, justify, align, tools }) => (
  <div class={`surface-${kind} justify-${oneOf(ALIGNMENTS, justify, "start")} align-${oneOf(ALIGNMENTS, align, "stretch")}`}>{tools.children()}</div>
);

function List({ direction, listStyle, tools }) {
  const Tag = listStyle === "ordered" ? "ol" : "ul";
  return (
    <Tag class={`surface-list is-${direction === "horizontal" ? "row" : "column"} is-${listStyle ?? "none"}`}>
      {tools.children().map((child, index) => <li key={index}>{child}</li>)}
    </Tag>
  );
}

function Tabs({ tabs, tools }) {
  const id = useId();
  const [chosen, setChosen] = useState(0);
  const all = Array.isArray(tabs) ? tabs : [];
  const step = { ArrowLeft: -1, ArrowRight: 1 };
  const onKeyDown = ({ key, currentTarget }) => {
    const next = (chosen + (step[key] ?? 0) + all.length) % all.length;
    if (step[key]) setChosen(next), currentTarget.children[next].focus();
  };
  return (
    <div>
      <div class="surface-tabs" role="tablist" onKeyDown={onKeyDown}>
        {all.map(({ title }, index) => (
          <button key={index} type="button" role="tab" id={`${id}-${index}`} aria-selected={index === chosen} tabIndex={index === chosen ? 0 : -1}
            onClick={() => setChosen(index)}>{tools.text(title)}</button>
        ))}
      </div>
      <div role="tabpanel" aria-labelledby={`${id}-${chosen}`}>{tools.child(all[chosen]?.child)}</div>
    </div>
  );
}

/** The trigger is often a button, which sends nothing: the click of what is inside opens the dialog. */
function Modal({ trigger, content, tools }) {
  const dialog = useRef();
  return (
    <>
      <span class="surface-trigger" onClick={() => dialog.current.showModal()}>{tools.child(trigger)}</span>
      <dialog ref={dialog}>
        {tools.child(content)}
        <div class="buttons"><PageButton onClick={() => dialog.current.close()}>{t("close")}</PageButton></div>
      </dialog>
    </>
  );
}

const BUTTONS = { primary: "primary", borderless: "quiet" };

const Button = ({ child, variant, tools }) => (
  <button type="button" class={`button ${BUTTONS[variant] ?? ""}`} disabled={tools.isLocked || tools.problem !== undefined} title={tools.problem} onClick={tools.press}>
    {tools.child(child)}
  </button>
);

export const LAYOUTS = {
  Text, Icon, List, Tabs, Modal, Button,
  Image: (props) => <Media tag="img" {...props} />,
  Video: (props) => <Media tag="video" {...props} />,
  AudioPlayer: (props) => <Media tag="audio" {...props} />,
  Row: (props) => <Box kind="row" {...props} />,
  Column: (props) => <Box kind="column" {...props} />,
  Card: ({ child, tools }) => <div class="surface-card">{tools.child(child)}</div>,
  Divider: ({ axis }) => <hr class={axis === "vertical" ? "is-vertical" : ""} />,
};
