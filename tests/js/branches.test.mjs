// The client decides what the conversation is. Each client continues, regenerates, edits, goes back, repeats a request,
// reloads and trims its list; a fake provider records the conversation that the model was asked to continue.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";

import { HttpAgent } from "@ag-ui/client";
import { HttpAgent as HttpAgentOf0_0_59 } from "client-0-0-59";
import { JSDOM } from "jsdom";

import { Tab, useTabs } from "./copilotkit.mjs";
import { useAGUIStream } from "./named-events-hook.mjs";
import { agentOn, configFile, startCountingModel } from "./models.mjs";
import { startServer } from "./server.mjs";
import { Page, said } from "./threads.mjs";

// React reads `window` when it is imported.
const { window } = new JSDOM("<!doctype html>", { url: "http://localhost:3000/" });
Object.assign(globalThis, { window, document: window.document, IS_REACT_ACT_ENVIRONMENT: true });
if (!("navigator" in globalThis)) globalThis.navigator = window.navigator;
const { act, createElement } = await import("react");
const { createRoot } = await import("react-dom/client");

let model, file, server;
before(async () => {
  model = await startCountingModel();
  file = await configFile(agentOn("openai", model.url));
  server = await startServer({ config: file.config });
});
after(async () => {
  await server?.stop();
  await Promise.all([model?.stop(), file?.remove()]);
});

// --- Clients --------------------------------------------------------------------------------------

/** A page around an agent of @ag-ui/client, of any version. */
class AgentPage {
  constructor(agent, run = () => agent.runAgent()) {
    this.agent = agent;
    this.run = run;
  }
  get shown() {
    return this.agent.messages;
  }
  set shown(messages) {
    this.agent.setMessages(messages);
  }
  /** Runs the agent with the messages that the page shows. Returns the conversation sent to the model. */
  send() {
    return asked(() => this.run());
  }
}

/** A page with the guide's React hook, which keeps messages without ids. */
class HookPage {
  shown = [];
  constructor(threadId) {
    this.threadId = threadId;
    this.root = createRoot(document.createElement("div"));
  }
  async open() {
    const Chat = () => ((this.hook = useAGUIStream("token")), createElement("p"));
    await act(() => this.root.render(createElement(Chat)));
    return this;
  }
  async send() {
    const before = this.hook.response.length;
    const messages = this.shown.map(({ role, content }) => ({ role, content }));
    const conversation = await asked(() => act(() => this.hook.sendMessage(messages, this.threadId)));
    this.shown.push({ role: "assistant", content: this.hook.response.slice(before) });
    return conversation;
  }
}

/** Returns the conversation that `run` has the model continue, without the system prompt. */
async function asked(run) {
  const count = model.asked.length;
  await run();
  assert.equal(model.asked.length, count + 1, "the model is asked once");
  return model.asked.at(-1);
}

const clients = {
  "@ag-ui/client 1.0.0": {
    open: (threadId) => new AgentPage(new HttpAgent({ url: `${server.url}/send-message`, threadId })),
    async connect(threadId) {
      const page = new Page(server, { threadId });
      await page.connectAgent();
      return new AgentPage(page);
    },
  },
  "@ag-ui/client 0.0.59": {
    open: (threadId) => new AgentPage(new HttpAgentOf0_0_59({ url: `${server.url}/send-message`, threadId })),
  },
  "@copilotkit/core": {
    async open(threadId) {
      const tab = await Tab.open(server, { threadId, agentId: "assistant" });
      return new AgentPage(tab.agent, () => tab.core.runAgent({ agent: tab.agent }));
    },
    async connect(threadId) {
      const tab = await Tab.open(server, { threadId, agentId: "assistant" });
      await tab.comeBack();
      return new AgentPage(tab.agent, () => tab.core.runAgent({ agent: tab.agent }));
    },
  },
  "the hook of the named-event endpoints": {
    hasNoIds: true,
    open: (threadId) => new HookPage(threadId).open(),
  },
};

// --- Tests ----------------------------------------------------------------------------------------

for (const [name, { open, connect, hasNoIds }] of Object.entries(clients)) {
  describe(name, () => {
    if (name === "@copilotkit/core") useTabs();
    let real, threadId, page, answers;
    before(() => {
      real = globalThis.fetch;
      // The hook requests a path; in a browser it would be relative to the page.
      if (hasNoIds) globalThis.fetch = (path, options) => real(new URL(path, server.url), options);
    });
    after(() => (globalThis.fetch = real));

    /** Starts a thread and sends each text. The responses are "a1", "a2"…, numbered by request. */
    async function conversation(...texts) {
      threadId = randomUUID();
      page = await open(threadId);
      answers = [];
      for (const text of texts) await say(text);
    }
    async function say(text) {
      page.shown = [...page.shown, said(text)];
      const conversation = await page.send();
      answers.push(page.shown.at(-1).content);
      return conversation;
    }

    test("a new message follows the conversation", async () => {
      await conversation("one", "two");
      const [a1, a2] = answers;
      assert.deepEqual(await say("three"), ["one", a1, "two", a2, "three"]);
    });

    test("regenerate: the last response is made again", async () => {
      await conversation("one", "two");
      const [a1] = answers;
      page.shown = page.shown.slice(0, -1);
      assert.deepEqual(await page.send(), ["one", a1, "two"]);
      const again = page.shown.at(-1).content;
      assert.deepEqual(await say("three"), ["one", a1, "two", again, "three"]);
    });

    for (const keepsId of hasNoIds ? [false] : [true, false]) {
      test(`an edited message starts a new branch${hasNoIds ? "" : keepsId ? ", with the same id" : ", with a new id"}`, async () => {
        await conversation("one", "two", "three");
        const [a1] = answers;
        const { id } = page.shown[2];
        page.shown = [...page.shown.slice(0, 2), said("two, but better", keepsId ? id : randomUUID())];
        assert.deepEqual(await page.send(), ["one", a1, "two, but better"]);
        const again = page.shown.at(-1).content;
        assert.deepEqual(await say("four"), ["one", a1, "two, but better", again, "four"]);
      });
    }

    test("going back two turns starts a new branch", async () => {
      await conversation("one", "two", "three");
      const [a1] = answers;
      page.shown = page.shown.slice(0, 2);
      assert.deepEqual(await say("something else"), ["one", a1, "something else"]);
    });

    test("the same request sent twice has the model continue the same conversation twice", async () => {
      await conversation("one", "two");
      const [a1] = answers;
      const request = page.shown.slice(0, -1);
      for (let times = 0; times < 2; times++) {
        page.shown = [...request];
        assert.deepEqual(await page.send(), ["one", a1, "two"]);
      }
    });

    test("a reload without connect: the next message continues the conversation, and the page receives all messages", async () => {
      await conversation("one", "two");
      const [a1, a2] = answers;
      page = await open(threadId);
      assert.deepEqual(await say("three"), ["one", a1, "two", a2, "three"]);
      // The named-event endpoints have no event for message snapshots.
      if (hasNoIds) return;
      assert.deepEqual(page.shown.slice(0, 5).map(({ content }) => content), ["one", a1, "two", a2, "three"]);
    });

    if (connect) {
      test("a reload with connect: the page shows all messages, and the next one continues the conversation", async () => {
        await conversation("one", "two");
        const [a1, a2] = answers;
        page = await connect(threadId);
        assert.deepEqual(page.shown.map(({ content }) => content), ["one", a1, "two", a2]);
        assert.deepEqual(await say("three"), ["one", a1, "two", a2, "three"]);
      });

      test("connect on a thread that does not exist shows no messages, and the first message starts the thread", async () => {
        threadId = randomUUID();
        page = await connect(threadId);
        assert.deepEqual(page.shown, []);
        answers = [];
        assert.deepEqual(await say("one"), ["one"]);
      });
    }

    test("a client that sends only new messages continues the whole conversation", async () => {
      await conversation("one");
      const [a1] = answers;
      page.shown = [];
      assert.deepEqual(await say("two"), ["one", a1, "two"]);
      page.shown = [];
      assert.deepEqual(await say("three"), ["one", a1, "two", answers[1], "three"]);
    });

    test("a client that sends the last 10 messages continues the whole conversation, without duplicates", async () => {
      const texts = ["one", "two", "three", "four", "five", "six", "seven"];
      await conversation(...texts);
      const whole = texts.flatMap((text, at) => [text, answers[at]]);
      page.shown = page.shown.slice(-10);
      assert.deepEqual(await say("eight"), [...whole, "eight"]);
      page.shown = page.shown.slice(-10);
      assert.deepEqual(await say("nine"), [...whole, "eight", answers[7], "nine"]);
    });

    test("a stale second tab continues the messages that it shows", async () => {
      await conversation("one");
      const [a1] = answers;
      const first = page;
      const stale = [...page.shown];
      await say("two, in the first tab");
      page = await open(threadId);
      page.shown = stale;
      assert.deepEqual(await say("two, in the second tab"), ["one", a1, "two, in the second tab"]);
      // The first tab continues its own branch, too.
      page = first;
      assert.deepEqual((await say("three")).slice(0, 3), ["one", a1, "two, in the first tab"]);
    });
  });
}
