// The second request of the same person: the same run id twice, after a break, from two tabs, a line of curl again, a new answer
// at once after a stop.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";

import { HttpAgent } from "@ag-ui/client";
import { ChatClient, fetchServerSentEvents } from "@tanstack/ai-client";
import { HttpAgent as HttpAgent0_0_59 } from "client-0-0-59";

import { startModel } from "../browser/model.mjs";
import { Tab, useTabs } from "./copilotkit.mjs";
import { cuttingProxy } from "./cut.mjs";
import { configFile, listen } from "./models.mjs";
import { startServer } from "./server.mjs";
import { parse } from "./sse.mjs";
import { CONTINUE, countTo, deltas, entry, promise, readThread, said, textOf, useServer } from "./threads.mjs";

const server = useServer();
useTabs();

const AGENTS = { "1.0.0": HttpAgent, "0.0.59": HttpAgent0_0_59 };
const restated = (events) => events.some(({ name }) => name === "agui-server.restated");
const contents = ({ messages }) => messages.map(({ role, content }) => [role, content]);

/** A page with one message. */
function mounted(Agent, url, threadId, message) {
  const page = new Agent({ url: `${url}/send-message`, threadId, initialMessages: [message] });
  // After a break these clients cancel their reader, and nothing handles the rejection.
  page.fetch = async (...request) => {
    const response = await fetch(...request);
    const reader = response.body.getReader();
    const cancel = () => reader.cancel().catch(() => {});
    const { ok, status, headers } = response;
    return { ok, status, headers, body: { getReader: () => ({ read: () => reader.read(), cancel }) } };
  };
  return page;
}

/** Asks for another answer to a message, and requires its first word within a second. */
async function answeredAnew(page, message) {
  page.setMessages([message]);
  const began = performance.now();
  let firstWord;
  const onTextMessageContentEvent = () => void (firstWord ??= performance.now() - began);
  await page.runAgent({ runId: "second" }, { onTextMessageContentEvent });
  assert.ok(firstWord < 1000, `the first word came after ${firstWord} ms`);
}

/** Polls a thread until none of its runs is running. */
async function ended(of, threadId) {
  for (const deadline = Date.now() + 20_000; ; await pause(20)) {
    const thread = await readThread(of, threadId);
    if (thread.activeRunId === undefined && thread.runs.length > 0) return thread;
    assert.ok(Date.now() < deadline, "the run has not ended");
  }
}

for (const [version, Agent] of Object.entries(AGENTS)) {
  test(`@ag-ui/client ${version}: a page that mounts twice has one run`, async () => {
    const [threadId, runId, message] = [randomUUID(), randomUUID(), said("count to 10")];
    const pages = [1, 2].map(() => mounted(Agent, server.url, threadId, message));
    await Promise.all(pages.map((page) => page.runAgent({ runId })));
    const stored = await ended(server, threadId);
    assert.equal(stored.runs.length, 1);
    for (const page of pages) assert.deepEqual(contents(page), [["user", "count to 10"], ["assistant", countTo(10)]]);
  });

  for (const wait of [0, 50, 250]) {
    test(`@ag-ui/client ${version}: the second mount, ${wait} ms after the first was taken away, has the answer`, async (t) => {
      // The client writes its abort to the console.
      for (const method of ["warn", "error"]) t.mock.method(console, method, () => {});
      const [threadId, runId, message] = [randomUUID(), randomUUID(), said("count to 10")];
      const first = mounted(Agent, server.url, threadId, message);
      const heard = deltas(2);
      const left = first.runAgent({ runId }, { onEvent: ({ event }) => heard.onEvent(event) });
      await heard.kept;
      first.abortRun();
      await pause(wait);
      const second = mounted(Agent, server.url, threadId, message);
      await second.runAgent({ runId });
      await left.catch(() => {});
      assert.deepEqual(contents(second), [["user", "count to 10"], ["assistant", countTo(10)]]);
      assert.deepEqual(contents(await ended(server, threadId)), contents(second));
    });
  }

  test(`@ag-ui/client ${version}: a page asks again after its connection broke`, async (t) => {
    for (const method of ["warn", "error"]) t.mock.method(console, method, () => {});
    const proxy = await cuttingProxy(server.url, [3]);
    t.after(proxy.close);
    const [threadId, runId] = [randomUUID(), randomUUID()];
    const page = mounted(Agent, proxy.url, threadId, said("count to 10"));
    await page.runAgent({ runId }).catch(() => {});
    assert.ok(!contents(page).at(-1)[1].endsWith("10"), "the first connection brought a part");
    await page.runAgent({ runId });
    const shown = contents(page);
    assert.deepEqual(shown, [["user", "count to 10"], ["assistant", countTo(10)]]);
    assert.deepEqual(contents(await ended(server, threadId)), shown);
  });

  for (const hasIds of [true, false]) {
    test(`@ag-ui/client ${version}: a constant run id, ${hasIds ? "with" : "without"} ids: each message is answered`, async () => {
      const threadId = randomUUID();
      const url = `${server.url}/send-message`;
      const page = new Agent({ url, threadId });
      if (!hasIds) {
        page.requestInit = function (input) {
          const messages = input.messages.map((message) => ({ ...message, id: "" }));
          return Agent.prototype.requestInit.call(this, { ...input, messages });
        };
      }
      for (const count of [2, 3, 4, 4]) {
        page.addMessage(said(`count to ${count}`));
        await page.runAgent({ runId: "run_1" });
        assert.equal(page.messages.at(-1).content, countTo(count));
      }
      const stored = await ended(server, threadId);
      assert.deepEqual(contents(stored), contents(page));
      assert.deepEqual(stored.runs.map(({ attempt }) => attempt), [4, 3, 2, 1]);
    });
  }
}

/** Counts the requests of pages. */
function counted(requests, fetching = fetch) {
  return (url, init) => (requests.push(`${init?.method ?? "GET"} ${new URL(url).pathname}`), fetching(url, init));
}

test("two pages with the documented fetch and one run id: each stream starts once, and none ends the other", async (t) => {
  const text = await readFile(new URL("../../docs/protocol.md", import.meta.url), "utf8");
  const [program] = /async function resumingFetch.*?\n}\n/s.exec(text);
  const resumingFetch = new Function("fetch", `${program} return resumingFetch;`);
  const proxy = await cuttingProxy(server.url, []);
  t.after(proxy.close);
  const [threadId, runId, message] = [randomUUID(), randomUUID(), said("count to 50")];
  const pages = [1, 2].map(() => {
    const requests = [];
    const page = mounted(HttpAgent, proxy.url, threadId, message);
    page.fetch = resumingFetch(counted(requests));
    return { page, requests };
  });
  await Promise.all(pages.map(({ page }) => page.runAgent({ runId, forwardedProps: CONTINUE })));
  for (const { page, requests } of pages) {
    assert.deepEqual(requests, ["POST /send-message"]);
    assert.deepEqual(contents(page), [["user", "count to 50"], ["assistant", countTo(50)]]);
  }
  assert.equal((await ended(server, threadId)).runs.length, 1);
});

test("two TanStack tabs of one detached run: each stream starts once, and none ends the other", async (t) => {
  const threadId = randomUUID();
  const whole = countTo(50);
  const open = (more) => {
    const [requests, errors, complete] = [[], [], promise()];
    const texts = (messages) => messages.flatMap(({ parts }) => parts.flatMap(({ content }) => content ?? []));
    const client = new ChatClient({
      threadId,
      connection: fetchServerSentEvents(`${server.url}/send-message`, {
        reconnect: { delayMs: 10 },
        fetchClient: counted(requests),
      }),
      forwardedProps: CONTINUE,
      onError: (error) => errors.push(String(error)),
      onMessagesChange: (messages) => void (texts(messages).includes(whole) && complete.keep()),
      ...more,
    });
    client.attach();
    t.after(() => client.dispose());
    return { client, requests, errors, complete: complete.kept };
  };
  const first = open();
  const sent = first.client.sendMessage("count to 50");
  for (;;) {
    const response = await fetch(`${server.url}/threads/${threadId}`);
    if (response.ok && (await response.json()).activeRunId) break;
    await pause(20);
  }
  const second = open({ persistence: true });
  await Promise.all([sent, first.complete, second.complete]);
  assert.deepEqual([first.errors, second.errors], [[], []]);
  assert.deepEqual(first.requests, ["POST /send-message"]);
  // The list of messages, and the run.
  assert.deepEqual(second.requests, ["GET /send-message", "GET /send-message"]);
  assert.equal((await ended(server, threadId)).runs.length, 1);
});

test("CopilotKit: two tabs send one run id at once, and both show its answer", async () => {
  const [threadId, runId, message] = [randomUUID(), randomUUID(), said("count to 10")];
  const tabs = await Promise.all([1, 2].map(() => Tab.open(server, { threadId })));
  await Promise.all(tabs.map(({ core, agent }) => (agent.addMessage({ ...message }), core.runAgent({ agent, runId }))));
  for (const tab of tabs) assert.equal((await tab.requireStored()).runs.length, 1);
});

const shell = async (line) => (await promisify(execFile)("sh", ["-c", line])).stdout;

/** Runs README's first line of curl against a server. Returns the events. */
async function pasteReadme(url) {
  const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
  const [line] = /curl -N http:\/\/127\.0\.0\.1:8080\/send-message.*?\n}'/s.exec(readme);
  return parse(await shell(line.replace("http://127.0.0.1:8080", url)));
}

test("README's line of curl streams each time that it is pasted", async () => {
  const texts = [];
  for (let times = 0; times < 3; times++) {
    const events = await pasteReadme(server.url);
    assert.ok(!restated(events) && events.at(-1).type === "RUN_FINISHED");
    texts.push(textOf(events));
  }
  assert.match(texts[0], /Beijing is sunny/);
  assert.deepEqual(texts, Array(3).fill(texts[0]));
});

describe("an agent that pays", () => {
  const paid = [];
  const config = (approval, url, model) => `default_agent = "assistant"
[agents.assistant]
kind = "llm"
provider = "openai"
model = "m"
base_url = "${model}"
api_key_env = "AGUI_TEST_MODEL_KEY"
tools = ["pay"]
[tools.pay]
kind = "http"
method = "POST"
url = "${url}/pay"
description = "Pays."
approval = "${approval}"
parameters = { type = "object", properties = { to = { type = "string" } } }
`;
  const USAGE = { prompt_tokens: 100, completion_tokens: 7, total_tokens: 107 };

  /** Starts a server whose tool needs an approval, or not. `hangs`: its service does not respond. */
  async function paying(t, approval, { hangs = false } = {}) {
    const service = await listen((request, response) => {
      paid.push(request.url);
      if (hangs) return;
      response.writeHead(200, { "content-type": "application/json" }).end('{"paid":true}');
    });
    const model = await startModel((messages) =>
      messages.at(-1).role === "tool" || paid.length > 0
        ? { text: `So: ${messages.at(-1).content}`, usage: USAGE }
        : { tool: "pay", arguments: { to: "Ada" }, usage: USAGE },
    );
    const file = await configFile(config(approval, service.url, model.url));
    const running = await startServer({ config: file.config });
    paid.length = 0;
    t.after(async () => {
      await running.stop();
      await Promise.all([service.stop(), model.stop(), file.remove()]);
    });
    return running;
  }

  test("README's line of curl pays once, and its repetitions say that they restate", async (t) => {
    const { url } = await paying(t, "never");
    const seen = [];
    for (let times = 0; times < 3; times++) seen.push(await pasteReadme(url));
    assert.deepEqual(seen.map(restated), [false, true, true]);
    assert.deepEqual(seen.map(textOf), Array(3).fill('So: {"paid":true}'));
    assert.deepEqual(seen.map((events) => events.at(-1).type), Array(3).fill("RUN_FINISHED"));
    assert.equal(paid.length, 1);
  });

  for (const [version, Agent] of Object.entries(AGENTS)) {
    test(`@ag-ui/client ${version}: mounted twice, cut and asked again: it pays once, and the page shows it`, async (t) => {
      for (const method of ["warn", "error"]) t.mock.method(console, method, () => {});
      const running = await paying(t, "never");
      const proxy = await cuttingProxy(running.url, [1], "TOOL_CALL_RESULT");
      t.after(proxy.close);
      const [threadId, runId, message] = [randomUUID(), randomUUID(), said("Pay")];
      const broken = mounted(Agent, proxy.url, threadId, message);
      const whole = mounted(Agent, running.url, threadId, message);
      await Promise.all([broken.runAgent({ runId }).catch(() => {}), whole.runAgent({ runId })]);
      await ended(running, threadId);
      await broken.runAgent({ runId });
      const stored = await ended(running, threadId);
      for (const page of [broken, whole]) {
        assert.deepEqual(page.messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
        assert.deepEqual(contents(page).at(-1), ["assistant", 'So: {"paid":true}']);
      }
      assert.deepEqual([paid.length, stored.runs.length], [1, 1]);
    });
  }

  test("a new answer after a stop does not wait for a tool that hangs", async (t) => {
    for (const method of ["warn", "error"]) t.mock.method(console, method, () => {});
    const running = await paying(t, "never", { hangs: true });
    const [threadId, message] = [randomUUID(), said("Pay")];
    const page = mounted(HttpAgent, running.url, threadId, message);
    const stopped = page.runAgent({ runId: "first" });
    while (paid.length === 0) await pause(5);
    page.abortRun();
    await stopped;
    await pause(50);
    await answeredAnew(page, message);
    assert.equal(paid.length, 1);
  });

  test("CopilotKit: a reply under the run id of its question keeps the tool's card, and counts both attempts", async (t) => {
    const running = await paying(t, "always");
    const tab = await Tab.open(running, { agentId: "assistant" });
    await tab.say("Pay");
    const [{ id, toolCallId }] = tab.agent.pendingInterrupts;
    const { runId } = tab.events[0];
    const content = JSON.stringify({ approved: true });
    tab.agent.addMessage({ id: randomUUID(), role: "tool", toolCallId, content });
    const resume = [entry(id, { approved: true })];
    await tab.core.runAgent({ agent: tab.agent, runId, resume });
    const stored = await tab.requireStored();
    const cards = tab.agent.messages.filter(({ role }) => role === "tool").map((message) => message.content);
    assert.deepEqual(cards, ['{"paid":true}']);
    assert.deepEqual(stored.runs.map((run) => [run.runId, run.attempt, run.status]), [
      [runId, 2, "finished"],
      [runId, 1, "interrupted"],
    ]);
    const tokens = stored.runs.map(({ usage }) => usage);
    assert.ok(tokens.every((of) => JSON.stringify(of).includes("100")), JSON.stringify(stored.runs));
    assert.equal(paid.length, 1);
    // The reply comes again.
    await tab.core.runAgent({ agent: tab.agent, runId, resume });
    assert.equal((await tab.requireStored()).runs.length, 2);
    assert.equal(paid.length, 1);
  });
});

/** Starts nginx with deploy/nginx.conf in front of a server. Returns `undefined` if it is not installed, which CI does not allow. */
async function startNginx(t, url) {
  const program = await shell("PATH=$PATH:/usr/sbin command -v nginx || true");
  if (!program) {
    assert.notEqual(process.env.CI, "true", "nginx is not installed: see tests/run.sh");
    return void t.skip("nginx is not installed");
  }
  const folder = await mkdtemp(join(tmpdir(), "agui-nginx-"));
  const free = createServer().listen(0, "127.0.0.1");
  await once(free, "listening");
  const address = `127.0.0.1:${free.address().port}`;
  free.close();
  const site = (await readFile(new URL("../../deploy/nginx.conf", import.meta.url), "utf8"))
    .replace("listen 80;", `listen ${address};`)
    .replace(/^ *server replica-2:8080.*\n/gm, "")
    .replaceAll("replica-1:8080", new URL(url).host);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const paths = temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(" ");
  const main = `daemon off; master_process off; pid ${folder}/pid; error_log stderr; events {} http { access_log off; ${paths} ${site} }`;
  await writeFile(join(folder, "nginx.conf"), main);
  const child = spawn(program.trim(), ["-e", "stderr", "-c", join(folder, "nginx.conf")], { stdio: "ignore" });
  t.after(async () => {
    child.kill("SIGKILL");
    await rm(folder, { recursive: true });
  });
  for (const deadline = Date.now() + 10_000; ; await pause(20)) {
    if (await fetch(`http://${address}/health`).then(() => true, () => false)) return `http://${address}`;
    assert.ok(Date.now() < deadline, "nginx does not listen");
  }
}

for (const [way, through] of [["direct", async (_, url) => url], ["through nginx", startNginx]]) {
  for (const wait of [0, 50, 250]) {
    test(`a new answer ${wait} ms after a stop, ${way}`, async (t) => {
      for (const method of ["warn", "error"]) t.mock.method(console, method, () => {});
      const url = await through(t, server.url);
      if (!url) return;
      const [threadId, message] = [randomUUID(), said("count to 20")];
      const page = mounted(HttpAgent, url, threadId, message);
      const heard = deltas(3);
      const stopped = page.runAgent({ runId: "first" }, { onEvent: ({ event }) => heard.onEvent(event) });
      await heard.kept;
      page.abortRun();
      await stopped;
      await pause(wait);
      await answeredAnew(page, message);
      assert.deepEqual(contents(page), [["user", "count to 20"], ["assistant", countTo(20)]]);
      const stored = await ended(server, threadId);
      assert.deepEqual(contents(stored), contents(page));
      // A stop that the server has not seen yet looks like a connection that was lost: the page then has the same run.
      if (wait === 250) assert.equal(stored.runs.length, 2);
    });
  }
}
