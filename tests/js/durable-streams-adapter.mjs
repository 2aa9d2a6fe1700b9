// Lets the conformance tests of Durable Streams, which write their own streams, read runs of the server under test.
//
// A stream is a detached run of a remote agent, which is this adapter as well: an append is a CUSTOM event of the agent,
// and closing the stream ends the run. Reads are passed on to the run's log. Of the responses, the adapter changes the
// content type and the body alone: events become what was appended again. Status codes, all other headers, waiting and
// the frames of Server-Sent Events are the server's.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { Readable } from "node:stream";

const NEXT_OFFSET = "stream-next-offset";
const CLOSED = "stream-closed";
const POLL_MS = 2;

/** Starts an adapter. Set `target` to the server's URL before the first request. `agentUrl` is that of the agent. */
export async function startAdapter() {
  const adapter = new Adapter();
  const server = createServer((request, response) => {
    adapter.handle(request, response).catch((error) => {
      if (!response.headersSent) response.writeHead(500);
      response.end(String(error));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  adapter.url = `http://127.0.0.1:${server.address().port}`;
  adapter.agentUrl = `${adapter.url}/agent`;
  adapter.close = () => {
    server.closeAllConnections();
    server.close();
  };
  return adapter;
}

class Adapter {
  target;
  #streams = new Map();
  /** The runs that the server has not yet passed to the agent, by thread. */
  #starting = new Map();

  async handle(request, response) {
    const { pathname: path, search } = new URL(request.url, this.url);
    if (path === "/agent") return this.#run(JSON.parse(await bytesOf(request)), response);
    const stream = this.#streams.get(path);
    switch (request.method) {
      case "PUT":
        return this.#create(path, stream, request, response);
      case "POST":
        return this.#append(stream, request, response);
      case "DELETE":
        return this.#delete(path, stream, response);
      default:
        return this.#read(stream, search, request, response);
    }
  }

  /** The agent: its run lasts until the stream is closed. */
  #run({ threadId, runId }, response) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (event) => response.write(`data: ${JSON.stringify(event)}\n\n`);
    send({ type: "RUN_STARTED", threadId, runId });
    const end = () => {
      send({ type: "RUN_FINISHED", threadId, runId });
      response.end();
    };
    this.#starting.get(threadId)({ send, end });
  }

  async #create(path, stream, request, response) {
    const body = await bytesOf(request);
    const contentType = request.headers["content-type"] ?? "application/octet-stream";
    if (stream) {
      const isSame = mediaType(stream.contentType) === mediaType(contentType);
      const headers = isSame ? await this.#headers(stream) : {};
      return void response.writeHead(isSame ? 200 : 409, headers).end();
    }
    const threadId = randomUUID();
    const agent = new Promise((start) => this.#starting.set(threadId, start));
    const input = {
      threadId,
      runId: "stream",
      messages: [{ id: "m", role: "user", content: path }],
      forwardedProps: { onDisconnect: "continue" },
    };
    const headers = { "content-type": "application/json" };
    const run = await fetch(`${this.target}/send-message`, { method: "POST", headers, body: JSON.stringify(input) });
    if (!run.ok) throw new Error(`no run: ${run.status} ${await run.text()}`);
    const created = { threadId, contentType, agent: await agent, events: 1 };
    await run.body.cancel();
    this.#streams.set(path, created);
    if (!this.#write(created, body, true)) return void response.writeHead(400).end();
    if (request.headers[CLOSED] === "true") created.agent.end();
    await this.#stored(created, request.headers[CLOSED] === "true");
    response.writeHead(201, { location: `${this.url}${path}`, ...(await this.#headers(created)) }).end();
  }

  async #append(stream, request, response) {
    const body = await bytesOf(request);
    const closes = request.headers[CLOSED] === "true";
    if (!stream) return void response.writeHead(404).end();
    const state = await this.#headers(stream);
    const closesOnly = closes && body.length === 0;
    if (state[CLOSED]) return void response.writeHead(closesOnly ? 204 : 409, state).end();
    if (!closesOnly) {
      const { "content-type": type } = request.headers;
      if (type === undefined || body.length === 0) return void response.writeHead(400).end();
      if (mediaType(type) !== mediaType(stream.contentType)) return void response.writeHead(409).end();
      if (!this.#write(stream, body, false)) return void response.writeHead(400).end();
    }
    if (closes) stream.agent.end();
    await this.#stored(stream, closes);
    response.writeHead(204, await this.#headers(stream)).end();
  }

  /** Sends what was appended as events. Returns false if it is not JSON in a stream of JSON. */
  #write(stream, body, isFirst) {
    if (body.length === 0) return true;
    let values = [body.toString("base64")];
    if (isJson(stream.contentType)) {
      try {
        values = [JSON.parse(body)].flat();
      } catch {
        return false;
      }
      if (values.length === 0) return isFirst;
    }
    for (const value of values) stream.agent.send({ type: "CUSTOM", name: "append", value });
    stream.events += values.length;
    return true;
  }

  async #delete(path, stream, response) {
    if (!stream) return void response.writeHead(404).end();
    stream.agent.end();
    await fetch(`${this.target}/threads/${stream.threadId}`, { method: "DELETE" });
    this.#streams.delete(path);
    response.writeHead(204).end();
  }

  /** Waits until the server has stored all events of a stream. */
  async #stored(stream, isClosed) {
    for (;;) {
      const headers = await this.#headers(stream);
      if (Number(headers[NEXT_OFFSET]) >= stream.events && (!isClosed || headers[CLOSED])) return;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  #logOf(stream) {
    return `${this.target}/threads/${stream?.threadId ?? "unknown"}/runs/stream/log`;
  }

  async #headers(stream) {
    const { headers } = await fetch(this.#logOf(stream), { method: "HEAD" });
    const isClosed = headers.get(CLOSED) === "true";
    const found = { [NEXT_OFFSET]: headers.get(NEXT_OFFSET), "content-type": stream.contentType };
    return isClosed ? { ...found, [CLOSED]: "true" } : found;
  }

  async #read(stream, search, request, response) {
    const leaving = new AbortController();
    response.on("close", () => leaving.abort());
    const { host, connection, ...headers } = request.headers;
    const init = { method: request.method, headers, signal: leaving.signal };
    const answer = await fetch(this.#logOf(stream) + search, init).catch((error) => {
      if (!leaving.signal.aborted) throw error;
    });
    if (!answer) return;
    const own = new Set(["content-length", "transfer-encoding", "connection", "keep-alive"]);
    const passed = Object.fromEntries([...answer.headers].filter(([name]) => !own.has(name)));
    if (passed["content-type"] === "application/json" && answer.ok) passed["content-type"] = stream.contentType;
    response.writeHead(answer.status, passed);
    if (!answer.body || request.method === "HEAD") return void response.end();
    if (!answer.ok) return void response.end(await answer.text());
    if (passed["content-type"] !== "text/event-stream") {
      return void response.end(bodyOf(stream, JSON.parse(await answer.text())));
    }
    const frames = framesOf(stream, answer.body.pipeThrough(new TextDecoderStream()));
    Readable.from(frames).on("error", () => response.destroy()).pipe(response);
  }
}

const mediaType = (type) => type.split(";")[0].trim().toLowerCase();
const isJson = (type) => mediaType(type) === "application/json";

async function bytesOf(request) {
  return Buffer.concat(await request.toArray());
}

/** What was appended, of all events of a run. */
const appended = (events) => events.flatMap(({ type, name, value }) => (type === "CUSTOM" && name === "append" ? [value] : []));

function bodyOf(stream, events) {
  const values = appended(events);
  if (isJson(stream.contentType)) return JSON.stringify(values);
  return Buffer.concat(values.map((value) => Buffer.from(value, "base64")));
}

async function* framesOf(stream, texts) {
  let rest = "";
  for await (const text of texts) {
    const frames = (rest + text).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const data = /^event: data\ndata:([^\n]*)$/.exec(frame)?.[1];
      if (data === undefined) {
        yield `${frame}\n\n`;
        continue;
      }
      const events = JSON.parse(data);
      if (appended(events).length === 0) continue;
      const lines = String(bodyOf(stream, events)).split(/\r\n|\r|\n/);
      yield `event: data\n${lines.map((line) => `data:${line}\n`).join("")}\n`;
    }
  }
}
