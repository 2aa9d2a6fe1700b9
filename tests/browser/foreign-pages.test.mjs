// Web pages of other origins in a browser that reaches the server: nothing that they send has an effect.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { startServer } from "../js/server.mjs";
import { endedThread, useBrowser } from "./browser.mjs";

/** Host names that lead to this machine, as those of somebody who answers DNS queries can. */
const [FOREIGN, REBOUND] = ["foreign.example", "rebound.example"];
const used = useBrowser({
  names: [FOREIGN, "foreign.localhost", REBOUND],
  // Other pages of this machine are foreign, too.
  variables: { AGUI_CORS__ALLOW_LOCALHOST: "false" },
  // Chromium by itself keeps some pages from this machine. Other browsers do not.
  flags: ["--disable-features=LocalNetworkAccessChecks"],
});

const RUN = "running";
const JSON_TYPE = "application/json";

async function json(url, options) {
  const response = await fetch(url, options);
  return { status: response.status, body: await response.json() };
}

/** Starts a detached run that counts for minutes. Returns its thread when the run has sent events. */
async function startRun({ url }) {
  const threadId = randomUUID();
  const messages = [{ id: "m", role: "user", content: "count to 3000" }];
  const input = { threadId, runId: RUN, messages, forwardedProps: { onDisconnect: "continue" } };
  const headers = { "content-type": JSON_TYPE };
  const { body } = await fetch(`${url}/send-message`, { method: "POST", headers, body: JSON.stringify(input) });
  const reader = body.getReader();
  await reader.read();
  await reader.cancel();
  return threadId;
}

/** Returns the requests that have an effect, each with a body for POST. */
function effects(url, threadId) {
  const input = (runId) => ({ threadId: "started", runId, messages: [{ id: "m", role: "user", content: "hello" }] });
  const stop = { method: "agent/stop", params: { agentId: "demo", threadId }, body: { runId: RUN } };
  return [
    ["POST", `${url}/threads/${threadId}/runs/${RUN}/cancel`, {}],
    ["POST", `${url}/copilotkit/agent/demo/stop/${threadId}`, { runId: RUN }],
    ["POST", `${url}/copilotkit`, stop],
    ["POST", `${url}/send-message`, input("a")],
    ["POST", `${url}/agents/demo/send-message`, input("b")],
    ["POST", `${url}/agent/chat/stream`, { thread_id: "started", messages: [{ role: "user", content: "hello" }] }],
    ["PATCH", `${url}/threads/${threadId}`, { title: "changed" }],
    ["DELETE", `${url}/threads/${threadId}`],
  ];
}

async function newPage() {
  const page = await used.context.newPage();
  page.setDefaultTimeout(30_000);
  return page;
}

/** Opens an empty page of an origin. */
async function openPage(origin) {
  const page = await newPage();
  await page.goto(`${origin}/empty`);
  return page;
}

/** Sends the requests from the page in each way that a script has. Resolves when all of them have ended. */
async function sendAll(page, requests) {
  const beacons = [];
  page.on("requestfinished", (request) => beacons.push(request.url()));
  page.on("requestfailed", (request) => beacons.push(request.url()));
  await page.evaluate(async (requests) => {
    const sent = [];
    for (const [method, url, value] of requests) {
      const body = value && JSON.stringify(value);
      // With a preflight.
      sent.push(fetch(url, { method, headers: { "content-type": "application/json" }, body }));
      if (method !== "POST") continue;
      // Without a preflight.
      for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
        sent.push(fetch(url, { method, mode: "no-cors", headers: { "content-type": type }, body, keepalive: true }));
      }
      sent.push(fetch(url, { method, mode: "no-cors" }));
      sent.push(fetch(url, { method, mode: "no-cors", body: new Blob([body]), credentials: "include" }));
      navigator.sendBeacon(`${url}?beacon`, body);
      // A form whose text is JSON: the name of its field is the beginning, its value the end.
      const [frame, form, field] = ["iframe", "form", "input"].map((name) => document.createElement(name));
      frame.name = `frame${sent.length}`;
      Object.assign(form, { action: url, method: "post", enctype: "text/plain", target: frame.name });
      Object.assign(field, { name: `${body.slice(0, -1)}${body === "{}" ? "" : ","}"":"`, value: '"}' });
      form.append(field);
      document.body.append(frame, form);
      sent.push(new Promise((done) => (frame.onload = done)));
      form.submit();
    }
    return Promise.allSettled(sent);
  }, requests);
  const expected = requests.filter(([method]) => method === "POST").length;
  const deadline = Date.now() + 30_000;
  while (beacons.filter((url) => url.endsWith("?beacon")).length < expected) {
    assert.ok(Date.now() < deadline, "not all beacons were sent");
    await new Promise((done) => setTimeout(done, 20));
  }
}

for (const host of [FOREIGN, "foreign.localhost", "localhost"]) {
  test(`a page at ${host} on another port changes nothing`, async () => {
    const { url } = used.server;
    const threadId = await startRun(used.server);
    const page = await openPage(`http://${host}:${used.pages.port}`);
    await sendAll(page, effects(url, threadId));

    const { body: thread } = await json(`${url}/threads/${threadId}`);
    assert.equal(thread.activeRunId, RUN);
    assert.notEqual(thread.title, "changed");
    const { body: list } = await json(`${url}/threads`);
    assert.deepEqual(list.threads.map((thread) => thread.threadId), [threadId], "no run was started");
    await fetch(`${url}/threads/${threadId}`, { method: "DELETE" });
  });

  test(`a page at ${host} on another port reads nothing`, async () => {
    const page = await openPage(`http://${host}:${used.pages.port}`);
    const read = await page.evaluate(async (url) => {
      const paths = ["/", "/threads", "/agents", "/copilotkit/info"];
      const responses = await Promise.allSettled(paths.map(async (path) => (await fetch(url + path)).text()));
      return responses.map(({ status }) => status);
    }, used.server.url);
    assert.deepEqual(new Set(read), new Set(["rejected"]));
  });
}

test("the same requests of an allowed page have an effect", async () => {
  const server = await startServer();
  try {
    const { url } = server;
    const threadId = await startRun(server);
    const page = await openPage(`http://localhost:${used.pages.port}`);
    const requests = effects(url, threadId);
    await sendAll(page, requests.filter(([method]) => method !== "DELETE"));
    const thread = await endedThread(server, threadId);
    assert.deepEqual([thread.runs[0].status, thread.title], ["cancelled", "changed"]);
    await sendAll(page, requests.filter(([method]) => method === "DELETE"));
    assert.equal((await fetch(`${url}/threads/${threadId}`)).status, 404);
    assert.equal((await fetch(`${url}/threads/started`)).status, 200);
  } finally {
    await server.stop();
  }
});

test("a page whose host name now resolves to the server is refused", async () => {
  const { url } = used.server;
  const threadId = await startRun(used.server);
  // The page itself came from elsewhere. Its next requests reach the server, with the same origin.
  const origin = `http://${REBOUND}:${new URL(url).port}`;
  const page = await newPage();
  await page.route(`${origin}/`, (route) => route.fulfill({ contentType: "text/html", body: "<!doctype html>" }));
  await page.goto(`${origin}/`);
  const answers = await page.evaluate(async (requests) => {
    const answer = async ([method, url, value]) => {
      const body = value && JSON.stringify(value);
      const response = await fetch(url, { method, headers: { "content-type": "application/json" }, body });
      return [method, new URL(url).pathname, response.status, (await response.json()).error?.code];
    };
    return Promise.all(requests.map(answer));
  }, [...effects(origin, threadId), ["GET", `${origin}/threads`], ["GET", `${origin}/threads/${threadId}`]]);
  for (const [method, path, ...answer] of answers) {
    assert.deepEqual(answer, [403, "host_not_allowed"], `${method} ${path}`);
  }
  const { body: thread } = await json(`${url}/threads/${threadId}`);
  assert.equal(thread.activeRunId, RUN);
  await fetch(`${url}/threads/${threadId}`, { method: "DELETE" });
});
