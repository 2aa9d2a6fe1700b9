// Agents with a model: @ag-ui/client in front, aimock as the provider. The same conversations run with each protocol
// of the providers.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";

import { KEY, agentOn, configFile, startCountingModel, startModel, startWeather, weatherTools } from "./models.mjs";
import { Page, readThread, said, textOf, typesOf, useServer } from "./threads.mjs";

const TOOLS = ["get_weather", "order_weather", "update_state", "agent:writer"];
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const call = (name, args, id) => ({ toolCalls: [{ name, arguments: JSON.stringify(args), ...(id && { id }) }] });
const results = (events) => events.filter(({ type }) => type === "TOOL_CALL_RESULT").map(({ content }) => content);
const finished = { finished: ["success"], errors: [] };
const outcome = ({ finished: ends, errors }) => ({ finished: ends, errors });

const KEY_HEADERS = {
  openai: "authorization",
  "openai-responses": "authorization",
  anthropic: "x-api-key",
  gemini: "x-goog-api-key",
};

for (const provider of ["openai", "openai-responses", "anthropic", "gemini"]) {
  describe(provider, () => {
    let model, weather, file;
    before(async () => {
      [model, weather] = await Promise.all([startModel(), startWeather()]);
      const writer = agentOn(provider, model.url, { name: "writer", more: 'description = "Writes letters."' });
      const assistant = agentOn(provider, model.url, { tools: TOOLS });
      file = await configFile(`default_agent = "assistant"\n${assistant}${writer}${weatherTools(weather.url)}`);
    });
    const server = useServer(() => ({ config: file.config }));
    after(async () => {
      await Promise.all([model?.stop(), weather?.stop(), file?.remove()]);
    });

    /** Registers the model's responses to a sentence that no other test sends, and to the tool results that follow. */
    const teach = (...answers) => {
      const sentence = `${answers.length} answers for ${randomUUID()}`;
      for (const [turn, answer] of answers.entries()) {
        model.on({ predicate: (request) => asked(request, sentence) && turns(request) === turn }, answer);
      }
      return sentence;
    };
    const texts = ({ content }) =>
      typeof content === "string" ? content : (content ?? []).map(({ text }) => text ?? "").join("");
    // Instructions about context and state come last, with Anthropic as a text of the user's role.
    const isUsers = (message) => message.role === "user" && !texts(message).startsWith("<system-instructions>");
    const lastUser = ({ messages }) => messages.findLastIndex(isUsers);
    const asked = (request, sentence) => texts(request.messages[lastUser(request)]).includes(sentence);
    /** Counts the model's turns. Of a turn of the Responses API, aimock makes a message for each item. */
    const turns = (request) => {
      const own = request.messages.slice(lastUser(request)).map(({ role }) => role === "assistant");
      return own.filter((isOwn, at) => isOwn && !own[at - 1]).length;
    };
    /** Returns the types of the encrypted values of a thread. The client leaves them out: they are new in AG-UI 1.1. */
    const storedTypes = async ({ threadId }) => {
      const { messages } = await readThread(server, threadId);
      const types = messages.flatMap(({ encryptedValueType }) => encryptedValueType ?? []);
      return [...new Set(types)].sort();
    };
    /** Returns the recorded requests to the provider, the newest last. */
    const requests = (sentence) => model.received.filter(({ body }) => JSON.stringify(body).includes(sentence));

    test("a conversation", async () => {
      const hello = teach({ content: "Hello to you, too. 你好 👋" });
      const page = new Page(server, {});
      const seen = await page.say(hello, { context: [{ description: "page", value: "orders" }] });
      assert.deepEqual(outcome(seen), finished);
      assert.equal(textOf(seen.events), "Hello to you, too. 你好 👋");
      const again = teach({ content: "And again." });
      assert.equal(textOf((await page.say(again)).events), "And again.");
      await page.requireStored();

      const [first, second] = [requests(hello)[0], requests(again)[0]];
      const sent = JSON.stringify(first.body);
      assert.ok(sent.includes("You are the assistant of a test.") && sent.includes("page: orders"), sent);
      const { contents, input, messages = contents ?? input } = second.body;
      const isTurn = ({ role }) => ["user", "assistant", "model"].includes(role);
      assert.equal(messages.filter(isTurn).length, 3, "the request contains the history");
      assert.equal(first.headers[KEY_HEADERS[provider]]?.split(" ").at(-1), KEY);
      assert.ok(model.getRequests().length > 0, "aimock received the request");
      assert.ok(!JSON.stringify(page.messages).includes(KEY) && !server.log().includes(KEY), "the key is not in messages or logs");
    });

    test("a tool of the server runs within the run, and the model gets its result", async () => {
      const sentence = teach(call("get_weather", { city: "Beijing & Rome" }), { content: "Take sunglasses." });
      const page = new Page(server, {});
      const { events, ...rest } = await page.say(sentence);
      assert.deepEqual(outcome(rest), finished);
      assert.deepEqual(results(events), ["Sunny in Beijing & Rome, 25 degrees"]);
      assert.equal(textOf(events), "Take sunglasses.");
      assert.ok(weather.asked.includes("/get_weather?city=Beijing%20%26%20Rome"), weather.asked.join());
      assert.ok(JSON.stringify(requests(sentence)[1].body).includes("Sunny in Beijing & Rome"));
      await page.requireStored();
    });

    test("all calls of one turn get a result", async () => {
      const both = { toolCalls: ["Rome", "Oslo"].map((city) => call("get_weather", { city }).toolCalls[0]) };
      const sentence = teach(both, { content: "Done." });
      const { events } = await new Page(server, {}).say(sentence);
      assert.deepEqual(results(events).sort(), ["Sunny in Oslo, 25 degrees", "Sunny in Rome, 25 degrees"]);
      const ids = events.filter(({ type }) => type === "TOOL_CALL_START").map(({ toolCallId }) => toolCallId);
      assert.equal(new Set(ids).size, 2);
    });

    test("a tool of the page is left to the page, and its result reaches the model", async () => {
      const sentence = teach(call("pick_color", { of: "sky" }), { content: "Blue it is." });
      const tools = [{
        name: "pick_color",
        description: "Asks the user for a colour.",
        parameters: { type: "object", properties: { of: { type: "string" } }, required: ["of"] },
      }];
      const page = new Page(server, {});
      const first = await page.say(sentence, { tools });
      const [toolCall] = page.messages.at(-1).toolCalls;
      assert.deepEqual(toolCall.function, { name: "pick_color", arguments: '{"of":"sky"}' });
      assert.deepEqual(first.events.at(-1).outcome.pendingToolCallIds, [toolCall.id]);
      page.addMessage({ id: randomUUID(), role: "tool", toolCallId: toolCall.id, content: "blue" });
      const second = await page.say(undefined, { tools });
      assert.equal(textOf(second.events), "Blue it is.");
      assert.deepEqual(results(second.events), [], "the server does not answer the page's tool");
      await page.requireStored();
    });

    for (const [what, answer, expected] of [
      ["accepted", { approved: true }, "Sunny in Rome, 25 degrees"],
      ["edited", { approved: true, editedArgs: { city: "Oslo" } }, "Sunny in Oslo, 25 degrees"],
      ["declined", { approved: false, reason: "too dear" }, "The user declined this call: too dear"],
      ["abandoned", "cancelled", "The call was not run: the user did not approve it."],
    ]) {
      test(`a call that needs approval is ${what}`, async () => {
        const sentence = teach(call("order_weather", { city: "Rome" }), { content: "So be it." });
        const page = new Page(server, {});
        const before = weather.asked.length;
        const first = await page.say(sentence);
        assert.deepEqual(outcome(first), { finished: ["interrupt"], errors: [] });
        const [interrupt] = page.pendingInterrupts;
        assert.equal(interrupt.reason, "tool_call");
        assert.equal(interrupt.toolCallId, page.messages.at(-1).toolCalls[0].id);
        assert.equal(interrupt.responseSchema.properties.editedArgs.properties.city.type, "string");
        assert.equal(weather.asked.length, before, "the tool is not called before the answer");
        const second = await page.answer(answer);
        assert.deepEqual(outcome(second), finished);
        assert.deepEqual(results(second.events), [expected]);
        assert.equal(typesOf(second.events).includes("TOOL_CALL_START"), false, "the call is not sent again");
        assert.equal(textOf(second.events), "So be it.");
        assert.ok(JSON.stringify(requests(sentence).at(-1).body).includes(expected));
        await page.requireStored();
      });
    }

    test("arguments that do not fit the schema go back to the model as an error", async () => {
      const sentence = teach(call("get_weather", { town: "Rome" }), { content: "Sorry." });
      const { events, ...rest } = await new Page(server, {}).say(sentence);
      assert.deepEqual(outcome(rest), finished);
      assert.match(results(events)[0], /^Error: .*city/s);
    });

    test("update_state changes the page's state, and the model sees it", async () => {
      const patch = [{ op: "add", path: "/step", value: 2 }];
      const sentence = teach(call("update_state", { patch }), { content: "Changed." });
      const page = new Page(server, { initialState: { plan: "x" } });
      await page.say(sentence);
      assert.deepEqual(page.state, { plan: "x", step: 2 });
      assert.match(JSON.stringify(requests(sentence)[1].body), /plan\W+x\W+step\W+2/);
      await page.requireStored();
    });

    test("the page receives the events of a subagent", async () => {
      const task = teach({ content: "Dear Ada, hello." });
      const sentence = teach(call("writer", { task }), { content: "The letter is written." });
      const page = new Page(server, {});
      const { events } = await page.say(sentence);
      const mine = events.filter(({ subagentRunId, type }) => subagentRunId && !type.startsWith("SUBAGENT_"));
      assert.equal(textOf(mine), "Dear Ada, hello.");
      assert.deepEqual(typesOf(events).filter((type) => /^SUBAGENT/.test(type)), ["SUBAGENT_STARTED", "SUBAGENT_FINISHED"]);
      assert.deepEqual(results(events), ["Dear Ada, hello."]);
      await page.requireStored();
    });

    test("an image reaches the model", async () => {
      const sentence = teach({ content: "A red pixel." });
      const image = { type: "image", source: { type: "data", value: PIXEL, mimeType: "image/png" } };
      const page = new Page(server, {});
      page.addMessage({ ...said(""), content: [{ type: "text", text: sentence }, image] });
      assert.equal(textOf((await page.say()).events), "A red pixel.");
      assert.ok(JSON.stringify(requests(sentence)[0].body).includes(PIXEL));
    });

    test("thinking is sent as reasoning, and encrypted values return to the provider", async () => {
      const thought = { reasoning: "The user is polite.", reasoningSignature: "c2lnbmVk", redactedThinking: ["aGlkZGVu"] };
      const sentence = teach({ ...thought, ...call("get_weather", { city: "Rome" }) }, { content: "Sun." });
      const page = new Page(server, {});
      const { events } = await page.say(sentence, { forwardedProps: { enableDeepThinking: true } });
      assert.deepEqual(results(events), ["Sunny in Rome, 25 degrees"]);
      const told = events.filter(({ type }) => type === "REASONING_MESSAGE_CONTENT").map(({ delta }) => delta).join("");
      assert.equal(told, "The user is polite.");
      if (provider === "anthropic") {
        const values = events.filter(({ type }) => type === "REASONING_ENCRYPTED_VALUE").map((e) => e.encryptedValue);
        assert.deepEqual(values.sort(), ["aGlkZGVu", "c2lnbmVk"]);
        const again = teach({ content: "Yes." });
        await page.say(again, { forwardedProps: { enableDeepThinking: true } });
        for (const request of [requests(sentence)[1], requests(again)[0]]) {
          const sent = JSON.stringify(request.body);
          assert.ok(sent.includes("c2lnbmVk") && sent.includes("aGlkZGVu"), sent);
        }
        assert.deepEqual(await storedTypes(page), ["anthropic.redacted_thinking", "anthropic.signature"]);
      }
      if (provider === "gemini") {
        const sent = JSON.stringify(requests(sentence)[1].body);
        assert.ok(sent.includes("skip_thought_signature_validator"), "aimock signs no calls, so they get the placeholder");
      }
      if (provider === "openai-responses") {
        const [{ encryptedValue }] = events.filter(({ type }) => type === "REASONING_ENCRYPTED_VALUE");
        const again = teach({ content: "Yes." });
        await page.say(again);
        for (const { body } of [requests(sentence)[1], requests(again)[0]]) {
          assert.equal(body.store, false);
          const at = body.input.findIndex(({ type }) => type === "reasoning");
          const { id, encrypted_content } = body.input[at];
          assert.deepEqual(JSON.parse(encryptedValue), { id, encrypted_content });
          assert.equal(body.input[at + 1].type, "function_call", "the reasoning precedes its call");
        }
        assert.deepEqual(await storedTypes(page), ["openai.encrypted_content"]);
      }
      await page.requireStored();
    });

    test("the terminal event has the token usage of the run", async () => {
      const used = provider === "anthropic" ? { input_tokens: 12, output_tokens: 3 } : { prompt_tokens: 12, completion_tokens: 3 };
      const sentence = teach({ content: "Cheap.", usage: used });
      const { events } = await new Page(server, {}).say(sentence);
      const [{ model: name, ...usage }] = events.at(-1).usage;
      assert.deepEqual(usage, { provider: provider.split("-")[0], inputTokens: 12, outputTokens: 3, totalTokens: 15 });
    });

    test("cancelling a run ends the request to the provider", async () => {
      const [sentence, slowly] = [`slowly ${randomUUID()}`, { streamingProfile: { ttft: 0, tps: 50 } }];
      model.on({ predicate: (request) => asked(request, sentence) }, { content: "word ".repeat(5000) }, slowly);
      const page = new Page(server, {});
      await page.leaveAfter(3, sentence);
      const left = performance.now();
      const took = (await requests(sentence)[0].ended) - left;
      assert.ok(took < 5000, `${took} ms`);
    });

    test("a refusal by the provider ends the run with a code and without the key", async () => {
      const sentence = teach({ error: { message: `Incorrect API key provided: ${KEY}`, type: "auth" }, status: 401 });
      const { events, ...rest } = await new Page(server, {}).say(sentence);
      assert.deepEqual(outcome(rest), { finished: [], errors: ["model_unauthorized"] });
      assert.ok(!JSON.stringify(events).includes(KEY) && !server.log().includes(KEY));
    });
  });
}

test("the fake providers refuse what the real ones refuse", async (t) => {
  const [model, counting] = await Promise.all([startModel(), startCountingModel()]);
  t.after(() => Promise.all([model.stop(), counting.stop()]));
  const ask = (url, body) =>
    fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const tools = [{ type: "function", function: { name: "a.b", parameters: { type: "object" } } }];
  for (const { url } of [model, counting]) {
    const response = await ask(`${url}/v1/chat/completions`, { messages: [{ role: "user", content: "hi" }], tools });
    assert.equal(response.status, 400);
    assert.match(await response.text(), /tools\[0\]\.function\.name/);
  }
  assert.equal((await ask(`${counting.url}/v1/other`, {})).status, 400);
});
