// The model behind config/dojo.toml: it plays what the Rust example of the dojo plays. It tells its agents apart by their
// instructions, and refuses a request that lacks instructions, tools or the state.

import { readFile } from "node:fs/promises";

import { KEY, listen, startModel } from "./models.mjs";

/** The size of a delta: a word arrives in pieces. */
const CHUNK = 3;
export const SECRET = "the vault's door is open";

const text = (content) => ({ content });
const call = (name, args) => ({ toolCalls: [{ name, arguments: JSON.stringify(args) }] });
const range = (length, make) => Array.from({ length }, (_, index) => make(index));
const steps = (status) => range(10, (index) => ({ description: `Step ${index + 1}`, status }));

/** The conditions of an answer. */
class Turn {
  constructor({ messages, tools = [] }, body) {
    const of = (wanted) => messages.filter(({ role }) => role === wanted);
    this.instructions = of("system").map(({ content }) => content).join("\n");
    this.conversation = messages.filter(({ role }) => role !== "system");
    this.tools = tools.map(({ function: { name } }) => name);
    this.said = of("user").at(-1)?.content ?? "";
    this.body = body;
    const since = this.conversation.slice(this.conversation.findLastIndex(({ role }) => role === "user"));
    /** The results of the calls since the user's message. */
    this.results = since.filter(({ role }) => role === "tool").map(({ content }) => content);
  }

  get state() {
    const told = /The state that is shared with the application, as JSON:\n(.*)/.exec(this.instructions)?.[1];
    if (told === undefined) throw new Error("the model was not told the state");
    return JSON.parse(told);
  }

  offers(...names) {
    return names.every((name) => this.tools.includes(name));
  }
}

function countDown(turn) {
  const [result] = turn.results;
  if (result !== undefined) return text(result.includes("success") ? "background changed ✓" : "It is sunny in San Francisco.");
  if (turn.said === "tool" && turn.offers("change_background")) {
    return call("change_background", { background: "linear-gradient(135deg, #0f766e 0%, #7c3aed 100%)" });
  }
  if (turn.said === "backend_tool") return call("get_weather", { location: "San Francisco" });
  return text(`counting down: ${range(10, (index) => 10 - index).join("  ")}  ✓`);
}

function tellWeather(turn) {
  if (turn.results.length > 0) return text("Retrieved weather information!");
  const place = / in ([^?.!,]+)/.exec(turn.said)?.[1].replace(/ today$/, "") ?? "San Francisco";
  return call("get_weather", { location: place });
}

function proposeSteps(turn) {
  const [result] = turn.results;
  if (result === undefined && !turn.offers("generate_task_steps")) return text("Hello.");
  if (result === undefined) return call("generate_task_steps", { steps: steps("enabled") });
  const { accepted, steps: picked } = JSON.parse(result);
  if (!accepted) return text("All right, I leave it at that.");
  return text(`Ok! I get to work on the ${picked.length === 1 ? "one step" : `${picked.length} steps`} you picked.`);
}

function workThroughSteps(turn) {
  const done = turn.results.length;
  if (done === 0) return call("update_state", { state: { steps: steps("pending") } });
  const pending = turn.state.steps.findIndex(({ status }) => status === "pending");
  if (pending === -1) return text("All steps are completed.");
  if (pending !== done - 1) throw new Error(`the state has ${pending} completed steps after ${done} changes`);
  return call("update_state", { patch: [{ op: "replace", path: `/steps/${pending}/status`, value: "completed" }] });
}

function writeHaiku(turn) {
  if (turn.results.length > 0) return text("Haiku created");
  if (turn.said === "thanks") return text("You are welcome.");
  if (!turn.offers("generate_haiku")) return text("Before the dawn breaks, upon a glowing display a single road lies.");
  return call("generate_haiku", {
    japanese: ["夜明け前", "光る画面に", "道ひとつ"],
    english: ["Before the dawn breaks,", "upon a glowing display", "a single road lies."],
    image_name: "Mount_Fuji_Lake_Reflection_Cherry_Blossoms_Sakura_Spring.jpg",
    gradient: "linear-gradient(135deg, #1e3a8a 0%, #f9a8d4 100%)",
  });
}

/** Adds what the recipe lacks, as examples/dojo/shared_state.rs does. */
function improveRecipe(turn) {
  if (turn.results.length > 0) {
    if (turn.results[0] !== "The state was updated.") throw new Error(turn.results[0]);
    return text("I have added what was missing.");
  }
  const [chicken, chili, salt, lettuce] = [
    { icon: "🍗", name: "chicken breast", amount: "1" },
    { icon: "🌶️", name: "chili powder", amount: "1 tsp" },
    { icon: "🧂", name: "Salt", amount: "a pinch" },
    { icon: "🥬", name: "Lettuce leaves", amount: "handful" },
  ];
  const object = (value) => (value !== null && typeof value === "object" && !Array.isArray(value) ? value : {});
  const state = object(turn.state);
  const entered = object(state.recipe);
  const name = (item) => (item.name ?? item).toLowerCase();
  const extended = (list = [], more) => [...list, ...more.filter((item) => !list.some((known) => name(known) === name(item)))];
  const recipe = {
    title: "Chicken rolls",
    ...entered,
    skill_level: entered.skill_level || "Advanced",
    cooking_time: entered.cooking_time || "15 min",
    special_preferences: extended(entered.special_preferences, ["Low Carb", "Spicy"]),
    ingredients: extended(entered.ingredients, [chicken, chili, salt, lettuce]),
    instructions: extended(entered.instructions, ["Rub the chicken.", "Fry it.", "Roll it up."]).slice(0, 3),
  };
  return call("update_state", { state: { ...state, recipe } });
}

function writeDocument(turn) {
  const [result] = turn.results;
  if (result !== undefined) return text(`Ok! The document ${JSON.parse(result).accepted ? "is changed" : "stays as it was"}.`);
  if (!turn.offers("write_document")) return text("What is the document about?");
  const named = / named (.*)\.$/.exec(turn.said)?.[1];
  const dog = turn.state.document.includes("Rex") ? "Bella" : "Rex";
  const who = named === undefined ? `a dog called ${dog}` : `someone called ${named}`;
  const document = `There once was ${who}, who went out every morning to see what was new, and came home content.`;
  return call("write_document", { document });
}

function think(turn) {
  if (turn.body.reasoning?.summary !== "auto") throw new Error("no summary of the reasoning was asked for");
  const reasoning = "I was asked a question. I can show what reasoning looks like on this page, and then say so.";
  return { reasoning, content: "I thought about it in 2 sentences, which you can unfold above." };
}

function describeFiles({ body }) {
  const parts = body.input.findLast(({ role }) => role === "user").content;
  const files = (Array.isArray(parts) ? parts : []).flatMap(({ type, image_url, file_url }) => {
    const [, kind, data] = /^data:([^;]+);base64,(.*)$/.exec(image_url) ?? [];
    if (type === "input_image") return [`an image (${kind}, ${Buffer.from(data, "base64").length} bytes)`];
    return type === "input_file" ? [`a document (at ${file_url})`] : [];
  });
  return text(files.length === 0 ? "There is no file with your message." : `I got ${files.join(" and ")}.`);
}

function schedule(turn) {
  const [result] = turn.results;
  if (result === undefined) {
    const who = / with (.*?)(?: to | next |\.|$)/.exec(turn.said)?.[1] ?? "you";
    const schema = /with this schema: (\{.*\})\. If/.exec(turn.instructions)?.[1];
    const question = `When should I schedule the meeting with ${who}?`;
    return { content: "I need a time for this.", ...call("ask_user", { question, schema: JSON.parse(schema) }) };
  }
  const { chosen_label, chosen_time, approved } = result.startsWith("{") ? JSON.parse(result) : {};
  const time = chosen_label ?? chosen_time ?? (approved ? "tomorrow at ten" : undefined);
  if (time === undefined) return text("All right, I have not scheduled anything.");
  return text(`Done: the meeting is scheduled for ${time}.`);
}

function planTrip(turn) {
  if (turn.results.length === 0) {
    const task = `${turn.said} to Zürich`;
    const both = ["flights", "hotels"].flatMap((name) => call(name, { task }).toolCalls);
    return { content: "I ask two others at once.", toolCalls: both };
  }
  const found = turn.results.some((result) => result.includes("by the lake")) ? "and a hotel by the lake" : "but no hotel";
  return text(`There is a flight at nine, ${found}.`);
}

function superviseTrip(turn) {
  const operation = ([path, value]) => ({ op: "add", path, value });
  const change = (changes) => call("update_state", { patch: Object.entries(changes).map(operation) });
  const flight = { airline: "KLM", departure: "AMS", arrival: "SFO", duration: "11h 30m", price: "$650" };
  const hotel = { name: "Hotel Zephyr", location: "Fisherman's Wharf", price_per_night: "$280", rating: "4.2" };
  const experience = { name: "Pier 39", description: "A pier.", location: "San Francisco", type: "activity" };
  const script = [
    change({ "/active_agent": "flights" }),
    call("flights", { task: "Amsterdam to San Francisco" }),
    change({ "/flights": [flight], "/itinerary": { flight }, "/active_agent": "hotels" }),
    call("hotels", { task: "San Francisco" }),
    change({ "/hotels": [hotel], "/itinerary/hotel": hotel, "/active_agent": "experiences" }),
    call("experiences", { task: "San Francisco" }),
    change({ "/experiences": [experience], "/active_agent": "supervisor" }),
  ];
  return script[turn.results.length] ?? text("You fly with KLM and stay at Hotel Zephyr.");
}

const refused = (message, status) => ({ error: { message }, status });
const subagent = (found) => ({ said }) =>
  said.includes("fail") && found.includes("hotel") ? refused("The hotels did not answer.", 400) : text(found);

function fail(turn) {
  if (turn.said === "trigger error") return call("current_time", {});
  if (turn.said === "secret") return refused(SECRET, 500);
  return text("This sentence is going to end, unless the connection does.");
}

/** Draws with the tool of the page's catalog. */
function draw(turn) {
  if (turn.results.length > 0) return text("Here they are.");
  const components = [{ id: "root", component: "Text", text: "Hotel Zephyr" }];
  return call("render_a2ui", { surfaceId: "hotels", components });
}

/** By words of the instructions: the tools of the server that the model has to be offered, and the answers. */
const AGENTS = [
  [/friendly assistant.*change_background/s, ["get_weather"], countDown],
  [/tell people the weather/, ["get_weather"], tellWeather],
  [/generate_task_steps/, [], proposeSteps],
  [/replaces \/steps\/N\/status/, ["update_state"], workThroughSteps],
  [/write haikus/, [], writeHaiku],
  [/improve the recipe/, ["update_state"], improveRecipe],
  [/write and edit the document/, [], writeDocument],
  [/Think first/, [], think],
  [/describe the files/, [], describeFiles],
  [/schedule meetings/, ["ask_user"], schedule],
  [/plan trips/, ["flights", "hotels"], planTrip],
  [/supervise the planning/, ["flights", "hotels", "experiences", "update_state"], superviseTrip],
  [/You find flights/, [], subagent("I look for flights: there is one at nine.")],
  [/You find hotels/, [], subagent("I look for hotels: there is one by the lake.")],
  [/You find experiences/, [], subagent("Pier 39, an activity.")],
  [/how runs fail/, ["current_time"], fail],
  [/answer with an interface/, ["render_a2ui"], draw],
];

function answer(turn) {
  const agents = AGENTS.filter(([words]) => words.test(turn.instructions));
  if (agents.length !== 1) throw new Error(`${agents.length} agents have these instructions: ${turn.instructions}`);
  const [[, tools, play]] = agents;
  if (!turn.offers(...tools)) throw new Error(`the model is offered ${turn.tools.join()}, and not ${tools.join()}`);
  return play(turn);
}

/** The weather service of the configuration, in the form of wttr.in. */
function startWeatherService() {
  return listen((request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://x");
    const weather = { temp_C: "20", FeelsLikeC: "19", humidity: "60", windspeedKmph: "10", weatherDesc: [{ value: "sunny" }] };
    const isKnown = pathname.length > 1 && searchParams.get("format") === "j1";
    response.writeHead(isKnown ? 200 : 404, { "content-type": "application/json" });
    response.end(JSON.stringify({ current_condition: [weather] }));
  });
}

/** Starts the model and the weather service. `variables` lets a server use them in place of OpenAI and wttr.in. */
export async function startDojoModel() {
  const [model, weather] = await Promise.all([startModel(), startWeatherService()]);
  const faults = [];
  const respond = (request) => {
    // aimock leaves media out, so what was received last is looked at, too.
    const said = ({ input }) => JSON.stringify(input.findLast(({ role }) => role === "user")?.content ?? "");
    const turn = new Turn(request);
    turn.body = model.received.findLast(({ body }) => said(body).includes(JSON.stringify(turn.said).slice(1, -1))).body;
    try {
      return answer(turn);
    } catch (error) {
      faults.push(error.message);
      return refused(error.message, 400);
    }
  };
  const isCut = (request) => new Turn(request).said === "midway";
  // The wait lets each chunk leave before the connection is cut.
  model.on({ predicate: isCut }, respond, { chunkSize: 20, truncateAfterChunks: 9, latency: 1 });
  model.on({ predicate: (request) => !isCut(request) }, respond, { chunkSize: CHUNK });
  const config = await readFile(new URL("../../config/dojo.toml", import.meta.url), "utf8");
  const agents = [...config.matchAll(/^\[agents\.(\w+)\]$/gm)].map(([, name]) => name);
  const settings = agents.flatMap((agent) => {
    const prefix = `AGUI_AGENTS__${agent.toUpperCase()}__`;
    // OpenAI's own models are asked by this API; elsewhere it has to be named.
    return [[`${prefix}BASE_URL`, `${model.url}/v1`], [`${prefix}API`, "responses"], [`${prefix}MAX_RETRIES`, "0"]];
  });
  const url = weather.url + config.match(/^url = "https:\/\/wttr\.in(.*)"$/m)[1];
  return {
    faults,
    variables: { ...Object.fromEntries(settings), OPENAI_API_KEY: KEY, AGUI_TOOLS__GET_WEATHER__URL: url },
    stop: () => Promise.all([model.stop(), weather.stop()]),
  };
}
