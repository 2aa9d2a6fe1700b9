// A service with OpenAI's POST /audio/transcriptions, which refuses what the real one refuses.

import { createServer } from "node:http";
import { after } from "node:test";

const KEY = "a-key-for-speech";
const EXTENSIONS = ["flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm"];

/** The variables of a server that uses the service at a URL. */
export const withSpeech = (url) => ({
  AGUI_TRANSCRIPTION__BASE_URL: url,
  AGUI_TRANSCRIPTION__API_KEY_ENV: "SPEECH_KEY",
  AGUI_TRANSCRIPTION__LANGUAGE: "en",
  SPEECH_KEY: KEY,
});

const refusal = (status, message) => ({ status, body: { error: { message, type: "invalid_request_error" } } });

/** The type that the first bytes show, by the name's end. */
function typeOf(bytes) {
  if (bytes.readUInt32BE(0) === 0x1a45dfa3) return ["webm"];
  if (bytes.toString("latin1", 4, 8) === "ftyp") return ["mp4", "m4a"];
  return EXTENSIONS;
}

/** Judges a request as the real service does. */
async function answer(request, body) {
  if (request.headers.authorization !== `Bearer ${KEY}`) return refusal(401, "Incorrect API key provided");
  // Node's own parser of forms is strict.
  const form = await new Response(body, { headers: { "content-type": request.headers["content-type"] } }).formData();
  const file = form.get("file");
  if (form.get("model") !== "whisper-1") return refusal(404, `The model ${form.get("model")} does not exist`);
  if (!(file instanceof File)) return refusal(400, "file: field required");
  const bytes = Buffer.from(await file.arrayBuffer());
  const extension = file.name.split(".").at(-1);
  if (!EXTENSIONS.includes(extension)) return refusal(400, `Unrecognized file format. Supported formats: ${EXTENSIONS}`);
  if (bytes.length < 100) return refusal(400, "Audio file is too short. Minimum audio length is 0.1 seconds.");
  if (!typeOf(bytes).includes(extension)) return refusal(400, "Invalid file format.");
  return { status: 200, body: { text: ` ${form.get("language")}: ${bytes.length} bytes. ` } };
}

/** Starts the service. `next` answers the next request in its place: { status, body } or "hang up"; all wait for `gate`. */
export async function startSpeech() {
  const service = { next: undefined };
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const scripted = service.next;
    service.next = undefined;
    await service.gate;
    if (scripted === "hang up") return request.socket.destroy();
    const isKnown = request.method === "POST" && request.url === "/v1/audio/transcriptions";
    const { status, body } = scripted ?? (isKnown ? await answer(request, Buffer.concat(chunks)) : refusal(404, "no such route"));
    response.writeHead(status, { "content-type": "application/json" }).end(typeof body === "string" ? body : JSON.stringify(body));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  after(() => server.close());
  return Object.assign(service, { url: `http://127.0.0.1:${server.address().port}/v1/` });
}
