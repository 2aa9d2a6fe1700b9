// The server of the page, and its routes that CopilotKit does not call.

export const SERVER = "http://127.0.0.1:8080";

/** Headers of each request, such as `{ Authorization: "Bearer …" }`. */
export const headers = {};

/** Calls a route of the server, and returns its answer. Throws an error with the server's reason if the call is refused. */
export async function call(method, path, body) {
  // A file says its own media type, an object is sent as JSON.
  const isFile = body instanceof Blob;
  const own = isFile ? fileHeaders(body) : body && { "content-type": "application/json" };
  const response = await fetch(SERVER + path, { method, headers: { ...headers, ...own }, body: isFile ? body : JSON.stringify(body) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error?.message ?? `The server answered ${response.status} ${response.statusText}`);
  return answer;
}

const fileHeaders = ({ name, type }) => ({
  "content-type": type || "application/octet-stream",
  "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(name)}`,
});

export const threadPath = (threadId) => `/threads/${encodeURIComponent(threadId)}`;
