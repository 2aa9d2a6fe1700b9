// Markdown as nodes. HTML in the text stays text, links lead to http, https and mailto only, and images become links, so
// that a text of a model makes the browser fetch nothing.

import { memo } from "preact/compat";

/** A span has at most 1,000 characters: the text after a mark without an end is searched no further. */
const INLINE =
  /(?<code>(?<!`)`{1,20}(?!`))(?<codeText>[^]{0,1000}?[^`])\k<code>(?!`)|!?\[(?<label>(?:[^[\]\\]|\\.){0,1000})\]\((?<href>[^\s()]{0,1000}(?:\([^\s()]{0,1000}\))?[^\s()]{0,1000})(?:\s{1,9}"[^"]{0,1000}")?\)|(?<strong>\*\*|__)(?=\S)(?<strongText>[^]{0,1000}?\S)\k<strong>|(?<strike>~~)(?=\S)(?<strikeText>[^]{0,1000}?\S)~~|(?<![\w*])(?<em>[*_])(?=[^\s*_])(?<emText>[^]{0,1000}?[^\s*_])\k<em>(?![\w*])|(?<url>https?:\/\/[^\s<>()]*[^\s<>().,;:!?'"*_])|\\(?<escaped>[\\`*_{}[\]()#+\-.!~|>])/g;

const isSafe = (href) => /^(https?:|mailto:)/i.test(href);

function inline(text) {
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > end) nodes.push(text.slice(end, match.index));
    end = match.index + match[0].length;
    nodes.push(inlineNode(match));
  }
  if (end < text.length) nodes.push(text.slice(end));
  return nodes;
}

function inlineNode({ 0: whole, groups }) {
  if (groups.code) return <code>{groups.codeText}</code>;
  if (groups.href !== undefined) {
    const label = groups.label ? inline(groups.label) : groups.href;
    return isSafe(groups.href) ? <Link href={groups.href}>{label}</Link> : whole;
  }
  if (groups.strong) return <strong>{inline(groups.strongText)}</strong>;
  if (groups.strike) return <del>{inline(groups.strikeText)}</del>;
  if (groups.em) return <em>{inline(groups.emText)}</em>;
  if (groups.url) return <Link href={groups.url}>{groups.url}</Link>;
  return groups.escaped;
}

const Link = ({ href, children }) => (
  <a href={href} target="_blank" rel="noopener noreferrer">
    {children}
  </a>
);

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const DELIMITER_ROW = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

const isBlank = (line) => line.trim() === "";
const startsBlock = (line) => [FENCE, HEADING, RULE, QUOTE, ITEM].some((pattern) => pattern.test(line));
const cells = (row) => row.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim());

/** Nested quotes and lists beyond this depth are shown as text, so that no text can exhaust the stack. */
const MAX_DEPTH = 12;

function blocks(lines, depth = 0) {
  const nodes = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    const from = at;
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (isBlank(line)) {
      at += 1;
    } else if (fence) {
      at += 1;
      while (at < lines.length && !lines[at].trim().startsWith(fence[1])) at += 1;
      nodes.push(<pre><code>{lines.slice(from + 1, at).join("\n")}</code></pre>);
      at += 1;
    } else if (heading) {
      // The page's own headings come first.
      const Tag = `h${Math.min(heading[1].length + 2, 6)}`;
      nodes.push(<Tag>{inline(heading[2])}</Tag>);
      at += 1;
    } else if (RULE.test(line)) {
      nodes.push(<hr />);
      at += 1;
    } else if (QUOTE.test(line) && depth < MAX_DEPTH) {
      while (at < lines.length && QUOTE.test(lines[at])) at += 1;
      const quoted = lines.slice(from, at).map((text) => text.replace(QUOTE, ""));
      nodes.push(<blockquote>{blocks(quoted, depth + 1)}</blockquote>);
    } else if (ITEM.test(line) && depth < MAX_DEPTH) {
      at = list(lines, at, depth, nodes);
    } else if (line.includes("|") && DELIMITER_ROW.test(lines[at + 1] ?? "") && lines[at + 1].includes("-")) {
      at += 2;
      while (at < lines.length && lines[at].includes("|")) at += 1;
      nodes.push(<Table head={cells(line)} rows={lines.slice(from + 2, at).map(cells)} />);
    } else {
      at += 1;
      while (at < lines.length && !isBlank(lines[at]) && !startsBlock(lines[at])) at += 1;
      nodes.push(<p>{inline(lines.slice(from, at).join("\n"))}</p>);
    }
  }
  return nodes;
}

/** Adds the list that begins at a line. Returns the line after it. */
function list(lines, from, depth, nodes) {
  const [, indent, marker] = ITEM.exec(lines[from]);
  const isOrdered = /\d/.test(marker);
  const items = [];
  let at = from;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    const belongs = items.length > 0 && (isBlank(lines[at]) || /^ +/.exec(lines[at])?.[0].length > indent.length);
    if (item && item[1].length <= indent.length && /\d/.test(item[2]) === isOrdered) {
      items.push([item[3]]);
    } else if (belongs && !(isBlank(lines[at]) && !/^ /.test(lines[at + 1] ?? "") && !ITEM.test(lines[at + 1] ?? ""))) {
      items.at(-1).push(lines[at].slice(Math.min(indent.length + marker.length + 1, /^ */.exec(lines[at])[0].length)));
    } else {
      break;
    }
    at += 1;
  }
  const content = items.map((item) => {
    const [node, ...more] = blocks(item, depth + 1);
    return <li>{node?.type === "p" ? node.props.children : node}{more}</li>;
  });
  nodes.push(isOrdered ? <ol start={Number.parseInt(marker, 10)}>{content}</ol> : <ul>{content}</ul>);
  return at;
}

const Table = ({ head, rows }) => (
  <div class="table">
    <table>
      <thead><tr>{head.map((cell) => <th>{inline(cell)}</th>)}</tr></thead>
      <tbody>{rows.map((row) => <tr>{row.map((cell) => <td>{inline(cell)}</td>)}</tr>)}</tbody>
    </table>
  </div>
);

export const Markdown = memo(({ text }) => <div class="markdown">{blocks(text.split(/\r?\n/))}</div>);
