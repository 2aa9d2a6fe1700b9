// The named-event endpoints with the guide's front end: its React hook in a page, its event handler, its interrupts;
// with the demo and with a model.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { JSDOM } from "jsdom";

import { AGUIEventHandler, handleInterrupt, useAGUIStream } from "./named-events-hook.mjs";
import { agentOn, configFile, startModel, startWeather, weatherTools } from "./models.mjs";
import { startServer } from "./server.mjs";

// React reads `window` when it is imported.
const { window } = new JSDOM("<!doctype html>");
const { document } = window;
Object.assign(globalThis, { window, document, IS_REACT_ACT_ENVIRONMENT: true });
if (!("navigator" in globalThis)) globalThis.navigator = window.navigator;
const { act, createElement } = await import("react");
const { createRoot } = await import("react-dom/client");

/** A page on this server with one component that uses the hook. */
async function openPage(url) {
  const real = globalThis.fetch;
  // The hook requests a path; in a browser it would be relative to the page.
  globalThis.fetch = (path, options) => real(new URL(path, url), options);
  let hook;
  const seen = [];
  function Chat() {
    hook = useAGUIStream("token");
    seen.push(hook.response);
    const calls = hook.toolCalls.map((tc) => `[${tc.name} ${tc.args} ${tc.status}]`).join("");
    return createElement("p", null, hook.reasoning?.content, calls, hook.response);
  }
  const container = document.body.appendChild(document.createElement("div"));
  const root = createRoot(container);
  await act(() => root.render(createElement(Chat)));
  const say = (content, thread = randomUUID()) =>
    act(() => hook.sendMessage([{ role: "user", content }], thread));
  const close = async () => {
    await act(() => root.unmount());
    container.remove();
    globalThis.fetch = real;
  };
  return { say, close, hook: () => hook, seen, text: () => container.textContent };
}

/** Returns all events of a request, parsed as in the guide's clients. */
async function ask(url, path, body) {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  assert.equal(response.status, 200, await (response.ok ? "" : response.text()));
  const text = await response.text();
  return text
    .split("\n\n")
    .filter((frame) => frame && !frame.startsWith(":"))
    .map((frame) => {
      const [, name, data] = /^event: (\w+)\ndata: ([^\n]+)$/.exec(frame);
      return { name, data: JSON.parse(data) };
    });
}

const user = (content, thread_id) => ({ messages: [{ role: "user", content }], thread_id });

describe("the guide's front end with the demo", () => {
  let server, page;
  before(async () => {
    server = await startServer();
    page = await openPage(server.url);
  });
  after(async () => {
    await page?.close();
    await server?.stop();
  });

  test("the hook shows a tool call and a text", async () => {
    await page.say("what's the weather like in Beijing today?");
    const { toolCalls, response } = page.hook();
    assert.equal(toolCalls.length, 1);
    assert.deepEqual({ ...toolCalls[0], id: "" }, { id: "", name: "get_weather", args: '{"city":"Beijing"}', status: "complete" });
    assert.equal(response, "Let me check\n\nBeijing is sunny today with a temperature of 25°C.");
    assert.ok(page.text().includes("[get_weather"), page.text());
  });

  test("the hook shows reasoning", async () => {
    await page.say("think about lunch");
    const { reasoning } = page.hook();
    assert.ok(reasoning.isComplete && reasoning.content.length > 0, JSON.stringify(reasoning));
  });

  test("the hook shows a text while it streams", async () => {
    const before = page.seen.length;
    // Within `act`, React would render the whole text at once.
    globalThis.IS_REACT_ACT_ENVIRONMENT = false;
    await page.hook().sendMessage([{ role: "user", content: "count to 20" }], randomUUID());
    const deadline = Date.now() + 20_000;
    while (!page.hook().response.endsWith("20") && Date.now() < deadline) await pause(5);
    globalThis.IS_REACT_ACT_ENVIRONMENT = true;
    const grown = new Set(page.seen.slice(before));
    assert.ok(grown.size > 1 && page.hook().response.endsWith("20"), [...grown].join("|"));
  });

  test("the event handler assembles calls, results and reasoning", async () => {
    const handler = new AGUIEventHandler();
    for (const text of ["parallel", "think about lunch"]) {
      for (const { name, data } of await ask(server.url, "/agent/agent/stream", user(text))) handler.handleEvent(name, data);
    }
    assert.equal(handler.toolCalls.size, 2);
    for (const call of handler.toolCalls.values()) {
      assert.ok(call.isComplete && call.result && JSON.parse(call.args), JSON.stringify(call));
    }
    const [thought] = handler.reasoning.values();
    assert.ok(thought.isComplete && thought.content, JSON.stringify(thought));
  });

  test("actions are shown, and decisions about them are sent", async () => {
    const thread = randomUUID();
    const { name, data } = (await ask(server.url, "/agent/chat/stream", user("approve two", thread))).at(-1);
    assert.equal(name, "interrupt");
    const { dialog, shown, options } = handleInterrupt(data);
    assert.equal(dialog, "actions");
    assert.deepEqual(shown.map((action) => action.name), ["book_train", "book_hotel"]);
    assert.deepEqual(options.map(({ value }) => value), ["approve", "reject"]);
    const decisions = [
      { actionId: shown[0].actionId, type: "approve" },
      { actionId: shown[1].actionId, type: "reject", reason: "Too dear" },
    ];
    const events = await ask(server.url, "/agent/chat/stream", user({ decisions }, thread));
    const said = events.filter(({ name }) => name === "message").map(({ data }) => data.content);
    assert.equal(said.join(""), "Done: a train to Beijing is booked; declined, so no hotel is booked.");
  });
});

for (const provider of ["openai", "anthropic"]) {
  describe(`the guide's front end with a model of ${provider}`, () => {
    let model, weather, file, server, page;
    before(async () => {
      [model, weather] = await Promise.all([startModel(), startWeather()]);
      const agent = agentOn(provider, model.url, { tools: ["get_weather"], more: "thinking = true" });
      file = await configFile(agent + weatherTools(weather.url));
      server = await startServer({ config: file.config });
      page = await openPage(server.url);
    });
    after(async () => {
      await page?.close();
      await server?.stop();
      await Promise.all([model?.stop(), weather?.stop(), file?.remove()]);
    });

    test("the hook shows reasoning, a call and the response", async () => {
      const has = (messages) => messages.some(({ role }) => role === "tool");
      const asked = (request) => JSON.stringify(request.messages).includes("weather in Rome");
      const toolCalls = [{ name: "get_weather", arguments: '{"city":"Rome"}' }];
      model.on({ predicate: (request) => asked(request) && !has(request.messages) }, { toolCalls, reasoning: "Let me look." });
      model.on({ predicate: (request) => asked(request) && has(request.messages) }, { content: "It is sunny." });
      await page.say([{ type: "text", text: "What is the weather in Rome?" }]);
      const { toolCalls: calls, response, reasoning } = page.hook();
      assert.deepEqual({ ...reasoning, id: "" }, { id: "", content: "Let me look.", isComplete: true });
      assert.equal(calls.length, 1);
      assert.deepEqual([calls[0].name, JSON.parse(calls[0].args), calls[0].status], [
        "get_weather",
        { city: "Rome" },
        "complete",
      ]);
      assert.equal(response, "It is sunny.");
    });
  });
}
