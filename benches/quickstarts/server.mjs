// A server as AG-UI's quickstart for TypeScript has it, for the table of docs/speed.md. With the packages of tests/js
// (`ln -s ../../tests/js/node_modules`): `node server.mjs PORT`. `forwardedProps` controls the agent as in
// examples/bench.rs. Stores nothing.

import { EventType } from "@ag-ui/core";
import { RunAgentInputSchema } from "@ag-ui/core/schemas";
import { EventEncoder } from "@ag-ui/encoder";
import express from "express";

const app = express();
app.use(express.json({ limit: "10mb" }));

app.post("/send-message", async (request, response) => {
  const { threadId, runId, forwardedProps } = RunAgentInputSchema.parse(request.body);
  const { n = 10, mode, delayUs = 0 } = forwardedProps ?? {};
  const encoder = new EventEncoder({ accept: request.headers.accept });
  response.setHeader("Content-Type", "text/event-stream");
  const send = async (event) => {
    if (!response.write(encoder.encodeSSE(event))) await new Promise((done) => response.once("drain", done));
  };
  await send({ type: EventType.RUN_STARTED, threadId, runId });
  await send({ type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant" });
  for (let number = 0; number < n; number++) {
    if (mode === "yield") await new Promise(setImmediate);
    if (mode === "sleep") await new Promise((done) => setTimeout(done, delayUs / 1000));
    const delta = `token number ${String(number).padStart(6, "0")} `;
    await send({ type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta });
  }
  await send({ type: EventType.TEXT_MESSAGE_END, messageId: "m" });
  await send({ type: EventType.RUN_FINISHED, threadId, runId });
  response.end();
});

app.listen(Number(process.argv[2]), "127.0.0.1");
