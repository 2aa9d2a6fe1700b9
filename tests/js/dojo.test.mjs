// The dojo's features, on the example `dojo` in Rust and on config/dojo.toml, whose agents are configuration alone: each feature
// as the dojo's page uses it, including the second run if there is one. The expected events, tools, arguments and states are
// those of AG-UI's "Server Starter (All Features)".

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, afterEach, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { HttpAgent as OldHttpAgent } from "client-0-0-59";

import { SECRET, startDojoModel } from "./dojo-model.mjs";
import { asJson } from "./ids.mjs";
import { example } from "./server.mjs";
import { Page, entry, post, readThread, request, said, textOf, typesOf, useServer } from "./threads.mjs";

/** Factor for the example's pauses: the streams still arrive in pieces, in a hundredth of the time. */
const PACE = "0.01";

const CALL = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"];
const RESULT = "TOOL_CALL_RESULT";
const TEXT = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"];
const SUCCESS = { finished: ["success"], errors: [] };

/** The names of the features. The dojo has other names for two of them. */
const FEATURES = [
  "agentic_chat",
  "backend_tool_rendering",
  "human_in_the_loop",
  "agentic_generative_ui",
  "tool_based_generative_ui",
  "shared_state",
  "predictive_state_updates",
  "reasoning",
  "multimodal",
  "interrupt",
  "subagents",
  "error_flow",
  "agentic_chat_reasoning",
  "agentic_chat_multimodal",
];

/** Returns a tool that a page offers. */
const tool = (name) => ({ name, description: name, parameters: { type: "object" } });

/** Returns the event types of a run without RUN_STARTED, RUN_FINISHED and those that match, repeated types once. */
function typesWithout(pattern, { events }) {
  const types = typesOf(events);
  assert.equal(types[0], "RUN_STARTED");
  assert.equal(types.at(-1), "RUN_FINISHED");
  return types.slice(1, -1).filter((type) => !pattern.test(type)).filter((type, index, all) => type !== all[index - 1]);
}

/** The same without the steps and the hidden reasoning of a model. */
const inner = (seen) => typesWithout(/^(STEP|REASONING)_/, seen);
const stateTypes = (seen) => inner(seen).filter((type) => type.startsWith("STATE_"));

const outcome = ({ finished, errors }) => ({ finished, errors });
const of = (type, { events }) => events.filter((event) => event.type === type);
const rolesOf = (page) => page.messages.map(({ role }) => role).filter((role) => role !== "reasoning");
const callsOf = (page) => page.messages.flatMap(({ toolCalls }) => toolCalls ?? []);
const argumentsOf = (call) => JSON.parse(call.function.arguments);
const lastResult = (page) => page.messages.findLast(({ role }) => role === "tool");

/** Adds the result of a call and runs the agent again. */
function result(page, call, content, parameters) {
  page.addMessage({ id: randomUUID(), role: "tool", toolCallId: call.id, content: JSON.stringify(content) });
  return page.say(undefined, parameters);
}

function requireHaiku(call) {
  assert.equal(call.function.name, "generate_haiku");
  const { japanese, english } = argumentsOf(call);
  assert.deepEqual([japanese.length, english.length], [3, 3]);
}

describe("the example in Rust", () => {
  const server = useServer(() => ({ program: example("dojo"), args: ["0", PACE] }));
  testFeatures(server, false);
  testFailures(server);
});

describe("agents of a configuration", () => {
  let model;
  before(async () => void (model = await startDojoModel()));
  const config = fileURLToPath(new URL("../../config/dojo.toml", import.meta.url));
  const server = useServer(() => ({ config, variables: model.variables }));
  after(() => model.stop());
  afterEach(() => assert.deepEqual(model.faults.splice(0), [], "what the model lacked"));
  testFeatures(server, true);
  testConfigured(server);
});

/** @param {boolean} hasModel whether the agents have a model, which sends calls, results and texts of its own */
function testFeatures(server, hasModel) {
  /** Returns a page of the dojo with a feature. */
  const pageOf = (feature, options) => new Page(server, { url: `${server.url}/${feature}`, ...options });
  /** Returns what is expected of one of the servers. */
  const either = (ofExample, ofModel) => (hasModel ? ofModel : ofExample);

  test("agentic_chat counts down", async () => {
    const page = pageOf("agentic_chat");
    const seen = await page.say("Hey there");
    assert.deepEqual(inner(seen), TEXT);
    assert.deepEqual(outcome(seen), SUCCESS);
    assert.match(page.messages.at(-1).content, /^counting down:\s*10\s+9\s+8\s+7\s+6\s+5\s+4\s+3\s+2\s+1\s+\u2713$/);
    assert.ok(of("TEXT_MESSAGE_CONTENT", seen).length >= 12, "one delta a number");
    await page.requireStored();
  });

  test("agentic_chat calls the page's background tool and continues with its result", async () => {
    const page = pageOf("agentic_chat");
    const tools = [tool("change_background")];
    const seen = await page.say("tool", { tools });
    assert.deepEqual(inner(seen), CALL);
    const [call] = callsOf(page);
    assert.equal(call.function.name, "change_background");
    assert.match(argumentsOf(call).background, /^linear-gradient\(/);
    assert.deepEqual(seen.events.at(-1).outcome, { type: "success", pendingToolCallIds: [call.id] });
    const second = await result(page, call, { status: "success" }, { tools });
    assert.deepEqual(inner(second), TEXT);
    assert.equal(textOf(second.events), "background changed ✓");
    assert.deepEqual(rolesOf(page), ["user", "assistant", "tool", "assistant"]);
    await page.requireStored();
  });

  test("agentic_chat uses a tool of the agent", async () => {
    const page = pageOf("agentic_chat");
    assert.deepEqual(inner(await page.say("backend_tool")), either(["MESSAGES_SNAPSHOT"], [...CALL, RESULT, ...TEXT]));
    const [call] = callsOf(page);
    assert.equal(call.function.name, either("lookup_weather", "get_weather"));
    assert.ok(Object.values(argumentsOf(call)).includes("San Francisco"));
    assert.equal(lastResult(page).toolCallId, call.id);
    await page.requireStored();
  });

  test("backend_tool_rendering shows the weather of several cities", async () => {
    const page = pageOf("backend_tool_rendering");
    const cities = {
      "What's the weather like in San Francisco?": "San Francisco",
      "Tell me about the weather in New York.": "New York",
      "How's the weather in Tokyo today?": "Tokyo",
      "And now?": "San Francisco",
    };
    for (const [question, city] of Object.entries(cities)) {
      const seen = await page.say(question);
      assert.deepEqual(inner(seen), either(["MESSAGES_SNAPSHOT"], [...CALL, RESULT, ...TEXT]));
      assert.deepEqual(outcome(seen), SUCCESS);
      const call = callsOf(page).at(-1);
      assert.equal(call.function.name, "get_weather");
      assert.equal(argumentsOf(call).location, city);
      const { toolCallId, content } = lastResult(page);
      assert.equal(toolCallId, call.id);
      const { conditions, wind_speed, temperature, humidity } = JSON.parse(content);
      assert.deepEqual([conditions, wind_speed, temperature, humidity], ["sunny", "10", "20", "60"]);
    }
    assert.equal(callsOf(page).length, 4, "earlier calls stay");
    if (!hasModel) await page.say(undefined);
    assert.equal(page.messages.at(-1).content, "Retrieved weather information!");
    await page.requireStored();
  });

  for (const [what, answer, says] of [
    ["all", (steps) => ({ accepted: true, steps }), "Ok! I get to work on the 10 steps you picked."],
    ["one", (steps) => ({ accepted: true, steps: steps.slice(3, 4) }), "Ok! I get to work on the one step you picked."],
    ["none", () => ({ accepted: false }), "All right, I leave it at that."],
  ]) {
    test(`human_in_the_loop proposes steps, and the user accepts ${what}`, async () => {
      const page = pageOf("human_in_the_loop");
      const tools = [tool("generate_task_steps")];
      const seen = await page.say("Hi", { tools });
      assert.deepEqual(inner(seen), CALL);
      assert.ok(of("TOOL_CALL_ARGS", seen).length >= 12, "one delta a step");
      const [call] = callsOf(page);
      assert.equal(call.function.name, "generate_task_steps");
      const { steps } = argumentsOf(call);
      assert.deepEqual(steps.length, 10);
      assert.deepEqual(steps[9], { description: "Step 10", status: "enabled" });
      assert.deepEqual(seen.events.at(-1).outcome.pendingToolCallIds, [call.id]);

      const second = await result(page, call, answer(steps), { tools });
      assert.deepEqual(inner(second), TEXT);
      assert.deepEqual(outcome(second), SUCCESS);
      assert.equal(page.messages.at(-1).content, says);
      assert.deepEqual(rolesOf(page), ["user", "assistant", "tool", "assistant"]);
      await page.requireStored();
    });
  }

  test("agentic_generative_ui completes its steps in the state one by one", async () => {
    const page = pageOf("agentic_generative_ui");
    const progress = [];
    const count = ({ state }) => void progress.push(state.steps.filter(({ status }) => status === "completed").length);
    const { unsubscribe } = page.subscribe({ onStateChanged: count });
    const seen = await page.say("Please build a plan to go to mars in 5 steps.");
    unsubscribe();
    assert.deepEqual(stateTypes(seen).slice(0, 2), ["STATE_SNAPSHOT", "STATE_DELTA"]);
    assert.deepEqual(outcome(seen), SUCCESS);
    assert.deepEqual(of("STATE_DELTA", seen).map(({ delta }) => delta), Array.from({ length: 10 }, (_, index) => [
      { op: "replace", path: `/steps/${index}/status`, value: "completed" },
    ]));
    assert.deepEqual(of("STATE_SNAPSHOT", seen)[0].snapshot.steps[0], { description: "Step 1", status: "pending" });
    const steps = Array.from({ length: 10 }, (_, index) => ({ description: `Step ${index + 1}`, status: "completed" }));
    assert.deepEqual(page.state, { steps });
    assert.deepEqual([...new Set(progress)], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "the page received each state");
    await page.requireStored();
  });

  test("tool_based_generative_ui leaves the haiku to a page that offers the tool", async () => {
    const page = pageOf("tool_based_generative_ui");
    const tools = [tool("generate_haiku")];
    for (const wish of ['Generate Haiku for "I will always win"', 'Generate Haiku for "The moon shines bright"']) {
      const seen = await page.say(wish, { tools });
      assert.deepEqual(inner(seen), CALL);
      assert.ok(of("TOOL_CALL_ARGS", seen).length > 3, "the haiku arrives in several deltas");
      const call = callsOf(page).at(-1);
      requireHaiku(call);
      assert.deepEqual(seen.events.at(-1).outcome.pendingToolCallIds, [call.id]);
      const second = await result(page, call, "Haiku generated!", { tools });
      assert.equal(textOf(second.events), "Haiku created");
    }
    await page.requireStored();
  });

  test("tool_based_generative_ui responds to a page that does not offer the tool", async () => {
    const page = pageOf("tool_based_generative_ui");
    assert.deepEqual(inner(await page.say("Generate a haiku")), either(["MESSAGES_SNAPSHOT"], TEXT));
    if (!hasModel) {
      const [call] = callsOf(page);
      requireHaiku(call);
      const { toolCallId, content } = page.messages.at(-1);
      assert.deepEqual({ toolCallId, content }, { toolCallId: call.id, content: "Haiku created" });
    }
    assert.deepEqual(inner(await page.say("thanks")), either(["MESSAGES_SNAPSHOT"], TEXT));
    const answer = either(["assistant", "tool"], ["assistant"]);
    assert.deepEqual(rolesOf(page), ["user", ...answer, "user", "assistant"]);
    assert.equal(page.messages.at(-1).content, either("Haiku created", "You are welcome."));
    await page.requireStored();
  });

  test("shared_state: the agent adds to the recipe, and what the user entered stays", async () => {
    const ingredients = [{ icon: "🥕", name: "Carrots", amount: "3 large, grated" }];
    const instructions = ["Preheat oven to 350°F (175°C)"];
    const recipe = {
      title: "Make Your Recipe",
      skill_level: "Intermediate",
      cooking_time: "",
      special_preferences: ["Spicy"],
      ingredients,
      instructions,
    };
    const page = pageOf("shared_state", { initialState: { recipe, theme: "dark" } });
    const first = await page.say("Please give me a recipe");
    assert.deepEqual(stateTypes(first), ["STATE_SNAPSHOT"]);
    assert.deepEqual(outcome(first), SUCCESS);
    const written = page.state.recipe;
    const names = written.ingredients.map(({ name }) => name);
    assert.deepEqual(names, ["Carrots", "chicken breast", "chili powder", "Salt", "Lettuce leaves"]);
    assert.deepEqual([written.instructions[0], written.instructions.length], [instructions[0], 3], "the dojo's suite counts three");
    assert.deepEqual(written.special_preferences, ["Spicy", "Low Carb"]);
    assert.deepEqual([written.title, written.skill_level, written.cooking_time], ["Make Your Recipe", "Intermediate", "15 min"]);
    assert.equal(page.state.theme, "dark");
    await page.requireStored();

    // The user edits the agent's recipe.
    const potatoes = { icon: "🍴", name: "Potatoes", amount: "12" };
    const salt = { icon: "🧂", name: "salt", amount: "a lot" };
    const edited = { ...written, title: "Supper", skill_level: "Beginner", ingredients: [potatoes, salt], instructions: ["Boil."] };
    page.setState({ ...page.state, recipe: edited });
    await page.say("Give me all the ingredients");
    const { title, skill_level, ingredients: all, instructions: steps } = page.state.recipe;
    assert.deepEqual([title, skill_level, steps[0]], ["Supper", "Beginner", "Boil."]);
    assert.deepEqual(all.slice(0, 2), [potatoes, salt]);
    assert.deepEqual(all.slice(2).map(({ name }) => name), ["chicken breast", "chili powder", "Lettuce leaves"]);
    await page.requireStored();
  });

  for (const state of [null, "text", [], { recipe: 5 }]) {
    test(`shared_state makes a recipe from the state ${JSON.stringify(state)}`, async () => {
      const input = { threadId: randomUUID(), state, messages: [said("Please give me a recipe")] };
      const [{ snapshot }] = of("STATE_SNAPSHOT", await post(server, input, { path: "/shared_state" }));
      assert.equal(snapshot.recipe.ingredients.length, 4);
    });
  }

  test("predictive_state_updates writes a document, which the page shows early, and the user confirms", async () => {
    const page = pageOf("predictive_state_updates", { initialState: { document: "" } });
    const tools = [tool("write_document"), tool("confirm_changes")];
    const documents = [];
    const wishes = [["Write a story", true], ["Update the story", false], ['A story of one named "B\\C".', true]];
    for (const [wish, accepted] of wishes) {
      const before = asJson(page.state);
      const seen = await page.say(wish, { tools });
      const types = typesWithout(/^(STEP|REASONING|STATE)_/, seen);
      assert.deepEqual(types, either(["CUSTOM", ...CALL, ...CALL], ["CUSTOM", ...CALL]));
      const [{ name, value }] = of("CUSTOM", seen);
      assert.equal(name, "PredictState");
      const [write, confirm = write] = callsOf(page).slice(either(-2, -1));
      assert.deepEqual(write.function.name, either("write_document_local", "write_document"));
      assert.deepEqual(value, [{ state_key: "document", tool: write.function.name, tool_argument: "document" }]);
      assert.deepEqual(confirm.function.name, either("confirm_changes", "write_document"));
      assert.ok(of("TOOL_CALL_ARGS", seen).length > 20, "one delta a word");
      const { document } = argumentsOf(write);
      documents.push(document);
      // Agents with a model also move the state, for pages that predict nothing.
      assert.deepEqual(page.state, either(before, { document }));
      assert.equal(of("STATE_DELTA", seen).length > 3, hasModel);

      // The page does this when the user has decided.
      if (!accepted) page.setState(before);
      const second = await result(page, confirm, { accepted }, { tools });
      assert.deepEqual(inner(second), either(accepted ? ["STATE_SNAPSHOT", ...TEXT] : TEXT, TEXT));
      assert.match(page.messages.at(-1).content, /^Ok!/);
      assert.deepEqual(page.state, accepted ? { document } : before);
      await page.requireStored();
    }
    assert.notEqual(documents[0], documents[1], "the two documents differ");
    assert.ok(documents[2].includes('called "B\\C"'), documents[2]);
  });

  for (const path of ["reasoning", "agentic_chat_reasoning"]) {
    test(`${path} sends reasoning, then text`, async () => {
      const page = pageOf(path, { initialState: { model: "Gemini" } });
      const seen = await page.say("Why is the sky blue?");
      const kind = (type) => `REASONING_${type}`;
      const thinking = ["START", "MESSAGE_START", "MESSAGE_CONTENT", "MESSAGE_END", "END"].map(kind);
      assert.deepEqual(typesWithout(/^STEP_|_ENCRYPTED_VALUE$/, seen), [...thinking, ...TEXT]);
      assert.deepEqual(outcome(seen), SUCCESS);
      assert.deepEqual(page.messages.map(({ role }) => role), ["user", "reasoning", "assistant"]);
      assert.match(page.messages[1].content, /^I was asked a question\. .* and then say so\.$/);
      assert.match(page.messages[2].content, either(/^You picked Gemini, /, /^I thought about it/));
      await page.requireStored();
    });
  }

  for (const path of ["multimodal", "agentic_chat_multimodal"]) {
    test(`${path} describes the attachments of the message`, async () => {
      const page = pageOf(path);
      await page.say("Describe what you see in the image I upload.");
      assert.match(page.messages.at(-1).content, /^There is no file/);
      const image = { type: "image", source: { type: "data", value: "iVBORw0KGgo=", mimeType: "image/png" } };
      const url = { type: "url", value: "https://example.com/a.pdf", mimeType: "application/pdf" };
      const seen = await page.say([{ type: "text", text: "And now?" }, image, { type: "document", source: url }]);
      assert.deepEqual(inner(seen), TEXT);
      const says = "I got an image (image/png, 8 bytes) and a document (at https://example.com/a.pdf).";
      assert.equal(page.messages.at(-1).content, says);
      await page.requireStored();
    });
  }

  for (const [what, answer, told, says] of [
    ["a time", { chosen_time: "2026-12-01T10:00:00Z", chosen_label: "Tue, 10:00" }, "scheduled for Tue, 10:00", /Tue, 10:00\.$/],
    ["a time without a label", { chosen_time: "2026-12-01T10:00:00Z" }, "scheduled for 2026-12-01T10:00:00Z", /^Done/],
    ["a yes", { approved: true }, "scheduled for tomorrow at ten", /^Done/],
    ["a no", { approved: false }, "declined", /^All right/],
    ["the dojo's Cancel", { cancelled: true }, "declined", /^All right/],
    ["a cancelled interrupt", "cancelled", "declined", /^All right/],
  ]) {
    test(`interrupt asks for a time and continues with ${what}`, async () => {
      const page = pageOf("interrupt");
      const seen = await page.say("Schedule a 1:1 with Alice next week to review Q2 goals.");
      assert.deepEqual(outcome(seen), { finished: ["interrupt"], errors: [] });
      const types = inner(seen).filter((type) => !type.endsWith("_SNAPSHOT"));
      assert.deepEqual(types, [...TEXT, ...CALL]);
      const [call] = callsOf(page);
      assert.equal(call.function.name, either("schedule_meeting", "ask_user"));
      const [interrupt] = page.pendingInterrupts;
      assert.deepEqual([interrupt.reason, interrupt.toolCallId], [either("tool_call", "input_required"), call.id]);
      assert.equal(interrupt.message, "When should I schedule the meeting with Alice?");
      await page.requireStored();

      const second = await page.answer(answer);
      assert.deepEqual(inner(second), ["TOOL_CALL_RESULT", ...TEXT]);
      const [{ toolCallId, content }] = of("TOOL_CALL_RESULT", second);
      assert.equal(toolCallId, call.id);
      if (!hasModel) assert.equal(content, told);
      else if (answer !== "cancelled") assert.deepEqual(JSON.parse(content), answer);
      assert.match(textOf(second.events), says);
      assert.deepEqual(outcome(second), SUCCESS);
      assert.deepEqual(page.pendingInterrupts, []);
      assert.deepEqual(rolesOf(page), ["user", "assistant", "tool", "assistant"]);
      await page.requireStored();
    });
  }

  test("interrupt takes an answer that the page also adds as the call's result, as CopilotKit does", async () => {
    const page = pageOf("interrupt");
    await page.say("Schedule a 1:1 with Alice next week to review Q2 goals.");
    const [{ id, toolCallId }] = page.pendingInterrupts;
    const chosen = { chosen_time: "2026-12-01T10:00:00Z", chosen_label: "Tue, 10:00" };
    const second = await result(page, { id: toolCallId }, chosen, { resume: [entry(id, chosen)] });
    assert.deepEqual(inner(second), ["MESSAGES_SNAPSHOT", RESULT, ...TEXT]);
    assert.match(textOf(second.events), /scheduled for Tue, 10:00\.$/);
    assert.deepEqual(page.pendingInterrupts, []);
    // The copy is left out: a reply is not a result.
    assert.deepEqual(rolesOf(page), ["user", "assistant", "tool", "assistant"]);
    await page.requireStored();
  });

  test("interrupt refuses an empty answer and stays open", async () => {
    const page = pageOf("interrupt");
    await page.say("Book an intro call with the sales team to discuss pricing.");
    const open = structuredClone(page.pendingInterrupts);
    assert.match(open[0].message, /with the sales team\?$/);
    const { errors } = await page.answer({});
    assert.deepEqual(errors, ["invalid_resume_payload"]);
    assert.deepEqual(page.pendingInterrupts, open);
    assert.deepEqual(outcome(await page.answer({ approved: true })), SUCCESS);
  });

  for (const fails of [false, true]) {
    test(`subagents run at the same time${fails ? ", and one fails" : ""}`, async () => {
      const page = pageOf("subagents");
      const seen = await page.say(fails ? "Please fail to find a hotel" : "Plan a trip");
      assert.deepEqual(outcome(seen), SUCCESS);
      const started = of("SUBAGENT_STARTED", seen);
      assert.deepEqual(started.map(({ name }) => name), ["flights", "hotels"]);
      const [flights, hotels] = started.map(({ subagentRunId }) => subagentRunId);
      assert.deepEqual(started.map(({ parentToolCallId }) => parentToolCallId), callsOf(page).map(({ id }) => id));
      const isEnd = ({ type }) => /^SUBAGENT_(FINISHED|ERROR)$/.test(type);
      const endOf = (id) => seen.events.findIndex((event) => isEnd(event) && event.subagentRunId === id);
      const ends = [flights, hotels].map((id) => seen.events[endOf(id)].type);
      assert.deepEqual(ends, ["SUBAGENT_FINISHED", fails ? "SUBAGENT_ERROR" : "SUBAGENT_FINISHED"]);
      const lastStart = seen.events.findLastIndex(({ type }) => type === "SUBAGENT_STARTED");
      assert.ok([flights, hotels].every((id) => endOf(id) > lastStart), "both are at work at the same time");
      if (!hasModel) {
        const words = of("TEXT_MESSAGE_CONTENT", seen).flatMap(({ subagentRunId }) => subagentRunId ?? []);
        assert.deepEqual(words, [flights, hotels, flights, hotels, flights, hotels], "their deltas interleave");
      }
      const texts = page.messages.filter(({ role }) => role === "assistant");
      const own = (id) => texts.filter(({ subagentRunId }) => subagentRunId === id).map(({ content }) => content);
      assert.deepEqual(own(flights), ["I look for flights: there is one at nine."]);
      assert.deepEqual(own(hotels), fails && hasModel ? [] : ["I look for hotels: there is one by the lake."]);
      const results = callsOf(page).map(({ id }) => page.messages.find(({ toolCallId }) => toolCallId === id).content);
      assert.match(results[0], /at nine/);
      assert.match(results[1], fails ? /^Error: / : /by the lake/);
      const found = fails ? "but no hotel." : "and a hotel by the lake.";
      assert.equal(page.messages.at(-1).content, `There is a flight at nine, ${found}`);
      await page.requireStored();
    });
  }

  // The dojo's pages use CopilotKit with a client from before 1.0.
  for (const [feature, says] of [
    ["agentic_chat", /^counting down: .*✓$/],
    ["backend_tool_rendering", either(/"conditions":"sunny"/, /^Retrieved/)],
    ["human_in_the_loop", undefined],
    ["agentic_generative_ui", undefined],
    ["tool_based_generative_ui", either(/^Haiku created$/, /a single road lies\.$/)],
    ["shared_state", undefined],
    ["predictive_state_updates", undefined],
    ["reasoning", /sentences, which you can unfold above\.$/],
    ["multimodal", /^There is no file/],
    ["subagents", /^There is a flight at nine/],
  ]) {
    test(`${feature} works with a client from before AG-UI 1.0`, async () => {
      const page = new OldHttpAgent({ url: `${server.url}/${feature}`, threadId: randomUUID() });
      page.addMessage(said("Hi"));
      const finished = [];
      await page.runAgent({}, { onRunFinishedEvent: ({ event }) => void finished.push(event.type) });
      assert.deepEqual(finished, ["RUN_FINISHED"]);
      const stored = await readThread(server, page.threadId);
      const shown = ({ role, content, toolCalls }) => asJson({ role, content, toolCalls });
      assert.deepEqual(page.messages.map(shown), stored.messages.map(shown));
      assert.deepEqual(asJson(page.state), stored.state);
      if (says) assert.match(page.messages.at(-1).content, says);
    });
  }

  test("every feature responds at its own path and under its name, to pages of this machine", async () => {
    const { body } = await request(server, "GET", "/agents");
    const names = body.agents.map(({ name }) => name);
    assert.deepEqual(FEATURES.filter((name) => !names.includes(name)), []);
    for (const name of FEATURES) {
      const preflight = await fetch(`${server.url}/${name}`, {
        method: "OPTIONS",
        headers: { Origin: "http://localhost:3000", "Access-Control-Request-Method": "POST" },
      });
      assert.equal(preflight.headers.get("access-control-allow-origin"), "http://localhost:3000", name);
      const typesAt = async (path) => {
        const input = { threadId: randomUUID(), messages: [said("Hi")] };
        // Subagents of a model interleave as they come.
        return typesOf((await post(server, input, { path })).events).sort();
      };
      assert.deepEqual(await typesAt(`/${name}`), await typesAt(`/agents/${name}/send-message`), name);
    }
  });
}

function testFailures(server) {
  const pageOf = (feature) => new Page(server, { url: `${server.url}/${feature}` });

  for (const [wish, types, code, message] of [
    ["trigger error", ["RUN_STARTED", "RUN_ERROR"], "dojo_error", "This run was asked to fail, and did."],
    ["midway", ["RUN_STARTED", ...TEXT, "RUN_ERROR"], "dojo_error", "This run was asked to fail, and did."],
    ["secret", ["RUN_STARTED", "RUN_ERROR"], "agent_error", "the agent failed"],
    ["panic", ["RUN_STARTED", "RUN_ERROR"], "agent_panic", "the agent failed unexpectedly"],
  ]) {
    test(`error_flow with "${wish}" ends with one error, and the next run works`, async () => {
      const page = pageOf("error_flow");
      for (const expected of [wish, wish]) {
        const { events, errors } = await page.say(expected);
        assert.deepEqual(typesOf(events), types);
        assert.deepEqual(errors, [code]);
        assert.equal(events.at(-1).message, message);
      }
      const { runs } = await readThread(server, page.threadId);
      assert.deepEqual(runs.map(({ status }) => status), ["failed", "failed"]);
      if (wish === "secret") assert.match(server.log(), /the vault's door is open/, "the log contains the error");
    });
  }
}

function testConfigured(server) {
  const pageOf = (feature, options) => new Page(server, { url: `${server.url}/${feature}`, ...options });

  // The model fails here, not the agent.
  for (const [wish, code, types] of [
    ["trigger error", "max_steps", [...CALL, RESULT]],
    ["midway", "model_interrupted", TEXT],
    ["secret", "model_unavailable", []],
  ]) {
    test(`error_flow with "${wish}" ends with one error, and the next run works`, async () => {
      const page = pageOf("error_flow");
      const { events, errors } = await page.say(wish);
      assert.deepEqual(errors, [code]);
      const inside = typesOf(events).filter((type, index, all) => !/^(STEP|REASONING)_/.test(type) && type !== all[index - 1]);
      assert.deepEqual(inside, ["RUN_STARTED", ...types, "RUN_ERROR"]);
      assert.ok(!events.at(-1).message.includes(SECRET), events.at(-1).message);
      if (wish === "secret") assert.ok(server.log().includes(SECRET), "the log contains the error");
      assert.deepEqual(outcome(await page.say("And now?")), SUCCESS);
      const { runs } = await readThread(server, page.threadId);
      assert.deepEqual(runs.map(({ status }) => status).sort(), ["failed", "finished"]);
    });
  }

  test("subgraphs: subagents fill the itinerary of a page that does not know their events", async () => {
    const start = { itinerary: {}, experiences: [], flights: [], hotels: [], planning_step: "start", active_agent: "supervisor" };
    const page = new OldHttpAgent({ url: `${server.url}/subgraphs`, threadId: randomUUID(), initialState: start });
    page.addMessage(said("Plan a trip to San Francisco."));
    const [active, types] = [[], new Set()];
    await page.runAgent({}, {
      onEvent: ({ event }) => void types.add(event.type),
      onStateChanged: ({ state }) => void active.push(state.active_agent),
    });
    assert.deepEqual([...types].filter((type) => type.startsWith("SUBAGENT_") || type === "RUN_ERROR"), []);
    const changes = active.filter((agent, index) => agent !== active[index - 1]);
    assert.deepEqual(changes, ["flights", "hotels", "experiences", "supervisor"]);
    const { itinerary, flights, hotels, experiences } = page.state;
    assert.deepEqual([itinerary.flight.airline, itinerary.hotel.name], ["KLM", "Hotel Zephyr"]);
    assert.deepEqual([flights, hotels, experiences].map((found) => found.length), [1, 1, 1]);
    assert.deepEqual((await readThread(server, page.threadId)).state, asJson(page.state));
  });

  test("a2ui_dynamic_schema draws a surface", async () => {
    const page = pageOf("a2ui_dynamic_schema");
    const seen = await page.say("Compare hotels.");
    assert.deepEqual(outcome(seen), SUCCESS);
    const { activityType, content } = page.messages.find(({ role }) => role === "activity");
    assert.equal(activityType, "a2ui-surface");
    assert.match(JSON.stringify(content.a2ui_operations), /Hotel Zephyr/);
    await page.requireStored();
  });
}
