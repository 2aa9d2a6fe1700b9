// EventSource as the WHATWG standard describes it (html.spec.whatwg.org, "Server-sent events"), as far as a server can
// observe it. Node 20 has no EventSource.

/** Follows `url` and reconnects until the server responds with anything but an event stream. */
export class EventSource {
  /** Resolves when no further connection follows. */
  closed;
  /** The HTTP status that ended it. */
  endedBy;
  /** The `Last-Event-ID` of each connection, in order. */
  connections = [];
  #url;
  #retry = 10;
  #lastEventId = "";
  #connection;

  /** @param onmessage ({data, lastEventId}) => … */
  constructor(url, onmessage) {
    this.#url = url;
    this.onmessage = onmessage;
    this.closed = this.#run();
  }

  /** Aborts the current connection, as a network failure would. */
  breakConnection() {
    this.#connection.abort();
  }

  async #run() {
    for (;;) {
      const status = await this.#connect();
      if (status !== undefined) {
        this.endedBy = status;
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, this.#retry));
    }
  }

  /** Makes one connection. Returns the status if the standard says "fail the connection", which is final. */
  async #connect() {
    this.#connection = new AbortController();
    const headers = { Accept: "text/event-stream", "Cache-Control": "no-store" };
    if (this.#lastEventId !== "") headers["Last-Event-ID"] = this.#lastEventId;
    this.connections.push(this.#lastEventId);
    try {
      const response = await fetch(this.#url, { headers, signal: this.#connection.signal });
      const type = response.headers.get("content-type") ?? "";
      if (response.status !== 200 || !/^text\/event-stream\s*(;|$)/i.test(type)) return response.status;
      await this.#read(response.body);
    } catch {
      // The standard reconnects after a network error.
    }
  }

  async #read(body) {
    let buffer = "";
    let message = { data: [], id: this.#lastEventId };
    // The standard's UTF-8 decode: invalid bytes are replaced, a byte order mark is removed.
    for await (const text of body.pipeThrough(new TextDecoderStream())) {
      if (this.#connection.signal.aborted) return;
      buffer += text;
      // A CR at the end of the buffer may be the first half of CR LF.
      const lines = buffer.split(/\r\n|\n|\r(?!$)/);
      buffer = lines.pop();
      for (const line of lines) {
        if (line === "") message = this.#dispatch(message);
        else this.#field(line, message);
        if (this.#connection.signal.aborted) return;
      }
    }
    // An event without its empty line is discarded.
  }

  #field(line, message) {
    const [, name, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
    if (name === "data") message.data.push(value ?? "");
    else if (name === "id" && !value?.includes("\0")) message.id = value ?? "";
    else if (name === "retry" && /^\d+$/.test(value)) this.#retry = Number(value);
  }

  #dispatch({ data, id }) {
    this.#lastEventId = id;
    if (data.length > 0) this.onmessage({ data: data.join("\n"), lastEventId: id });
    return { data: [], id };
  }
}
