// TanStack AI's client, unchanged: it resumes a run whose connection breaks, and a page that is reloaded. It runs the tools
// of its page, and lets interrupts be answered.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, test } from "node:test";

import { ChatClient, clientTools, fetchServerSentEvents } from "@tanstack/ai-client";

import { cuttingProxy } from "./cut.mjs";
import { startWeatherAgent } from "./models.mjs";
import { restartableServer } from "./restart.mjs";
import { startServer } from "./server.mjs";
import { CONTINUE, Page, countTo, follow, promise, readThread, request, typesOf, useServer } from "./threads.mjs";

const server = useServer();

// One word every 100 ms.
const COUNT = 40;
const SLOW = `count to ${COUNT}`;

const clients = [];
after(() => clients.forEach((client) => client.dispose()));

/** A page of TanStack AI on a thread. `errors` are those that it reports. */
function open(threadId, { url = server.url, path = "/send-message", delayMs = 10, ...options } = {}) {
  const errors = [];
  const client = new ChatClient({
    threadId,
    connection: fetchServerSentEvents(url + path, { reconnect: { delayMs } }),
    forwardedProps: CONTINUE,
    onError: (error) => errors.push(String(error)),
    ...options,
  });
  client.attach();
  clients.push(client);
  return { client, errors };
}

/** The roles and the texts of a page's messages. */
const shown = (client) =>
  client.getMessages().map(({ role, parts }) => [
    role,
    parts.flatMap(({ type, content }) => (type === "text" ? [content] : [])).join(""),
  ]);

/** Resolves when a page's messages fulfil a condition. */
function until(options, isReached) {
  const { kept, keep } = promise();
  const onMessagesChange = (messages) => void (isReached(messages) && keep());
  return { kept, options: { ...options, onMessagesChange } };
}

const lastText = (messages) => messages.at(-1)?.parts.findLast(({ type }) => type === "text")?.content ?? "";

test("a page whose connection breaks in the middle of an answer receives the rest by itself", async (t) => {
  const proxy = await cuttingProxy(server.url, [3, 4]);
  t.after(proxy.close);
  const threadId = randomUUID();
  const { client, errors } = open(threadId, { url: proxy.url });
  await client.sendMessage(SLOW);
  assert.deepEqual(shown(client), [["user", SLOW], ["assistant", countTo(COUNT)]]);
  assert.deepEqual(errors, []);
  assert.equal(proxy.requests.length, 3);
  const { runs, messages } = await readThread(server, threadId);
  // A break may drop events that have arrived and that the client has not read.
  const [first, ...resumed] = proxy.requests.map((text) => /\r\nlast-event-id: (\d+)\r\n/i.exec(text)?.[1]);
  assert.equal(first, undefined);
  assert.ok(resumed.every((id) => id >= 1 && id <= runs[0].events), String(resumed));
  assert.deepEqual(runs.map(({ status }) => status), ["finished"]);
  assert.deepEqual(messages.map(({ content }) => content), [SLOW, countTo(COUNT)]);
});

test("a page has the whole answer when its server is restarted during the run", async (t) => {
  const service = await restartableServer(t);
  const threadId = randomUUID();
  const { client, errors } = open(threadId, { url: service.url, delayMs: 2000 });
  const answered = client.sendMessage(SLOW);
  await service.heard("id: 4\n");
  await service.restart();
  await answered;
  assert.deepEqual(shown(client), [["user", SLOW], ["assistant", countTo(COUNT)]]);
  assert.deepEqual(errors, []);
  const { runs, messages } = await readThread(service, threadId);
  assert.deepEqual(runs.map(({ status, takeovers }) => [status, takeovers]), [["finished", 1]]);
  assert.deepEqual(messages.map(({ content }) => content), [SLOW, countTo(COUNT)]);
});

test("a page that is opened during a run shows the thread, joins the run, and continues", async () => {
  const threadId = randomUUID();
  const first = open(threadId);
  await first.client.sendMessage("Hello");
  const greeting = shown(first.client)[1];
  const started = until({}, (messages) => lastText(messages).startsWith("1 2 3"));
  const leaving = open(threadId, { ...started.options, initialMessages: first.client.getMessages() });
  void leaving.client.sendMessage(SLOW);
  await started.kept;
  leaving.client.dispose();

  const joined = promise();
  let hasJoined = false;
  const look = () => {
    hasJoined ||= client.getIsLoading();
    if (!client.getIsLoading() && lastText(client.getMessages()) === countTo(COUNT)) joined.keep();
  };
  const { client, errors } = open(threadId, { persistence: true, onLoadingChange: look, onMessagesChange: look });
  await joined.kept;
  assert.ok(hasJoined, "the run ended before the page was opened");
  const before = [["user", "Hello"], greeting, ["user", SLOW], ["assistant", countTo(COUNT)]];
  assert.deepEqual(shown(client), before);
  await client.sendMessage("Hello");
  assert.deepEqual(shown(client), [...before, ["user", "Hello"], greeting]);
  assert.deepEqual(errors, []);
  const { messages, runs } = await readThread(server, threadId);
  assert.deepEqual(messages.map(({ role, content }) => [role, content]), shown(client));
  assert.equal(runs.length, 3);
});

test("a page with tools and reasoning continues the thread without storing a message twice", async () => {
  const threadId = randomUUID();
  const { client, errors } = open(threadId);
  await client.sendMessage("think about lunch");
  await client.sendMessage("What's the weather like in Paris?");
  await client.sendMessage("Hello");
  assert.deepEqual(errors, []);
  const { messages } = await readThread(server, threadId);
  const page = new Page(server, { threadId: randomUUID() });
  for (const text of ["think about lunch", "What's the weather like in Paris?", "Hello"]) await page.say(text);
  const seen = (all) => all.map(({ role, content }) => [role, content]);
  assert.deepEqual(seen(messages), seen(page.messages));

  const reopened = until({ persistence: true }, (messages) => messages.length > 0);
  const second = open(threadId, reopened.options);
  await reopened.kept;
  const parts = (client) =>
    client.getMessages().map(({ id, role, parts }) => [id, role, parts.map(({ type, content }) => [type, content])]);
  assert.deepEqual(parts(second.client), parts(client));
  await second.client.sendMessage("Hello");
  assert.equal((await readThread(server, threadId)).messages.length, messages.length + 2);
});

test("a page with a history in pages loads the earlier messages", async () => {
  const threadId = randomUUID();
  const { client } = open(threadId);
  for (const text of ["Hello", "plan a trip", "Hello"]) await client.sendMessage(text);
  const all = shown(client);
  const loaded = until({ persistence: true, history: { pageSize: 2 } }, (messages) => messages.length > 0);
  const paged = open(threadId, loaded.options);
  await loaded.kept;
  assert.deepEqual(shown(paged.client), all.slice(-2));
  while (paged.client.getHasOlderMessages()) await paged.client.loadOlderMessages();
  assert.deepEqual(shown(paged.client), all);
});

const FILES = ["report-2025.pdf", "report-2026.pdf"];

/** A page with the tool `search_local_files`. `calls` are the inputs that the client has called it with. */
function openWithTool(threadId, options) {
  const calls = [];
  const execute = (input) => (calls.push(input), FILES);
  const inputSchema = { type: "object", properties: { keyword: { type: "string" } } };
  const tool = { __toolSide: "client", name: "search_local_files", description: "Searches files", inputSchema, execute };
  return { calls, ...open(threadId, { tools: clientTools(tool), ...options }) };
}

const SEARCH = "search for report files locally";
const FOUND = [["user", SEARCH], ["assistant", ""], ["assistant", `Found 2 files: ${FILES.join(" and ")}`]];

for (const [name, forwardedProps] of [["detached", CONTINUE], ["that ends with its connection", {}]]) {
  test(`a tool of the page runs by itself, in a run ${name}`, async () => {
    const threadId = randomUUID();
    const { client, calls, errors } = openWithTool(threadId, { forwardedProps });
    await client.sendMessage(SEARCH);
    assert.deepEqual(calls, [{ keyword: "report" }]);
    assert.deepEqual(shown(client), FOUND);
    assert.deepEqual(errors, []);
    const { messages, runs } = await readThread(server, threadId);
    assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
    assert.deepEqual(runs.map(({ status }) => status), ["finished", "finished"]);
  });
}

test("a tool of the page runs when the connection breaks within its call", async (t) => {
  for (const type of ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "tool-input-available"]) {
    const proxy = await cuttingProxy(server.url, [1], type);
    t.after(proxy.close);
    const { client, calls, errors } = openWithTool(randomUUID(), { url: proxy.url });
    await client.sendMessage(SEARCH);
    assert.ok(proxy.requests.some((text) => /last-event-id/i.test(text)), `not broken after ${type}`);
    // Both frames are sent at once. If the connection breaks between them all the same, the tool runs again.
    const times = type === "tool-input-available" ? 2 : 1;
    assert.deepEqual(calls, Array(times).fill({ keyword: "report" }), type);
    assert.deepEqual(shown(client), FOUND, type);
    assert.deepEqual(errors, []);
  }
});

test("only a request of TanStack AI's client gets its additions", async () => {
  const threadId = randomUUID();
  const { client } = openWithTool(threadId);
  await client.sendMessage(SEARCH);
  const [, { runId }] = (await readThread(server, threadId)).runs;
  const { events } = await follow(server, threadId, runId);
  assert.deepEqual(typesOf(events), ["RUN_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "RUN_FINISHED"]);
  const page = new Page(server);
  await page.say("approve");
  assert.deepEqual(page.pendingInterrupts.map(({ metadata }) => metadata), [undefined]);
});

test("a tool of the page runs in a turn whose other call needs an approval", async (t) => {
  const { model, weather, service } = await startWeatherAgent(t, ["order_weather"]);
  const called = (name, args) => ({ name, arguments: JSON.stringify(args) });
  const toolCalls = [called("order_weather", { city: "Paris" }), called("search_local_files", { keyword: "report" })];
  const isContinued = ({ messages }) => messages.some(({ role }) => role === "tool");
  model.on({ predicate: (request) => !isContinued(request) }, { toolCalls });
  model.on({ predicate: isContinued }, { content: "Both are done." });

  const asked = interruptsOf({ url: service.url });
  const { client, calls, errors } = openWithTool(randomUUID(), asked.options);
  await client.sendMessage("go");
  assert.deepEqual(calls, [{ keyword: "report" }]);
  const [interrupt] = await asked.kept;
  const answered = promise();
  client.updateOptions({ onFinish: answered.keep });
  interrupt.resolveInterrupt({ approved: true });
  await answered.kept;
  assert.deepEqual(shown(client).at(-1), ["assistant", "Both are done."]);
  assert.equal(weather.asked.length, 1);
  assert.deepEqual(errors, []);
});

/** Resolves with the interrupts that a page shows first. */
function interruptsOf(options) {
  const { kept, keep } = promise();
  const onInterruptStateChange = ({ interrupts }) => void (interrupts.length && keep(interrupts));
  return { kept, options: { ...options, onInterruptStateChange } };
}

for (const isReloaded of [false, true]) {
  test(`a ${isReloaded ? "reloaded " : ""}page answers interrupts with their own controls`, async () => {
    const threadId = randomUUID();
    const asked = interruptsOf({});
    const first = open(threadId, asked.options);
    await first.client.sendMessage("approve 2");
    const again = interruptsOf({ persistence: true });
    const { client, errors } = isReloaded ? open(threadId, again.options) : first;
    const interrupts = await (isReloaded ? again : asked).kept;
    assert.deepEqual(interrupts.map(({ canResolve, metadata }) => [canResolve, metadata]), [
      [true, { kind: "approval", toolName: "book_train", input: { to: "Beijing" } }],
      [true, { kind: "approval", toolName: "book_hotel", input: { city: "Beijing", nights: 2 } }],
    ]);
    const answered = promise();
    client.updateOptions({ onFinish: answered.keep });
    const [train, hotel] = interrupts;
    train.resolveInterrupt({ approved: true });
    if (isReloaded) hotel.cancel();
    else hotel.resolveInterrupt({ approved: false });
    await answered.kept;
    assert.deepEqual(errors, []);
    const stored = await readThread(server, threadId);
    assert.deepEqual(stored.interrupts, []);
    const results = stored.messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    assert.ok(results.length === 2 && results.every((text) => !text.includes("approved")), String(results));
    assert.match(shown(client).at(-1)[1], /a train to Beijing is booked; .* no hotel is booked/);
  });
}

test("stop() ends a run, and leaves a detached run to its end or to its cancellation", async () => {
  for (const [forwardedProps, status] of [[{}, "cancelled"], [CONTINUE, "running"]]) {
    const threadId = randomUUID();
    const started = until({ forwardedProps }, (messages) => lastText(messages).startsWith("1 2 3"));
    const { client } = open(threadId, started.options);
    const answered = client.sendMessage("count to 200");
    await started.kept;
    client.stop();
    await answered;
    let run;
    do [run] = (await readThread(server, threadId)).runs;
    while (status === "cancelled" && run.status === "running");
    assert.equal(run.status, status);
    if (status === "cancelled") continue;
    const { runId } = run;
    await request(server, "POST", `/threads/${threadId}/runs/${runId}/cancel`);
    const { events } = await follow(server, threadId, runId);
    assert.deepEqual(events.at(-1).outcome, { type: "cancelled" });
  }
});

test("a page on a new thread is empty, and an unknown run cannot be joined", async () => {
  const { status, body } = await request(server, "GET", `/send-message?threadId=${randomUUID()}`);
  assert.equal(status, 200);
  assert.deepEqual(body, { messages: [], activeRun: null, interrupts: null, page: { truncated: false } });
  const refused = await request(server, "GET", `/send-message?runId=${randomUUID()}&offset=-1`);
  assert.deepEqual([refused.status, refused.body.error.code], [404, "unknown_run"]);
});
