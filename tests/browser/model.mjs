// A model that a test plays: an endpoint of OpenAI's chat completions that refuses what the real ones refuse.

import { once } from "node:events";
import { createServer } from "node:http";

import { refused } from "../js/strict-providers.mjs";

const chunk = (delta, finish_reason = null) => {
  const choices = [{ index: 0, delta, finish_reason }];
  return `data: ${JSON.stringify({ id: "a", model: "m", object: "chat.completion.chunk", choices })}\n\n`;
};

/**
 * Starts the model on a free loopback port.
 * @param {(messages: object[]) => { text: string, usage?: object, image?: string } | { tool: string, arguments: object }} answer `image`:
 *   a `data:` URL
 * @param {(json: string) => Promise<void> | undefined} onPiece waits after a piece of three bytes; `json`: the arguments so far
 */
export async function startModel(answer, onPiece = () => undefined) {
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = JSON.parse(Buffer.concat(chunks).toString());
    if (await refused(request, response, body, "plain")) return;
    const { messages } = body;
    const { tool, text, usage, image, arguments: args } = answer(messages);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (...delta) => response.write(chunk(...delta));
    if (text) {
      send({ role: "assistant", content: text });
      if (image) send({ images: [{ type: "image_url", image_url: { url: image } }] });
      send({}, "stop");
    } else {
      const call = { index: 0, id: `call-${messages.length}`, type: "function", function: { name: tool, arguments: "" } };
      send({ role: "assistant", tool_calls: [call] });
      const json = JSON.stringify(args);
      for (let at = 0; at < json.length; at += 3) {
        send({ tool_calls: [{ index: 0, function: { arguments: json.slice(at, at + 3) } }] });
        await onPiece(json.slice(0, at + 3));
      }
      send({}, "tool_calls");
    }
    if (usage) response.write(`data: ${JSON.stringify({ choices: [], usage })}\n\n`);
    response.end("data: [DONE]\n\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const stop = () => (server.close(), server.closeAllConnections());
  return { url: `http://127.0.0.1:${server.address().port}/v1`, stop };
}
