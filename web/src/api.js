// Requests to the server that serves this page.

import { readTab, writeTab } from "./storage.js";

/** The server's address, also if a proxy or an application has mounted it below a path. */
export const BASE = location.origin + location.pathname.replace(/\/playground\/?$/, "");

const KEY = "key";
export const readKey = () => readTab(KEY);
export const writeKey = (key) => writeTab(KEY, key || undefined);

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    Object.assign(this, { status, code });
  }
}

/** Like `fetch`, with the key. A response that is not a success becomes an ApiError. */
export async function request(url, init = {}) {
  const key = readKey();
  const headers = new Headers(init.headers);
  if (key && !headers.has("authorization")) headers.set("authorization", `Bearer ${key}`);
  const response = await fetch(url, { ...init, headers });
  if (response.ok) return response;
  const { error, message } = await response.json().catch(() => ({}));
  throw new ApiError(response.status, error?.code ?? String(response.status), error?.message ?? message ?? response.statusText);
}

export async function call(method, path, body) {
  const init = { method };
  if (body !== undefined) {
    init.headers = { "content-type": "application/json" };
    init.body = JSON.stringify(body);
  }
  const response = await request(BASE + path, init);
  return response.status === 204 ? undefined : response.json();
}

export const threadPath = (threadId) => {
  // Two ids are the paths of other routes unless they are escaped.
  const escaped = encodeURIComponent(threadId);
  return `/threads/${["events", "import"].includes(escaped) ? `%${escaped.charCodeAt(0).toString(16)}${escaped.slice(1)}` : escaped}`;
};

/** A command for a shell that sends the same request. The key is a variable. */
export function curlCommand({ url, body, headers = {} }) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const given = new Headers({ "content-type": "application/json", ...headers });
  const key = readKey() && !given.has("authorization") ? ' -H "Authorization: Bearer $KEY"' : "";
  const lines = [...given].map(([name, value]) => ` -H ${quote(`${name}: ${value}`)}`);
  return `curl -N ${quote(url)}${key}${lines.join("")} -d ${quote(body)}`;
}
