// The stock client, with the server's route for connecting to a thread, and with a recorder of what arrives.

import "./zod-without-eval.js";

import { HttpAgent, runHttpRequest, transformHttpEventStream } from "@ag-ui/client";

import { BASE, request, threadPath } from "./api.js";
import { teeEvents } from "./recorder.js";

export class ThreadAgent extends HttpAgent {
  constructor(name, threadId, recorder) {
    super({
      url: `${BASE}/agents/${encodeURIComponent(name)}/send-message`,
      threadId,
      fetch: async (url, init) => {
        const { headers } = this;
        if (url === this.url) recorder.begin(JSON.parse(init.body).runId, { agent: name, request: { url, body: init.body, headers } });
        return teeEvents(await request(url, init), (event) => recorder.record(event));
      },
    });
  }

  /** Restores the thread, and follows its running run. */
  connect(input) {
    this.abortController = new AbortController();
    const url = `${BASE}${threadPath(input.threadId)}/connect`;
    return transformHttpEventStream(runHttpRequest(() => this.fetch(url, this.requestInit(input))));
  }
}
