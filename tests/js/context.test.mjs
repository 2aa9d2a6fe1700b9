// A conversation that is longer than the model's context window, with the policy "summarise": @ag-ui/client in front,
// aimock as the provider of the agent and of the one that writes summaries.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";

import { agentOn, configFile, startModel } from "./models.mjs";
import { Page, textOf, useServer } from "./threads.mjs";

const SUMMARY = "The user sent long words.";
/** About 250 tokens. */
const long = (id, number) => `${"a long word ".repeat(80)}${id} message ${number}.`;
const textsOf = ({ messages }) => JSON.stringify(messages.filter(({ role }) => role !== "system"));

describe("a summary", () => {
  let model, file;
  before(async () => {
    model = await startModel();
    const context = 'max_tokens = 100\ncontext = { window = 1300, policy = "summarise", summariser = "writer" }\n';
    const assistant = agentOn("openai", model.url, { more: context });
    const writer = agentOn("openai", model.url, { name: "writer" });
    file = await configFile(`default_agent = "assistant"\n${assistant}${writer}`);
    // The writer is asked about a conversation, in one message.
    model.on({ predicate: (request) => textsOf(request).includes("<conversation>") }, { content: SUMMARY });
    model.on({ predicate: (request) => textsOf(request).includes(SUMMARY) }, { content: "I know the summary." });
    model.on({ predicate: () => true }, { content: "Yes." });
  });
  const server = useServer(() => ({ config: file.config }));
  after(() => Promise.all([model?.stop(), file?.remove()]));

  test("is an activity of the page and of the thread, and later runs use it", async () => {
    const [page, id] = [new Page(server, {}), randomUUID()];
    for (const number of [1, 2, 3, 4]) {
      assert.equal(textOf((await page.say(long(id, number))).events), "Yes.");
    }
    const { events, finished } = await page.say(long(id, 5));
    assert.deepEqual(finished, ["success"]);
    assert.equal(textOf(events), "I know the summary.");
    const [activity, ...more] = page.messages.filter(({ role }) => role === "activity");
    assert.deepEqual(more, []);
    assert.equal(activity.activityType, "agui-server.context_summary");
    assert.equal(activity.content.summary, SUMMARY);
    assert.equal(activity.content.firstMessageId, page.messages[0].id);
    const stored = await page.requireStored();
    assert.equal(stored.messages.length, 11, "the thread keeps all messages");
    assert.equal(textOf((await page.say("And now?")).events), "I know the summary.");

    // A page that comes back has the same messages.
    const again = new Page(server, { threadId: page.threadId });
    await again.comeBack();
    await again.requireStored();
    assert.equal(textOf((await again.say("Still there?")).events), "I know the summary.");
    await again.requireStored();
  });
});
