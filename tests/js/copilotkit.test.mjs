// @copilotkit/core with this server as its runtime, without a Node runtime in between.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { ɵcreateThreadStore as createThreadStore } from "@copilotkit/core";
import { z } from "zod";

import { Tab, useTabs } from "./copilotkit.mjs";
import { asJson } from "./ids.mjs";
import { restartableServer } from "./restart.mjs";
import { problemsOfCapabilities } from "./strict.mjs";
import { countTo, entry, readThread, request, textOf, typesOf, useServer } from "./threads.mjs";

const server = useServer();
useTabs();

const COUNT = 40;
const SLOW = `count to ${COUNT}`;
/** A run that is cancelled. */
const LONG = "count to 200";
const RESTATED = ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"];
/** The two transports of the core. */
const TRANSPORTS = { rest: "auto", single: "single" };

const statuses = ({ runs }) => runs.map(({ status }) => status);

/** Returns what a page notes for a message: its run, and the state of that run. */
function placeOf({ core, threadId }, message) {
  const run = core.getRunIdForMessage("demo", threadId, message);
  return { run, state: run && core.getStateByRun("demo", threadId, run) };
}

/** Polls the thread until no run is active, for at most 10 s. */
async function ended(threadId, of = server) {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const stored = await readThread(of, threadId);
    if (stored.activeRunId === undefined) return stored;
    assert.ok(Date.now() < deadline, `run ${stored.activeRunId} has not ended within 10 s`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

test("/info lists the agents and the features of the runtime", async () => {
  const { core, requests } = await Tab.open(server);
  assert.equal(core.runtimeConnectionStatus, "connected");
  assert.deepEqual(Object.keys(core.agents), ["demo", "default"]);
  assert.deepEqual(requests.map(({ method, path }) => `${method} ${path}`), ["GET /copilotkit/info"]);
  assert.equal(core.runtimeMode, "sse");
  const offered = { list: true, inspect: true, mutations: true, realtimeMetadata: true };
  assert.deepEqual(core.threadEndpoints, offered);
  const { body: capabilities } = await request(server, "GET", "/agents/demo/capabilities");
  for (const agent of Object.values(core.agents)) {
    assert.deepEqual(await agent.getCapabilities(), capabilities);
    assert.deepEqual(problemsOfCapabilities(await agent.getCapabilities()), []);
    assert.match(agent.description, /^A demo that needs no model/);
  }
});

for (const [name, runtimeTransport] of Object.entries(TRANSPORTS)) {
  const open = (options) => Tab.open(server, { runtimeTransport, ...options });

  test(`${name}: a run streams to its end and is stored`, async () => {
    const tab = await open();
    await tab.comeBack();
    await tab.say("plan a trip");
    await tab.say("What's the weather like in Beijing today?");
    const stored = await tab.requireStored();
    assert.deepEqual(statuses(stored), ["finished", "finished"]);
    assert.equal(tab.agent.state.finished, true);
    const paths = new Set(tab.requests.map(({ path }) => path));
    const agent = "/copilotkit/agent/demo";
    const expected = name === "rest" ? ["/copilotkit/info", `${agent}/connect`, `${agent}/run`] : ["/copilotkit"];
    assert.deepEqual([...paths], expected);
  });

  test(`${name}: suggestions run without a stored thread`, async () => {
    const tab = await open();
    assert.equal(tab.core.suggestions, true);
    await tab.say("Hello");
    const { body: before } = await request(server, "GET", "/threads?limit=200");
    const finished = new Promise((onSuggestionsFinishedLoading) => tab.core.subscribe({ onSuggestionsFinishedLoading }));
    tab.core.addSuggestionsConfig({ instructions: "Suggest something.", providerAgentId: "demo", consumerAgentId: "demo" });
    tab.core.reloadSuggestions("demo");
    await finished;
    const suggested = tab.requests.filter(({ body }) => body?.includes("copilotkitSuggest"));
    assert.equal(suggested.length, 1);
    const { body: after } = await request(server, "GET", "/threads?limit=200");
    assert.equal(after.threads.length, before.threads.length);
  });

  test(`${name}: connect to a new thread succeeds without messages`, async () => {
    const tab = await open();
    await tab.comeBack();
    assert.deepEqual(tab.events, []);
    assert.deepEqual(tab.agent.messages, []);
    assert.equal(tab.agent.isRunning, false);
  });

  test(`${name}: a page without an agent name uses the default agent`, async () => {
    const tab = await open({ agentId: "default" });
    await tab.say("Hello");
    const stored = await tab.requireStored();
    assert.equal(stored.agent, "demo");
  });

  test(`${name}: after a reload the history is restored and the conversation continues`, async () => {
    const before = await open();
    await before.say("plan a trip");
    before.close();
    const after = await open({ threadId: before.threadId });
    await after.comeBack();
    assert.deepEqual(typesOf(after.events), [...RESTATED, "RUN_FINISHED"]);
    assert.deepEqual(after.agent.messages, before.agent.messages);
    assert.deepEqual(after.agent.state, before.agent.state);
    await after.say("Hello");
    const stored = await after.requireStored();
    assert.equal(stored.runs.length, 2, "connect does not create a run");
  });

  test(`${name}: after a reload each message has the state of its run`, async () => {
    const before = await open();
    for (const said of ["plan a trip", "Hello", "What's the weather like in Beijing today?", "plan a party"]) {
      await before.say(said);
    }
    const heard = before.events.filter(({ type }) => type === "TEXT_MESSAGE_CONTENT").length;
    const running = before.say(SLOW);
    await before.heard(heard + 3);
    before.close();
    await running;
    const after = await open({ threadId: before.threadId });
    await after.comeBack();
    const stored = await after.requireStored();
    assert.deepEqual(after.agent.messages.slice(0, -1), before.agent.messages.slice(0, -1), "order and content");
    assert.equal(after.agent.messages.at(-1).content, countTo(COUNT));
    const places = after.agent.messages.map(({ id }) => placeOf(after, id));
    const live = before.agent.messages.map(({ id }) => placeOf(before, id));
    for (const [index, place] of live.entries()) if (place.run) assert.deepEqual(places[index], place);
    const started = stored.runs.map(({ runId }) => runId).reverse();
    assert.deepEqual(places.map(({ run }) => started.indexOf(run)), [0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4]);
    assert.deepEqual(places.map(({ state }) => state.goal), [...Array(9).fill("a trip"), ...Array(5).fill("a party")]);
    const known = after.core.getRunIdsForThread("demo", after.threadId);
    assert.deepEqual(known, started, "the page takes the last one for messages of no run");
  });

  test(`${name}: a reload during a run shows the history and the rest of the run`, async () => {
    const before = await open();
    await before.say("Hello");
    const first = before.events.length;
    const running = before.say(SLOW);
    await before.heard(3);
    before.close();
    await running;
    assert.ok(textOf(before.events.slice(first)).length < countTo(COUNT).length, "the first tab received only a part");

    const after = await open({ threadId: before.threadId });
    await after.comeBack();
    const restated = typesOf(after.events).filter((type) => !type.startsWith("TEXT_MESSAGE_"));
    assert.deepEqual(restated, [...RESTATED, "RUN_FINISHED", "RUN_STARTED", "RUN_FINISHED"]);
    assert.equal(textOf(after.events), countTo(COUNT));
    assert.equal(after.agent.messages.at(-1).content, countTo(COUNT));
    assert.deepEqual(after.agent.messages.slice(0, 3), before.agent.messages.slice(0, 3));
    const stored = await after.requireStored();
    assert.deepEqual(statuses(stored), ["finished", "finished"]);
  });

  test(`${name}: stop ends the run on the server`, async () => {
    const tab = await open();
    const running = tab.say(LONG);
    await tab.heard(3);
    tab.core.stopAgent({ agent: tab.agent });
    await running;
    assert.equal(tab.events.at(-1).type, "RUN_FINISHED");
    assert.equal(tab.agent.isRunning, false);
    const stored = await tab.requireStored();
    assert.deepEqual(statuses(stored), ["cancelled"]);
    assert.notEqual(stored.messages.at(-1).content, countTo(200));
    const stop = JSON.parse(tab.requests.at(-1).body);
    assert.equal((stop.body ?? stop).runId, tab.events[0].runId, "the client names the run");
    await tab.say("Hello");
    assert.deepEqual(statuses(await tab.requireStored()), ["finished", "cancelled"]);
  });

  test(`${name}: a reloaded page can stop the run`, async () => {
    const before = await open();
    const running = before.say(LONG);
    await before.heard(2);
    before.close();
    const after = await open({ threadId: before.threadId });
    const coming = after.comeBack();
    await after.heard(3);
    after.core.stopAgent({ agent: after.agent });
    await Promise.all([running, coming]);
    assert.equal(after.events.at(-1).type, "RUN_FINISHED");
    assert.deepEqual(statuses(await after.requireStored()), ["cancelled"]);
  });

  test(`${name}: a tool of the page is called, and the agent gets its result`, async () => {
    const asked = [];
    const handler = async (parameters) => (asked.push(parameters), ["a.txt", "b.txt"]);
    const parameters = z.object({ keyword: z.string() });
    const tools = [{ name: "search_local_files", description: "Searches files", parameters, handler }];
    const tab = await open({ tools });
    await tab.say("search for report files locally");
    assert.deepEqual(asked, [{ keyword: "report" }]);
    assert.deepEqual(tab.agent.messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
    assert.equal(tab.agent.messages.at(-1).content, "Found 2 files: a.txt and b.txt");
    await tab.requireStored();
  });

  test(`${name}: an answer may have the runId of the run that raised the interrupt`, async () => {
    const tab = await open();
    await tab.say("approve");
    const [{ id }] = tab.agent.pendingInterrupts;
    const { runId } = tab.events[0];
    await tab.core.runAgent({ agent: tab.agent, runId, resume: [entry(id, { approved: true })] });
    assert.deepEqual(tab.events.filter(({ type }) => type === "RUN_STARTED").map((event) => event.runId), [runId, runId]);
    assert.equal(tab.agent.messages.at(-1).content, 'The e-mail "Lunch": sent to ada@example.com.');
    const stored = await tab.requireStored();
    assert.deepEqual(statuses(stored), ["finished", "interrupted"], "each attempt of the run id has its record");
  });

  test(`${name}: an answer that the page adds as the result of the call is not its result`, async () => {
    const tab = await open();
    await tab.say("approve");
    const [{ id, toolCallId }] = tab.agent.pendingInterrupts;
    const answer = JSON.stringify({ approved: true });
    tab.agent.addMessage({ id: randomUUID(), role: "tool", toolCallId, content: answer });
    const resume = [entry(id, { approved: true })];
    await tab.core.runAgent({ agent: tab.agent, runId: tab.events[0].runId, resume });
    const stored = await tab.requireStored();
    const results = stored.messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    assert.equal(results.length, 1);
    assert.notEqual(results[0], answer);
  });

  test(`${name}: an interrupt is still open after a reload and can be answered`, async () => {
    const before = await open();
    await before.say("approve two");
    before.close();
    const after = await open({ threadId: before.threadId });
    await after.comeBack();
    assert.deepEqual(asJson(after.agent.pendingInterrupts), asJson(before.agent.pendingInterrupts));
    const resume = after.agent.pendingInterrupts.map(({ id }) => entry(id, { approved: true }));
    await after.core.runAgent({ agent: after.agent, resume, runId: before.events[0].runId });
    assert.deepEqual(after.agent.pendingInterrupts ?? [], []);
    await after.requireStored();
  });

  test(`${name}: the list has the agent's threads, without deleted ones`, async () => {
    const tab = await open();
    await tab.say("Hello");
    const other = await open({ threadId: randomUUID() });
    await other.say("Hello");
    const store = createThreadStore({ fetch: tab.core.ɵruntimeFetch });
    store.start();
    try {
      const listed = (wanted) =>
        new Promise((done) => {
          const look = (state) => !state.isLoading && state.context && wanted(state) && done(state);
          store.select((state) => state).subscribe(look);
        });
      const headers = { "x-tab": tab.id };
      store.setContext({ runtimeUrl: `${server.url}/copilotkit`, headers, agentId: "demo", limit: 1 });
      const { threads, error } = await listed(({ threads }) => threads.length > 0);
      assert.equal(error, null);
      const [newest] = threads;
      const shown = [newest.id, newest.agentId, newest.archived, newest.name];
      assert.deepEqual(shown, [other.threadId, "demo", false, "Hello"]);
      store.fetchNextPage();
      await listed(({ threads }) => threads.some(({ id }) => id === tab.threadId));
      await store.renameThread(tab.threadId, "My greeting");
      await store.archiveThread(tab.threadId);
      const { body: archived } = await request(server, "GET", `/threads/${tab.threadId}`);
      assert.deepEqual([archived.title, archived.archived], ["My greeting", true]);
      store.setContext({ runtimeUrl: `${server.url}/copilotkit`, headers, agentId: "demo" });
      const active = await listed(({ threads }) => threads.some(({ id }) => id === other.threadId));
      assert.ok(!active.threads.some(({ id }) => id === tab.threadId), "an archived thread is not listed");
      store.setContext({ runtimeUrl: `${server.url}/copilotkit`, headers, agentId: "demo", includeArchived: true });
      const whole = await listed(({ threads }) => threads.some(({ id }) => id === tab.threadId));
      assert.equal(whole.threads.find(({ id }) => id === tab.threadId).name, "My greeting");
      await store.unarchiveThread(tab.threadId);
      assert.equal((await request(server, "GET", `/threads/${tab.threadId}`)).body.archived, false);
      await store.deleteThread(other.threadId);
      assert.equal((await request(server, "GET", `/threads/${other.threadId}`)).status, 404);
      assert.deepEqual(store.getState().error, null);
    } finally {
      store.stop();
    }
  });
}

test("a page that is reloaded after a restart of its server receives the rest of the run", async (t) => {
  const service = await restartableServer(t);
  const before = await Tab.open(service);
  const running = before.say(SLOW);
  await before.heard(3);
  before.close();
  await running;
  await service.restart();
  const after = await Tab.open(service, { threadId: before.threadId });
  await after.comeBack();
  assert.equal(after.agent.messages.at(-1).content, countTo(COUNT));
  const stored = await after.requireStored();
  assert.deepEqual(stored.runs.map(({ status, takeovers }) => [status, takeovers]), [["finished", 1]]);
});

test("the cut-off answer of a page whose server was restarted is not stored beside the whole one", async (t) => {
  const service = await restartableServer(t);
  const before = await Tab.open(service);
  const running = before.say(SLOW);
  await before.heard(3);
  before.close();
  await running;
  await service.restart();
  // The same page: the library does not resume the response.
  const tab = await Tab.open(service, { threadId: before.threadId });
  tab.agent.setMessages(before.agent.messages);
  const whole = await ended(tab.threadId, service);
  await tab.say("Hello");
  const { messages } = await ended(tab.threadId, service);
  assert.deepEqual(messages.slice(0, 3).map(({ id }) => id), [...whole.messages.map(({ id }) => id), messages[2].id]);
  assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant", "user", "assistant"]);
  assert.deepEqual(asJson(tab.agent.messages).map(({ id }) => id), messages.map(({ id }) => id), "the page has what is stored");
});

test("with a key, a list of threads keeps itself current after a restart of its server", async (t) => {
  const key = "0123456789abcdef";
  const keys = '[{ name = "web", env = "WEB_KEY" }]';
  const service = await restartableServer(t, { AGUI_AUTH__MODE: "api_key", AGUI_AUTH__API_KEYS: keys, WEB_KEY: key });
  const headers = { authorization: `Bearer ${key}` };
  const tab = await Tab.open(service, { headers });
  await tab.say("Hello");
  const store = createThreadStore({ fetch: tab.core.ɵruntimeFetch });
  store.start();
  let again;
  try {
    /** Gives the thread a title until the list has it: the socket may still be connecting. */
    const shows = async (title) => {
      const appeared = new Promise((done) => {
        const look = ({ threads }) => threads.some(({ name }) => name === title) && done();
        store.select((state) => state).subscribe(look);
      });
      const json = { ...headers, "content-type": "application/json" };
      const patch = (body) => fetch(`${service.url}/threads/${tab.threadId}`, { method: "PATCH", headers: json, body: JSON.stringify(body) });
      again = setInterval(() => void patch({ title, metadata: { at: Date.now() } }), 200);
      await appeared;
      clearInterval(again);
    };
    store.setContext({ runtimeUrl: `${service.url}/copilotkit`, headers, agentId: "demo", wsUrl: tab.core.intelligence.wsUrl });
    await shows("before");
    await service.restart();
    await shows("after");
    const isOfSocket = ({ arguments: [text] }) => text.includes("realtime socket errored");
    assert.ok(console.warn.mock.calls.every(isOfSocket), "the library warns of the attempts that failed");
    console.warn.mock.resetCalls();
  } finally {
    clearInterval(again);
    store.stop();
  }
});

test("a list of threads keeps itself current", async () => {
  const [tab, other] = [await Tab.open(server), await Tab.open(server, { agentId: "default" })];
  await tab.say("Hello");
  const store = createThreadStore({ fetch: tab.core.ɵruntimeFetch });
  store.start();
  let again;
  try {
    const listed = (wanted) =>
      new Promise((done) => {
        const look = ({ threads }) => wanted(threads) && done();
        store.select((state) => state).subscribe(look);
      });
    const { wsUrl } = tab.core.intelligence;
    store.setContext({ runtimeUrl: `${server.url}/copilotkit`, headers: {}, agentId: "demo", wsUrl });
    await listed((threads) => threads.some(({ id }) => id === tab.threadId));
    const has = (members) => (thread) => Object.entries(members).every(([name, value]) => thread[name] === value);
    const json = { "content-type": "application/json" };
    const patch = (change) =>
      fetch(`${server.url}/threads/${other.threadId}`, { method: "PATCH", headers: json, body: JSON.stringify(change) });
    const appeared = listed((threads) => threads.some(has({ id: other.threadId, name: "Good day" })));
    // The socket may still be connecting.
    again = setInterval(() => void patch({ metadata: { at: Date.now() } }), 200);
    await other.say("Good day");
    await appeared;
    clearInterval(again);
    const renamed = listed((threads) => threads.some(has({ id: other.threadId, name: "Greeting", agentId: "demo" })));
    await patch({ title: "Greeting" });
    await renamed;
    const removed = listed((threads) => !threads.some(has({ id: other.threadId })));
    await patch({ archived: true });
    await removed;
  } finally {
    clearInterval(again);
    store.stop();
  }
});

test("onDisconnect: \"cancel\" ends the run when its page leaves", async () => {
  const tab = await Tab.open(server, { properties: { onDisconnect: "cancel" } });
  const running = tab.say(LONG);
  await tab.heard(3);
  tab.close();
  await running;
  assert.deepEqual(statuses(await ended(tab.threadId)), ["cancelled"]);
});

test("the inspector gets the events of runs", async () => {
  const stream = await fetch(`${server.url}/copilotkit/cpk-debug-events`);
  assert.equal(stream.status, 200);
  const tab = await Tab.open(server);
  await tab.say("Hello");
  const envelopes = [];
  let rest = "";
  for await (const chunk of stream.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    envelopes.push(...lines.filter((line) => line.startsWith("data: ")).map((line) => JSON.parse(line.slice(6))));
    if (envelopes.some(({ event }) => event.type === "RUN_FINISHED")) break;
  }
  assert.deepEqual(typesOf(envelopes.map(({ event }) => event)), typesOf(tab.events));
  const [{ timestamp, agentId, threadId, runId }] = envelopes;
  assert.deepEqual([agentId, threadId, runId], ["demo", tab.threadId, tab.events[0].runId]);
  assert.equal(typeof timestamp, "number");
});

test("a long thread is restated with a fifth more bytes at most", async () => {
  const threadId = randomUUID();
  const headers = { "content-type": "application/json" };
  const post = async (path, input) =>
    (await fetch(server.url + path, { method: "POST", headers, body: JSON.stringify(input) })).text();
  const long = "Hello. ".repeat(20);
  for (let run = 1; run <= 500; run++) {
    const messages = [{ id: randomUUID(), role: "user", content: run === 480 ? "plan a trip" : long }];
    const input = { threadId, runId: `run-${run}`, messages, tools: [], context: [] };
    assert.match(await post("/send-message", input), /RUN_FINISHED/);
  }
  const connect = (path) => post(path, { threadId, runId: "r", messages: [] });
  const [whole, runs] = [await connect(`/threads/${threadId}/connect`), await connect("/copilotkit/agent/demo/connect")];
  assert.equal(runs.split('"RUN_STARTED"').length - 1, 50);
  assert.ok(runs.length <= 1.2 * whole.length, `${runs.length} bytes in place of ${whole.length}`);
  const tab = await Tab.open(server, { threadId });
  await tab.comeBack();
  const { messages } = tab.agent;
  const { body: stored } = await request(server, "GET", `/threads/${threadId}/export`);
  assert.deepEqual(asJson(messages), stored.messages.map(({ message }) => message), "order and content");
  const of = (position) => placeOf(tab, messages.at(position).id);
  assert.deepEqual([0, -44, -42, -1].map((position) => of(position).run), ["run-451", "run-479", "run-480", "run-500"]);
  assert.deepEqual([-44, -42, -1].map((position) => of(position).state?.goal), [undefined, "a trip", "a trip"]);
});

test("the inspector shows the stored thread", async () => {
  const tab = await Tab.open(server);
  await tab.say("plan a trip");
  await tab.say("What's the weather like in Beijing today?");
  const stored = await readThread(server, tab.threadId);
  const path = `/copilotkit/threads/${tab.threadId}`;
  const { body: { messages } } = await request(server, "GET", `${path}/messages`);
  assert.deepEqual(messages.map(({ id, role }) => [id, role]), stored.messages.map(({ id, role }) => [id, role]));
  const calls = messages.flatMap(({ toolCalls }) => toolCalls ?? []);
  assert.deepEqual(calls.map(({ name, args }) => [name, args]), [["get_weather", '{"city":"Beijing"}']]);
  const { body: { state } } = await request(server, "GET", `${path}/state`);
  assert.deepEqual(state, stored.state);
  const { body: { events } } = await request(server, "GET", `${path}/events`);
  assert.deepEqual(typesOf(events), typesOf(tab.events), "as the tab has got them");
  assert.deepEqual(events.filter(({ type }) => type === "RUN_STARTED").map(({ runId }) => runId), stored.runs.map(({ runId }) => runId).reverse());
  // Runs that are not detached have no logs.
  const plain = { threadId: randomUUID(), runId: "plain", messages: [{ id: "m", role: "user", content: "Hello" }], tools: [], context: [] };
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(plain) };
  await (await fetch(`${server.url}/send-message`, init)).text();
  const { body: restated } = await request(server, "GET", `/copilotkit/threads/${plain.threadId}/events`);
  assert.deepEqual(typesOf(restated.events), RESTATED);
  assert.equal(restated.events[0].runId, "plain", "the newest run, not a new id");
});
