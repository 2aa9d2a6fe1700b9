// Two tabs of one thread, examples/web/copilotkit, with a model whose tool has an effect: both show the question.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { endedThread, shot, useBrowser } from "./browser.mjs";
import { button } from "./chat.mjs";
import { startModel } from "./model.mjs";

/** The effects of the tool. */
const trips = [];
const service = createServer((request, response) => {
  trips.push(request.url);
  response.writeHead(200, { "content-type": "application/json" }).end('{"booked":true}');
}).listen(0, "127.0.0.1");
await once(service, "listening");
const model = await startModel((messages) => {
  const last = messages.at(-1);
  return last.role === "user" && /Book/.test(JSON.stringify(last.content))
    ? { tool: "book_trip", arguments: { to: "Beijing" } }
    : { text: last.role === "tool" ? `So: ${last.content}` : "Hello!" };
});
const folder = mkdtempSync(join(tmpdir(), "agui-two-tabs-"));
const config = join(folder, "agui.toml");
writeFileSync(config, `default_agent = "assistant"
[agents.assistant]
kind = "llm"
provider = "openai"
model = "m"
base_url = "${model.url}"
api_key_env = "TEST_KEY"
tools = ["book_trip"]
[tools.book_trip]
kind = "http"
method = "POST"
url = "http://127.0.0.1:${service.address().port}/trips"
description = "Books a trip."
approval = "always"
parameters = { type = "object", properties = { to = { type = "string" } }, required = ["to"] }
`);
after(() => {
  model.stop();
  service.close();
  rmSync(folder, { recursive: true });
});

const used = useBrowser({ config, variables: { TEST_KEY: "key" } });
const field = (page) => page.getByTestId("copilot-chat-textarea");

/** Opens two tabs of a new thread that show the question. `isDeaf`: the second one hears nothing of the first. */
async function askedInTwoTabs(isDeaf) {
  const one = await used.open("copilotkit");
  await field(one).fill("Book a trip");
  await field(one).press("Enter");
  await button(one, "Approve").waitFor();
  const threadId = await one.evaluate(() => sessionStorage.thread);
  const two = await used.newPage();
  await two.addInitScript((thread) => (sessionStorage.thread = thread), threadId);
  if (isDeaf) await two.routeWebSocket(/socket/, () => {});
  await used.load(two, "copilotkit");
  await button(two, "Approve").waitFor();
  return { one, two, threadId, before: trips.length };
}

for (const [first, second, says, ran] of [
  ["Decline", "Approve", "So: The user declined this call.", 0],
  ["Approve", "Decline", 'So: {"booked":true}', 1],
]) {
  test(`${first} in one tab, then ${second} in the other: the first decides`, async () => {
    const { one, two, threadId, before } = await askedInTwoTabs(true);
    await button(one, first).click();
    await one.getByText(says).waitFor();
    const stored = await endedThread(used.server, threadId);
    await button(two, second).click();
    await two.getByText(says).waitFor();
    assert.equal(await button(two, "Approve").count(), 0);
    const now = await endedThread(used.server, threadId);
    assert.deepEqual([now.messages, now.interrupts, now.runs], [stored.messages, [], stored.runs]);
    await field(two).fill("Hello");
    await field(two).press("Enter");
    await two.getByText("Hello!").waitFor();
    assert.equal(trips.length - before, ran);
  });

  test(`${first} in one tab: the other one shows it, and its buttons go`, async () => {
    const { one, two, before } = await askedInTwoTabs(false);
    assert.ok(await field(two).isDisabled(), "no message can be typed that would not be sent");
    await button(one, first).click();
    await two.getByText(says).waitFor();
    await button(two, "Approve").waitFor({ state: "detached" });
    assert.equal(trips.length - before, ran);
    await field(two).fill("Hello");
    await field(two).press("Enter");
    await two.getByText("Hello!").waitFor();
  });
}

for (const isReloaded of [false, true]) {
  test(`an approval that ${isReloaded ? "a reloaded page" : "the page"} shows runs the call once, and the call keeps the tool's result`, async () => {
    const page = await used.open("copilotkit");
    const before = trips.length;
    await field(page).fill("Book a trip");
    await field(page).press("Enter");
    await button(page, "Approve").waitFor();
    await shot(page, "approval-live");
    if (isReloaded) {
      await page.reload();
      await button(page, "Approve").waitFor();
      await shot(page, "approval-reloaded");
    }
    await button(page, "Approve").click();
    const shown = async () => {
      await page.getByText('So: {"booked":true}').waitFor();
      await page.locator(".card", { hasText: 'book_trip {"booked":true}' }).waitFor();
      await button(page, "Approve").waitFor({ state: "detached" });
      assert.equal(await page.getByText('{"approved":true}').count(), 0);
    };
    await shown();
    await shot(page, `approved-${isReloaded}`);
    await page.reload();
    await shown();
    await shot(page, `approved-${isReloaded}-after`);
    const thread = await endedThread(used.server, await page.evaluate(() => sessionStorage.thread));
    const results = thread.messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    assert.deepEqual([results, thread.interrupts], [['{"booked":true}'], []]);
    assert.equal(trips.length - before, 1);
    assert.ok(await field(page).isEnabled());
  });
}
