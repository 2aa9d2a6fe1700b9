// The AI SDK's chat, unchanged (`ai`, `@ai-sdk/react`): text, tools of the server and of the page, approvals, a page that is opened
// again in the middle of an answer, stop, another answer, edits. Its own schema judges each chunk.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { Chat } from "@ai-sdk/react";
import {
  DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls, uiMessageChunkSchema,
} from "ai";

import { startWeatherAgent } from "./models.mjs";
import { restartableServer } from "./restart.mjs";
import { startServer } from "./server.mjs";
import { countTo, promise, readThread, request, useServer } from "./threads.mjs";

const server = useServer();
const SLOW = "count to 40";

/** The members that the SDK's types have for each chunk. Its schema ignores others. */
const METADATA = ["providerMetadata"];
const TOOL = ["toolCallId", "providerExecuted", "toolMetadata", ...METADATA];
const MEMBERS = {
  start: ["messageId"], "start-step": [], "finish-step": [], "reset-step": [], finish: ["finishReason"], abort: ["reason"],
  error: ["errorText"], "message-metadata": ["messageMetadata"],
  "text-start": ["id", ...METADATA], "text-delta": ["id", "delta"], "text-end": ["id"],
  "reasoning-start": ["id", ...METADATA], "reasoning-delta": ["id", "delta"], "reasoning-end": ["id"],
  "tool-input-start": ["toolName", ...TOOL], "tool-input-delta": ["toolCallId", "inputTextDelta"],
  "tool-input-available": ["toolName", "input", ...TOOL], "tool-input-error": ["toolName", "input", "errorText", ...TOOL],
  "tool-output-available": ["toolCallId", "output"], "tool-output-error": ["toolCallId", "errorText"],
  "tool-output-denied": ["toolCallId"],
  "tool-approval-request": ["approvalId", "toolCallId", "approvalDescriptor", "reason"],
  "source-url": ["sourceId", "url", "title", ...METADATA], file: ["url", "mediaType", ...METADATA],
};

/** Requires that a stream consists of chunks of the SDK, each with members of its type alone, and its end. */
async function judge(text) {
  const frames = text.split("\n\n").filter((frame) => frame && !frame.startsWith(":"));
  assert.equal(frames.pop(), "data: [DONE]");
  const chunks = frames.map((frame) => JSON.parse(/^data: (.+)$/.exec(frame)[1]));
  for (const chunk of chunks) {
    const { success, error } = await uiMessageChunkSchema().validate(chunk);
    assert.ok(success, `${JSON.stringify(chunk)}: ${error}`);
    const { type, ...members } = chunk;
    const known = type.startsWith("data-") ? ["id", "data", "transient"] : MEMBERS[type];
    assert.deepEqual(Object.keys(members).filter((name) => !known?.includes(name)), [], JSON.stringify(chunk));
  }
  const types = chunks.map(({ type }) => type);
  assert.equal(types.filter((type) => type === "start").length, 1);
  assert.equal(types.at(-1), "finish");
  return chunks;
}

const automatic = (options) =>
  lastAssistantMessageIsCompleteWithToolCalls(options) || lastAssistantMessageIsCompleteWithApprovalResponses(options);

/** A page with a chat. `posts` are the bodies of its requests, `streams` the texts of all whole responses. */
function open(id = randomUUID(), { url = server.url, agent = "demo", tools, ...options } = {}) {
  const page = { posts: [], streams: [], finished: [], errors: [], data: [] };
  const fetching = async (address, init) => {
    if (init.method === "POST") page.posts.push(JSON.parse(init.body));
    const response = await fetch(address, init);
    // A stream that the page leaves is incomplete.
    if (response.ok && response.status !== 204) page.streams.push(response.clone().text().catch(() => undefined));
    return response;
  };
  const transport = new DefaultChatTransport({ api: `${url}/ai-sdk/${agent}`, fetch: fetching, ...(tools && { body: { tools } }) });
  page.chat = new Chat({
    id, transport, sendAutomaticallyWhen: automatic,
    onFinish: (end) => page.finished.push(end),
    onError: ({ message }) => page.errors.push(message),
    onData: (data) => page.data.push(data),
    ...options,
  });
  page.judged = async () => {
    const texts = (await Promise.all(page.streams.splice(0))).filter((text) => text !== undefined);
    return Promise.all(texts.map(judge));
  };
  return page;
}

const stored = async (id) => (await fetch(`${server.url}/ai-sdk/demo/${id}`)).json();
const texts = ({ parts }) => parts.flatMap(({ type, text }) => (type === "text" ? [text] : [])).join(" ");
const shown = (chat) => chat.messages.map((message) => [message.role, texts(message)]);
const toolParts = (message) => message.parts.filter(({ type }) => type.startsWith("tool-"));
const states = (message) => toolParts(message).map(({ type, state }) => [type, state]);

/** Waits until a condition is fulfilled. The chat tells of no end of the requests that it sends by itself. */
async function until(isReached, what) {
  const deadline = Date.now() + 15_000;
  while (!isReached()) {
    assert.ok(Date.now() < deadline, `not reached: ${what ?? isReached}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}
const settled = (page, posts) => until(() => page.posts.length === posts && page.chat.status === "ready", `${posts} requests`);

/** Requires that a page that is opened shows the same. Stored parts have no state of their stream. */
async function requireStored(chat) {
  const plain = ({ id, role, parts }) => ({
    id, role,
    parts: parts
      .filter(({ type }) => type !== "step-start")
      .map(({ type, text, state, toolCallId, input, output }) => ({ type, text, toolCallId, input, output, ...(toolCallId && { state }) })),
  });
  const read = JSON.parse(JSON.stringify((await stored(chat.id)).map(plain)));
  assert.deepEqual(read, JSON.parse(JSON.stringify(chat.messages.map(plain))));
}

test("a text, and a thread that other clients share", async () => {
  const page = open();
  await page.chat.sendMessage({ text: "Hello" });
  await page.chat.sendMessage({ text: "think about lunch" });
  assert.deepEqual(page.errors, []);
  const [, greeting, , thought] = page.chat.messages;
  assert.equal(texts(greeting), "Hello! How can I help you?");
  assert.match(thought.parts.find(({ type }) => type === "reasoning").text, /^The question is: lunch/);
  const { messages, runs } = await readThread(server, page.chat.id);
  assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant", "user", "reasoning", "assistant"]);
  assert.equal(messages[1].id, greeting.id, "the id of a message is that of its first stored one");
  assert.deepEqual(runs.map(({ status }) => status), ["finished", "finished"]);
  assert.ok(greeting.metadata.runId);
  await requireStored(page.chat);
  assert.equal((await page.judged()).length, 2);
});

test("a tool of the server is one step, its answer another, and the page sends nothing by itself", async () => {
  for (const text of ["What's the weather like in Beijing?", "parallel"]) {
    const page = open();
    await page.chat.sendMessage({ text });
    await settled(page, 1);
    const [, answer] = page.chat.messages;
    assert.ok(toolParts(answer).every(({ state, providerExecuted }) => state === "output-available" && providerExecuted));
    const types = answer.parts.map(({ type }) => type);
    assert.ok(types.lastIndexOf("step-start") > types.findLastIndex((type) => type.startsWith("tool-")), String(types));
    await page.chat.sendMessage({ text: "Hello" });
    assert.equal(page.posts.length, 2);
    assert.equal((await readThread(server, page.chat.id)).runs.length, 2);
    await requireStored(page.chat);
    await page.judged();
  }
});

const SEARCH = "search for report files locally";
const FILES = ["report-2025.pdf", "report-2026.pdf"];
const INPUT = { type: "object", properties: { keyword: { type: "string" } }, required: ["keyword"] };

for (const [form, tools] of [
  ["an object", { search_local_files: { description: "Searches files", inputSchema: INPUT } }],
  ["a list", [{ name: "search_local_files", description: "Searches files", parameters: INPUT }]],
]) {
  test(`a tool of the page, offered as ${form}, runs, and the answer continues the same message`, async () => {
    const page = open(undefined, {
      tools,
      onToolCall: ({ toolCall: { toolName, toolCallId, input } }) => {
        page.called = [...(page.called ?? []), [toolName, input]];
        page.chat.addToolOutput({ tool: toolName, toolCallId, output: FILES });
      },
    });
    await page.chat.sendMessage({ text: SEARCH });
    await settled(page, 2);
    assert.deepEqual(page.called, [["search_local_files", { keyword: "report" }]]);
    assert.deepEqual(shown(page.chat), [["user", SEARCH], ["assistant", `Found 2 files: ${FILES.join(" and ")}`]]);
    const { messages, runs } = await readThread(server, page.chat.id);
    assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
    assert.deepEqual(runs.map(({ status }) => status), ["finished", "finished"]);
    assert.deepEqual(page.errors, []);
    await requireStored(page.chat);
    await page.judged();
  });
}

test("a tool of the page that fails is an error to the agent", async () => {
  const tools = { search_local_files: { description: "Searches files", inputSchema: INPUT } };
  const page = open(undefined, { tools });
  await page.chat.sendMessage({ text: SEARCH });
  const [{ toolCallId }] = toolParts(page.chat.lastMessage);
  await page.chat.addToolOutput({ tool: "search_local_files", toolCallId, state: "output-error", errorText: "no disk" });
  await settled(page, 2);
  assert.equal(texts(page.chat.lastMessage), "The search failed: no disk");
});

for (const isReloaded of [false, true]) {
  for (const [approved, state, answer] of [
    [true, "output-available", /sent to ada@example.com/],
    [false, "output-denied", /not sent/],
  ]) {
    const who = isReloaded ? "a page that was opened again" : "the page";
    test(`${who} ${approved ? "approves" : "declines"} a call, and the answer continues the same message`, async () => {
      const first = open();
      await first.chat.sendMessage({ text: "approve" });
      assert.deepEqual(states(first.chat.lastMessage), [["tool-send_email", "approval-requested"]]);
      const page = isReloaded ? open(first.chat.id, { messages: await stored(first.chat.id) }) : first;
      const [{ approval, input }] = toolParts(page.chat.lastMessage);
      assert.equal(approval.requestReason, 'Send the e-mail "Lunch" to ada@example.com?');
      assert.equal(input.to, "ada@example.com");
      const before = page.posts.length;
      await page.chat.addToolApprovalResponse({ id: approval.id, approved, reason: approved ? undefined : "not now" });
      await settled(page, before + 1);
      assert.equal(page.chat.messages.length, 2);
      assert.deepEqual(states(page.chat.lastMessage), [["tool-send_email", state]]);
      assert.match(texts(page.chat.lastMessage), answer);
      assert.deepEqual(page.errors, []);
      const { interrupts, runs } = await readThread(server, page.chat.id);
      assert.deepEqual([interrupts, runs.length], [[], 2]);
      await first.judged();
      await page.judged();
      await page.chat.sendMessage({ text: "Hello" });
      assert.equal((await readThread(server, page.chat.id)).messages.at(-1).content, "Hello! How can I help you?");
    });
  }
}

test("two approvals are sent together, and one that has no call is a part of its own", async () => {
  const page = open();
  await page.chat.sendMessage({ text: "approve two" });
  const parts = toolParts(page.chat.lastMessage);
  await page.chat.addToolApprovalResponse({ id: parts[0].approval.id, approved: true });
  assert.equal(page.posts.length, 1);
  await page.chat.addToolApprovalResponse({ id: parts[1].approval.id, approved: false });
  await settled(page, 2);
  assert.deepEqual(states(page.chat.lastMessage).map(([, state]) => state), ["output-available", "output-denied"]);

  await page.chat.sendMessage({ text: "review a plan" });
  const [{ type, approval }] = toolParts(page.chat.lastMessage);
  assert.deepEqual([type, approval.requestReason], ["tool-input_required", "Review and modify the planned steps."]);
  await page.chat.addToolApprovalResponse({ id: approval.id, approved: true });
  await settled(page, 4);
  assert.deepEqual(states(page.chat.lastMessage), [["tool-input_required", "output-available"]]);
  assert.match(texts(page.chat.lastMessage), /The plan is approved/);
  assert.deepEqual(page.errors, []);
  await page.judged();
});

test("a question is answered with the output of a tool", async () => {
  const first = open();
  await first.chat.sendMessage({ text: "feedback" });
  for (const messages of [first.chat.messages, await stored(first.chat.id)]) {
    const [part] = toolParts(messages.at(-1));
    assert.equal(part.state, "input-available");
    assert.match(part.toolMetadata.interrupt.message, /^Review the agent's response/);
    assert.ok(part.toolMetadata.interrupt.responseSchema);
  }
  const page = open(first.chat.id, { messages: await stored(first.chat.id) });
  const answer = (output) => {
    const { toolCallId } = toolParts(page.chat.lastMessage).findLast(({ state }) => state === "input-available");
    return page.chat.addToolOutput({ tool: "input_required", toolCallId, output });
  };
  await answer({ feedback: "shorter" });
  await settled(page, 1);
  assert.match(texts(page.chat.lastMessage), /Another draft, with your feedback: shorter/);
  await answer({ feedback: "ACCEPTED" });
  await settled(page, 2);
  assert.match(texts(page.chat.lastMessage), /Accepted: the draft is the final answer/);
  assert.deepEqual((await readThread(server, page.chat.id)).interrupts, []);
  assert.deepEqual(page.errors, []);
  await page.judged();
});

test("a page that is opened in the middle of an answer shows all of it", async () => {
  const first = open();
  void first.chat.sendMessage({ text: SLOW });
  await until(() => first.chat.messages.length === 2 && texts(first.chat.lastMessage).startsWith("1 2 3"));
  await first.chat.stop();
  const page = open(first.chat.id, { messages: await stored(first.chat.id) });
  assert.deepEqual(shown(page.chat), [["user", SLOW]]);
  await page.chat.resumeStream();
  assert.deepEqual(shown(page.chat), [["user", SLOW], ["assistant", countTo(40)]]);
  assert.equal(page.chat.lastMessage.id, first.chat.lastMessage.id);
  assert.deepEqual(page.errors, []);
  await page.judged();
  await requireStored(page.chat);
  await page.chat.resumeStream();
  assert.equal(page.chat.status, "ready", "nothing runs");
  assert.equal(page.chat.messages.length, 2);
});

test("a page that is opened while an approved call runs shows the whole message", async (t) => {
  const { model, weather, service } = await startWeatherAgent(t, ["order_weather"]);
  const called = (name, args) => ({ name, arguments: JSON.stringify(args) });
  const hasResult = ({ messages }) => messages.some(({ role }) => role === "tool");
  model.on({ predicate: (request) => !hasResult(request) }, { content: "One moment.", toolCalls: [called("order_weather", { city: "Paris" })] });
  const words = Array.from({ length: 30 }, (_, at) => `w${at}`).join(" ");
  model.on({ predicate: hasResult }, { content: words }, { latency: 60, chunkSize: 4 });

  const first = open(undefined, { url: service.url, agent: "assistant" });
  await first.chat.sendMessage({ text: "go" });
  const [{ approval }] = toolParts(first.chat.lastMessage);
  await first.chat.addToolApprovalResponse({ id: approval.id, approved: true });
  await until(() => /w1/.test(texts(first.chat.lastMessage)), "the answer begins");
  await first.chat.stop();
  const get = async () => (await fetch(`${service.url}/ai-sdk/assistant/${first.chat.id}`)).json();
  const page = open(first.chat.id, { url: service.url, agent: "assistant", messages: await get() });
  await page.chat.resumeStream();
  assert.equal(texts(page.chat.lastMessage), `One moment. ${words}`);
  assert.deepEqual(states(page.chat.lastMessage), [["tool-order_weather", "output-available"]]);
  assert.equal(page.chat.lastMessage.id, first.chat.lastMessage.id);
  assert.deepEqual(page.errors, []);
  assert.equal(weather.asked.length, 1);
  assert.deepEqual(page.posts, []);
  const { usage } = page.chat.lastMessage.metadata;
  assert.ok(usage[0].outputTokens >= 0, JSON.stringify(usage));
  await page.judged();
});

test("a model that calls a tool of the server is asked twice, and the page sends nothing by itself", async (t) => {
  const { model, service } = await startWeatherAgent(t, ["get_weather"]);
  const hasResult = ({ messages }) => messages.at(-1).role === "tool";
  const toolCalls = [{ name: "get_weather", arguments: '{"city":"Paris"}' }];
  model.on({ predicate: (request) => !hasResult(request) }, { toolCalls });
  model.on({ predicate: hasResult }, { content: "It is fine." });
  const page = open(undefined, { url: service.url, agent: "assistant" });
  for (const text of ["go", "again"]) {
    await page.chat.sendMessage({ text });
    assert.equal(page.chat.status, "ready");
    const types = page.chat.lastMessage.parts.map(({ type }) => type);
    assert.deepEqual(types, ["step-start", "tool-get_weather", "step-start", "text"]);
  }
  assert.deepEqual([page.posts.length, model.received.length], [2, 4]);
  assert.deepEqual(page.errors, []);
  await page.judged();
});

test("a page whose server is restarted in the middle of an answer resumes it, without the part that was cut off", async (t) => {
  const service = await restartableServer(t);
  const page = open(undefined, { url: service.url });
  void page.chat.sendMessage({ text: SLOW });
  await service.heard('"delta":"4 "');
  await service.restart();
  await until(() => page.finished.length === 1, "the connection breaks");
  assert.equal(page.chat.status, "error");
  await page.chat.resumeStream();
  assert.deepEqual(shown(page.chat), [["user", SLOW], ["assistant", countTo(40)]]);
  const { messages, runs } = await readThread(service, page.chat.id);
  assert.deepEqual([messages.length, runs.map(({ status }) => status)], [2, ["finished"]]);
  await page.chat.sendMessage({ text: "Hello" });
  assert.equal((await readThread(service, page.chat.id)).messages.length, 4);
});

test("stop() only leaves the run, and the route for it ends the run", async () => {
  const page = open();
  void page.chat.sendMessage({ text: "count to 200" });
  await until(() => page.chat.messages.length === 2 && texts(page.chat.lastMessage).startsWith("1 2 3"));
  await page.chat.stop();
  const path = `/ai-sdk/demo/${page.chat.id}/stop`;
  assert.equal((await readThread(server, page.chat.id)).runs[0].status, "running");
  const second = open(page.chat.id, { messages: await stored(page.chat.id) });
  const resumed = second.chat.resumeStream();
  await until(() => texts(second.chat.lastMessage).startsWith("1 2 3"));
  assert.deepEqual((await request(server, "POST", path)).body, { stopped: true });
  await resumed;
  const [chunks] = await second.judged();
  assert.deepEqual(chunks.slice(-3).map(({ type, finishReason }) => finishReason ?? type), ["abort", "message-metadata", "interrupted"]);
  assert.equal((await readThread(server, page.chat.id)).runs[0].status, "cancelled");
  assert.deepEqual((await request(server, "POST", path)).body, { stopped: false });
  await second.chat.sendMessage({ text: "Hello" });
  assert.equal(texts(second.chat.lastMessage), "Hello! How can I help you?");
  assert.deepEqual(second.errors, []);
});

test("another answer and an edit are branches of the thread", async () => {
  const page = open();
  await page.chat.sendMessage({ text: "Hello" });
  await page.chat.sendMessage({ text: "count to 2" });
  const before = page.chat.lastMessage.id;
  await page.chat.regenerate();
  assert.deepEqual(shown(page.chat).slice(2), [["user", "count to 2"], ["assistant", "1 2"]]);
  assert.notEqual(page.chat.lastMessage.id, before);
  await requireStored(page.chat);
  await page.chat.sendMessage({ text: "count to 3", messageId: page.chat.messages[2].id });
  assert.deepEqual(shown(page.chat).slice(2), [["user", "count to 3"], ["assistant", "1 2 3"]]);
  await requireStored(page.chat);
  await page.chat.sendMessage({ text: "count to 4", messageId: page.chat.messages[0].id });
  assert.deepEqual(shown(page.chat), [["user", "count to 4"], ["assistant", "1 2 3 4"]]);
  await requireStored(page.chat);
  assert.deepEqual(page.errors, []);
  assert.equal((await readThread(server, page.chat.id)).runs.length, 5);
  await page.judged();
});

test("a page that sends its newest message alone has the same conversation", async () => {
  const id = randomUUID();
  const transport = new DefaultChatTransport({
    api: `${server.url}/ai-sdk/demo`,
    prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
      body: { id, message: messages.at(-1), trigger, messageId },
    }),
  });
  const { chat, errors } = open(id, { transport });
  await chat.sendMessage({ text: "Hello" });
  await chat.sendMessage({ text: "approve" });
  const [{ approval }] = toolParts(chat.lastMessage);
  await chat.addToolApprovalResponse({ id: approval.id, approved: true });
  await until(() => /sent to ada/.test(texts(chat.lastMessage)) && chat.status === "ready");
  await chat.regenerate();
  assert.deepEqual(states(chat.lastMessage), [["tool-send_email", "approval-requested"]]);
  assert.deepEqual(errors, []);
  assert.equal(chat.messages.length, 4);
});

test("an error of the run and a refusal are sentences for the person", async () => {
  const page = open();
  await page.chat.sendMessage({ text: "fail" });
  assert.equal(page.chat.status, "error");
  const nobody = open(undefined, { agent: "nobody" });
  await nobody.chat.sendMessage({ text: "Hello" });
  assert.deepEqual([page.errors, nobody.errors], [
    ["The demo was asked to fail."], ['there is no agent "nobody"; the agents are: demo'],
  ]);
  await page.chat.sendMessage({ text: "Hello" });
  assert.equal(texts(page.chat.lastMessage), "Hello! How can I help you?");
});

test("the same request again is the same run", async () => {
  const page = open();
  void page.chat.sendMessage({ text: SLOW });
  await until(() => page.chat.messages.length === 2);
  const again = await fetch(`${server.url}/ai-sdk/demo`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(page.posts[0]),
  });
  assert.equal(again.headers.get("x-vercel-ai-ui-message-stream"), "v1");
  const chunks = await judge(await again.text());
  assert.equal(chunks.flatMap(({ delta }) => delta ?? []).join(""), countTo(40));
  await settled(page, 1);
  const { runs, messages } = await readThread(server, page.chat.id);
  assert.deepEqual([runs.length, messages.length], [1, 2]);
});

test("a picture of the page is stored, and state and activities are data", async () => {
  const page = open();
  const url = `data:image/png;base64,${Buffer.alloc(2000).toString("base64")}`;
  await page.chat.sendMessage({ text: "describe this", files: [{ type: "file", mediaType: "image/png", filename: "a.png", url }] });
  const [{ parts }] = await stored(page.chat.id);
  assert.deepEqual(parts.map(({ type, mediaType, filename }) => [type, mediaType, filename]), [
    ["file", "image/png", "a.png"], ["text", undefined, undefined],
  ]);
  assert.match(parts[0].url, /\/files\/file_/);
  await page.chat.sendMessage({ text: "plan a trip" });
  const plan = page.chat.lastMessage.parts.filter(({ type }) => type === "data-PLAN");
  assert.deepEqual(plan.map(({ data }) => data), [{ goal: "a trip", done: 2, of: 2 }]);
  assert.deepEqual([...new Set(page.data.map(({ type }) => type))], [
    "data-state", "data-PLAN", "data-state-delta", "data-agui-server.plan_finished",
  ]);
  await page.judged();
  assert.deepEqual(page.errors, []);
});
