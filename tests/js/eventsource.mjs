// What a browser's EventSource does, which Node 20 has not: as the WHATWG standard describes it
// (html.spec.whatwg.org, "Server-sent events"), as far as a server can tell the difference.

/** Follows `url` until the server says that nothing more comes, or refuses. */
export class EventSource {
  /** Kept once it will not come back any more. */
  closed;
  /** The status that ended it. */
  endedBy;
  /** The `Last-Event-ID` that each connection began with. */
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

  /** Breaks the connection, as a network does. */
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

  /** One connection. Answers the status if the standard has it "fail the connection", which is final. */
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
      // A network error is a reason to come back.
    }
  }

  async #read(body) {
    let buffer = "";
    let message = { data: [], id: this.#lastEventId };
    // Not fatal, and without a byte order mark: the standard's UTF-8 decode.
    for await (const text of body.pipeThrough(new TextDecoderStream())) {
      if (this.#connection.signal.aborted) return;
      buffer += text;
      // A CR that is the last for now may be half of a line's end.
      const lines = buffer.split(/\r\n|\n|\r(?!$)/);
      buffer = lines.pop();
      for (const line of lines) {
        if (line === "") message = this.#dispatch(message);
        else this.#field(line, message);
        if (this.#connection.signal.aborted) return;
      }
    }
    // What no empty line has ended is discarded.
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
