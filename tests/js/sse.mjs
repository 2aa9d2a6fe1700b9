// One run over plain HTTP, parsed strictly: errors that a tolerant client ignores fail here.

import assert from "node:assert/strict";

export const SSE = "text/event-stream";

/**
 * Posts one run.
 * @param {{ accept?: string, path?: string, headers?: object }} options `headers`: further headers
 * @returns the status, the headers, and the body as bytes
 */
export async function post(url, input, { accept = SSE, path = "/send-message", headers } = {}) {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: accept, ...headers },
    body: JSON.stringify(input),
  });
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { status: response.status, headers: response.headers, bytes };
}

/** Posts one run and reads its event stream. A refused request has no `events`; `text` is the response body. */
export async function run(url, input, options) {
  const { status, headers, bytes } = await post(url, input, options);
  // fatal: otherwise invalid UTF-8 would become replacement characters.
  const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  const isStream = status === 200 && headers.get("content-type") === SSE;
  return { status, headers, text, events: isStream ? parse(text) : undefined };
}

/**
 * Parses a stream in which every frame is one `data: ` line or one `: comment`, and an empty line. A `data: ` line may
 * follow an `id: ` line, the number of the event in the log of a detached run.
 */
export function parse(text) {
  assert.ok(!text.includes("\r"), "a stream has LF line endings only");
  assert.ok(!text.startsWith("\uFEFF"), "a stream has no byte order mark");
  if (text === "") return [];
  assert.ok(text.endsWith("\n\n"), `a stream ends with a whole frame, not with ${JSON.stringify(text.slice(-80))}`);
  return text
    .slice(0, -2)
    .split("\n\n")
    .filter((frame) => !/^:[^\n]*$/.test(frame))
    .map((frame) => {
      const [, data] = /^(?:id: [1-9]\d*\n)?data: ([^\n]+)$/.exec(frame) ?? [];
      assert.ok(data, `a frame is one data line: ${JSON.stringify(frame)}`);
      return JSON.parse(data);
    });
}
