// Speech becomes text: the requests of CopilotKit's microphone, as a form and in an envelope.

import assert from "node:assert/strict";
import { test } from "node:test";

import { startSpeech, withSpeech } from "./speech.mjs";
import { useServer } from "./threads.mjs";

const KEY = "a-key-for-the-web-0123456789";

const service = await startSpeech();
const server = useServer(() => ({ variables: withSpeech(service.url) }));
const without = useServer();
const locked = useServer(() => ({
  variables: {
    ...withSpeech(service.url),
    AGUI_AUTH__MODE: "api_key",
    AGUI_AUTH__API_KEYS: '[{ name = "web", env = "WEB_KEY" }]',
    WEB_KEY: KEY,
  },
}));

const WEBM = Buffer.concat([Buffer.from("1a45dfa3", "hex"), Buffer.alloc(200)]);
const MP4 = Buffer.concat([Buffer.from("0000001c667479706d703432", "hex"), Buffer.alloc(200)]);

/** As CopilotKit's client sends it, which calls each recording `recording.webm`. */
async function speak(bytes, { type = "audio/webm;codecs=opus", url = server.url, headers } = {}) {
  const body = new FormData();
  body.append("audio", new Blob([bytes], { type }), "recording.webm");
  const response = await fetch(`${url}/copilotkit/transcribe`, { method: "POST", body, headers });
  return { status: response.status, ...(await response.json()) };
}

/** As CopilotKit's client sends it with `useSingleEndpoint`. */
async function speakInEnvelope(body, { url = server.url, headers } = {}) {
  const response = await fetch(`${url}/copilotkit`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ method: "transcribe", body }),
  });
  return { status: response.status, ...(await response.json()) };
}

test("a recording becomes text, from a form and from an envelope", async () => {
  assert.deepEqual(await speak(WEBM), { status: 200, text: " en: 204 bytes. " });
  const audio = WEBM.toString("base64");
  const envelope = { audio, mimeType: "audio/webm", filename: "recording.webm" };
  assert.deepEqual(await speakInEnvelope(envelope), { status: 200, text: " en: 204 bytes. " });
});

test("what Safari records under the name of another type is transcribed", async () => {
  assert.deepEqual(await speak(MP4, { type: "audio/mp4" }), { status: 200, text: " en: 212 bytes. " });
});

test("pages learn whether there is a microphone", async () => {
  const read = async ({ url }) => {
    const [info, agents] = await Promise.all(["/copilotkit/info", "/agents"].map(async (path) => (await fetch(url + path)).json()));
    return [info.audioFileTranscriptionEnabled, agents.transcribe];
  };
  assert.deepEqual([await read(server), await read(without)], [[true, "/copilotkit/transcribe"], [false, undefined]]);
});

test("one principal has four recordings at once, and the next ones are refused", async () => {
  let open;
  service.gate = new Promise((done) => (open = done));
  const headers = { authorization: `Bearer ${KEY}` };
  const answers = Array.from({ length: 6 }, () => speak(WEBM, { url: locked.url, headers }).then(({ status }) => status));
  let refused = 0;
  await new Promise((done) => answers.forEach((answer) => answer.then((status) => status === 429 && ++refused === 2 && done())));
  open();
  assert.deepEqual((await Promise.all(answers)).sort(), [200, 200, 200, 200, 429, 429]);
});

test("without a key there is no text where a key is needed", async () => {
  assert.equal((await speakInEnvelope({ audio: "" }, { url: locked.url })).status, 401);
});

test("refusals have the codes of CopilotKit's runtime", async () => {
  const refused = async (answer) => {
    const { status, error, message, retryable } = await answer;
    assert.ok(message.length > 10 && !message.includes(service.url), message);
    return [status, error, retryable];
  };
  const after = async (next) => ((service.next = next), refused(speak(WEBM)));
  assert.deepEqual(await refused(speak(WEBM, { url: without.url })), [503, "service_not_configured", false]);
  assert.deepEqual(await refused(speak(Buffer.alloc(0))), [400, "audio_too_short", false]);
  assert.deepEqual(await refused(speak(WEBM.subarray(0, 20))), [400, "audio_too_short", false]);
  assert.deepEqual(await refused(speak(WEBM, { type: "text/plain" })), [400, "invalid_audio_format", false]);
  assert.deepEqual(await refused(speakInEnvelope({ audio: "?!" })), [400, "invalid_request", false]);
  assert.deepEqual(await refused(speakInEnvelope({})), [400, "invalid_request", false]);
  assert.deepEqual(await after({ status: 401, body: "no" }), [502, "auth_failed", false]);
  assert.deepEqual(await after({ status: 429, body: "no" }), [429, "rate_limited", true]);
  assert.deepEqual(await after({ status: 413, body: "no" }), [400, "audio_too_long", false]);
  assert.deepEqual(await after({ status: 500, body: "no" }), [502, "provider_error", true]);
  assert.deepEqual(await after({ status: 200, body: "<html>" }), [502, "provider_error", true]);
  assert.deepEqual(await after("hang up"), [502, "network_error", true]);
  assert.deepEqual(await speak(WEBM), { status: 200, text: " en: 204 bytes. " }, "after all of them");
});
