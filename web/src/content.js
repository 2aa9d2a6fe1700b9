// The content of messages: a text, or a list of parts.

const MEDIA = ["image", "audio", "video"];

export const contentParts = (content) =>
  Array.isArray(content) ? content : typeof content === "string" ? [{ type: "text", text: content }] : [];

/** Returns the texts of a message; an activity, whose content is JSON, has none. */
export const textOf = (content) =>
  contentParts(content)
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n");

/** Returns a URL for data in the message; nothing for a URL of elsewhere, which the page does not load. */
export function mediaUrl({ source }) {
  if (source?.type === "data") return `data:${source.mimeType};base64,${source.value}`;
  return undefined;
}

/** Reads a file into a part of a message. */
export async function attachmentPart(file) {
  const url = await new Promise((done, fail) => {
    const reader = Object.assign(new FileReader(), { onload: () => done(reader.result), onerror: () => fail(reader.error) });
    reader.readAsDataURL(file);
  });
  const mimeType = file.type || "application/octet-stream";
  const kind = mimeType.split("/")[0];
  return {
    type: MEDIA.includes(kind) ? kind : "document",
    source: { type: "data", value: url.slice(url.indexOf(",") + 1), mimeType },
    metadata: { filename: file.name },
  };
}
