// The content of messages: a text, or a list of parts.

import { BASE } from "./api.js";

const MEDIA = ["image", "audio", "video"];

/** Returns the type of the part for a media type. */
function kindOf(mimeType) {
  const kind = mimeType.split("/")[0];
  return MEDIA.includes(kind) ? kind : "document";
}

/** The types that a file picker accepts for each kind of media that an agent declares to read. Texts count as other files. */
const ACCEPTED = { image: "image/*", audio: "audio/*", video: "video/*", pdf: "application/pdf", file: "text/*,application/json" };

/** Returns what a file picker accepts; nothing if the agent does not say what it reads. */
export function acceptedTypes(capabilities) {
  const input = capabilities?.multimodal?.input ?? {};
  return Object.entries(ACCEPTED).filter(([kind]) => input[kind]).map(([, types]) => types).join(",") || undefined;
}

export const contentParts = (content) =>
  Array.isArray(content) ? content : typeof content === "string" ? [{ type: "text", text: content }] : [];

/** Returns the texts of a message; an activity, whose content is JSON, has none. */
export const textOf = (content) =>
  contentParts(content)
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n");

/** Returns the parts that are files. */
export const filesOf = (content) => contentParts(content).filter((part) => part.type !== "text");

/** The activity with which an agent hands over a file. */
const FILE = "agui-server.file";

/** Returns the file of an activity as a part of a message; nothing for other messages. A `problem` is in place of its URL. */
export function filePart({ role, activityType, content }) {
  if (role !== "activity" || activityType !== FILE) return undefined;
  const { url, mimeType = "", name, bytes, problem } = content;
  const source = typeof url === "string" ? { type: "url", value: url, mimeType } : undefined;
  return { type: kindOf(mimeType), source, metadata: { filename: name ?? mimeType, bytes, problem } };
}

export const fileName = ({ type, source, metadata }) => metadata?.filename ?? source?.mimeType ?? type;

/** Returns the bytes of a file, if they are known. */
export function sizeOf({ source, metadata }) {
  if (source?.type === "data") return Math.floor((source.value.replace(/=+$/, "").length * 3) / 4);
  return typeof metadata?.bytes === "number" ? metadata.bytes : undefined;
}

/** The path of a file of this server, with its signature. The server may have another name than the page was opened with. */
const OWN_FILE = /^https?:.*(\/files\/file_[0-9a-f]{32}\?.*)$/;

/** Returns a URL for data in the message, or for a file of this server; nothing for a URL of elsewhere, which the page does not load. */
export function fileUrl({ source }) {
  if (source?.type === "data") return `data:${source.mimeType};base64,${source.value}`;
  if (source?.type !== "url") return undefined;
  if (source.value.startsWith("data:")) return source.value;
  const path = OWN_FILE.exec(source.value)?.[1];
  return path && BASE + path;
}

/** Reads a file into a part of a message. */
export async function attachmentPart(file) {
  const url = await new Promise((done, fail) => {
    const reader = Object.assign(new FileReader(), { onload: () => done(reader.result), onerror: () => fail(reader.error) });
    reader.readAsDataURL(file);
  });
  const mimeType = file.type || "application/octet-stream";
  return {
    type: kindOf(mimeType),
    source: { type: "data", value: url.slice(url.indexOf(",") + 1), mimeType },
    metadata: { filename: file.name },
  };
}
