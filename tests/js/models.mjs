// Fake providers (aimock and a counting one), a weather service for HTTP tools, and configurations that use them.

import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, request as forward } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { LLMock } from "@copilotkit/aimock";

import { startServer } from "./server.mjs";
import { refused } from "./strict-providers.mjs";

/** The provider's key. It may appear in requests to the provider only. */
export const KEY = "sk-test-5f3a91c07be24d68";
process.env.AGUI_TEST_MODEL_KEY = KEY;

/** The base URL of each provider's API on aimock. */
const withVersion = (url) => `${url}/v1`;
const BASES = { openai: withVersion, "openai-responses": withVersion, anthropic: (url) => url, gemini: (url) => url };
const MODELS = { openai: "o3", "openai-responses": "o3", anthropic: "claude-sonnet-4-5", gemini: "gemini-3.8-flash" };

async function read(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Starts an HTTP server on a free loopback port. */
export async function listen(handler) {
  const server = createServer(handler);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const stop = () => new Promise((done) => (server.close(done), server.closeAllConnections()));
  return { url: `http://127.0.0.1:${server.address().port}`, stop };
}

/**
 * aimock behind a proxy that refuses what the real providers refuse, and records the requests: aimock's journal converts
 * Anthropic's to OpenAI's form.
 */
class Model extends LLMock {
  /** The requests, the refused ones as well; `ended` resolves to the time when the response was over. */
  received = [];

  async start() {
    await super.start();
    this.proxy = await listen(async (request, response) => {
      const body = await read(request);
      const record = { path: request.url, headers: request.headers, body: JSON.parse(body.toString()) };
      this.received.push(record);
      record.ended = new Promise((done) => response.once("close", () => done(performance.now())));
      if (await refused(request, response, record.body)) return;
      const { method, headers } = request;
      const upstream = forward(super.url + request.url, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
        answer.on("error", () => response.destroy());
      });
      response.once("close", () => upstream.destroy());
      upstream.on("error", () => response.destroy());
      upstream.end(body);
    });
  }

  get url() {
    return this.proxy.url;
  }

  async stop() {
    await this.proxy?.stop();
    await super.stop();
  }
}

/** Starts the model. It responds only to requests that a test registered. */
export async function startModel() {
  const model = new Model({ port: 0, host: "127.0.0.1", logLevel: "silent", strict: true });
  await model.start();
  return model;
}

/** A provider that responds "a1", "a2"… as chat completions and records the texts of each request. */
export async function startCountingModel() {
  const asked = [];
  const server = await listen(async (request, response) => {
    const body = JSON.parse((await read(request)).toString());
    if (await refused(request, response, body, "plain")) return;
    const { messages } = body;
    const text = ({ content }) => (Array.isArray(content) ? content.map((part) => part.text).join("") : content);
    asked.push(messages.filter(({ role }) => role !== "system" && role !== "developer").map(text));
    const event = (delta, finish_reason = null) =>
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(event({ role: "assistant", content: `a${asked.length}` }) + event({}, "stop") + "data: [DONE]\n\n");
  });
  return { ...server, asked };
}

/** A weather service that records its requests. */
export async function startWeather() {
  const asked = [];
  const server = await listen((request, response) => {
    asked.push(request.url);
    const city = new URL(request.url, "http://x").searchParams.get("city");
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ report: `Sunny in ${city}, 25 degrees` }));
  });
  return { ...server, asked };
}

/** Writes a configuration file. `remove` deletes it. */
export async function configFile(text) {
  const folder = await mkdtemp(join(tmpdir(), "agui-models-"));
  const config = join(folder, "server.toml");
  await writeFile(config, text);
  return { config, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Returns the configuration of an agent with a provider at `url`. */
export const agentOn = (provider, url, { name = "assistant", tools = [], more = "" } = {}) => `
[agents.${name}]
kind = "llm"
provider = "${provider}"
base_url = "${BASES[provider](url)}"
model = "${MODELS[provider]}"
api_key_env = "AGUI_TEST_MODEL_KEY"
system_prompt = "You are the assistant of a test."
tools = ${JSON.stringify(tools)}
${more}
`;

/** Returns the configuration of two weather tools; `order_weather` needs approval. */
export const weatherTools = (url) =>
  [["get_weather", "never"], ["order_weather", "always"]]
    .map(
      ([name, approval]) => `
[tools.${name}]
kind = "http"
url = "${url}/${name}?city={city}"
description = "The weather in a city."
approval = "${approval}"
result = "/report"
parameters = { type = "object", properties = { city = { type = "string" } }, required = ["city"] }
`,
    )
    .join("");

/** Starts a server whose agent `assistant` has these weather tools, until the test ends. Returns it with its model and the weather service. */
export async function startWeatherAgent(t, tools) {
  const [model, weather] = await Promise.all([startModel(), startWeather()]);
  t.after(() => Promise.all([model.stop(), weather.stop()]));
  const agent = agentOn("openai", model.url, { tools });
  const file = await configFile(`default_agent = "assistant"\n${agent}${weatherTools(weather.url)}`);
  t.after(file.remove);
  const service = await startServer({ config: file.config });
  t.after(service.stop);
  return { model, weather, service };
}
