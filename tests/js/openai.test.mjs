// OpenAI's SDK for JavaScript, unchanged, with the demo agent behind `/v1`.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import OpenAI from "openai";

import { startServer } from "./server.mjs";

let server;
let requests;
let client;
before(async () => {
  server = await startServer();
  // Counts what the SDK sends, and with it what it sends again.
  const counted = (...request) => {
    requests += 1;
    return fetch(...request);
  };
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none is needed", maxRetries: 2, fetch: counted });
});
after(() => server?.stop());

const asking = (content, more = {}) => ({ model: "demo", messages: [{ role: "user", content }], ...more });

const parameters = { type: "object", properties: { keyword: { type: "string" } }, required: ["keyword"] };
const tools = [{ type: "function", function: { name: "search_local_files", parameters } }];

test("the agents are the models", async () => {
  const models = [];
  for await (const model of client.models.list()) models.push(model.id);
  assert.deepEqual(models, ["demo"]);
  assert.equal((await client.models.retrieve("demo")).owned_by, "agui-server");
  await assert.rejects(client.models.retrieve("other"), OpenAI.NotFoundError);
});

test("an answer is one document, or a stream of the same text", async () => {
  const completion = await client.chat.completions.create(asking("count to 3"));
  assert.equal(completion.choices[0].message.content, "1 2 3");
  assert.equal(completion.choices[0].finish_reason, "stop");
  const stream = client.chat.completions.stream(asking("count to 3", { stream_options: { include_usage: true } }));
  const pieces = [];
  stream.on("content", (piece) => pieces.push(piece));
  const final = await stream.finalChatCompletion();
  assert.equal(final.choices[0].message.content, "1 2 3");
  assert.equal(pieces.join(""), "1 2 3");
});

test("the SDK runs its tools and sends the results", async () => {
  const found = [];
  const search = {
    name: "search_local_files",
    description: "Searches for files.",
    parameters,
    parse: JSON.parse,
    function: ({ keyword }) => {
      found.push(keyword);
      return JSON.stringify([`${keyword}.txt`]);
    },
  };
  for (const stream of [false, true]) {
    const body = asking("search for report files locally", { tools: [{ type: "function", function: search }], stream });
    const runner = client.chat.completions.runTools(body);
    assert.match(await runner.finalContent(), /report\.txt/);
  }
  assert.deepEqual(found, ["report", "report"]);
});

test("calls have an index in a stream", async () => {
  const stream = await client.chat.completions.create(
    asking("search for report files locally", { tools, stream: true }),
  );
  const calls = [];
  let reason;
  for await (const { choices } of stream) {
    calls.push(...(choices[0].delta.tool_calls ?? []));
    reason = choices[0].finish_reason ?? reason;
  }
  assert.deepEqual(calls.map(({ index, function: { name } }) => [index, name]), [[0, "search_local_files"]]);
  assert.equal(reason, "tool_calls");
});

test("a run that failed is not sent again", async () => {
  requests = 0;
  await assert.rejects(client.chat.completions.create(asking("fail")), (error) => {
    assert.ok(error instanceof OpenAI.InternalServerError, error);
    assert.equal(error.code, "demo_failure");
    return true;
  });
  assert.equal(requests, 1);
  const stream = await client.chat.completions.create(asking("fail", { stream: true }));
  const read = async () => {
    for await (const chunk of stream) assert.equal(chunk.object, "chat.completion.chunk");
  };
  await assert.rejects(read(), (error) => error instanceof OpenAI.APIError && error.code === "demo_failure");
});

test("a question for a person and an unknown parameter are errors of their classes", async () => {
  await assert.rejects(client.chat.completions.create(asking("approve")), (error) => {
    assert.ok(error instanceof OpenAI.UnprocessableEntityError, error);
    assert.equal(error.code, "person_needed");
    return true;
  });
  await assert.rejects(client.chat.completions.create(asking("hello", { n: 2 })), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError, error);
    assert.deepEqual([error.code, error.param, error.type], ["unsupported_parameter", "n", "invalid_request_error"]);
    return true;
  });
});

test("a key gets the same answer", async () => {
  const ask = () => client.chat.completions.create(asking("hello"), { headers: { "Idempotency-Key": "k" } });
  assert.equal((await ask()).id, (await ask()).id);
});
