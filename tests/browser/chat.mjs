// Tests that the pages of several libraries share. Each page brings its actions: `send(page, text)`, `shows(page, text)`,
// which waits for a text, and `stop(page)`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { endedRuns, statuses } from "./browser.mjs";

export const button = (page, name) => page.getByRole("button", { name, exact: true });

/** The actions of a page with an input "Message" and buttons "Send" and "Stop". */
export const labelled = {
  async send(page, text) {
    await page.getByLabel("Message", { exact: true }).fill(text);
    await button(page, "Send").last().click();
  },
  shows: (page, text) => page.locator("body", { hasText: text }).waitFor(),
  stop: (page) => button(page, "Stop").click(),
};

export function testPageTool({ used, open, send, shows }) {
  test("the agent calls the page's tool and continues with its result", async () => {
    const page = await open();
    await send(page, "search for report files locally");
    await shows(page, "Found 2 files: report-2025.pdf and report-2026.pdf");
    assert.deepEqual(statuses(await endedRuns(used, page, 2)), ["finished", "finished"]);
  });
}

export function testApproval({ used, open, send, shows }) {
  for (const [name, says] of [["Approve", "sent to ada@example.com"], ["Decline", "declined, so it was not sent"]]) {
    test(`"approve" asks the user, who presses ${name}`, async () => {
      const page = await open();
      await send(page, "approve");
      await page.getByText('Send the e-mail "Lunch" to ada@example.com?').waitFor();
      await button(page, name).click();
      await shows(page, `The e-mail "Lunch": ${says}.`);
      assert.deepEqual((await endedRuns(used, page)).interrupts, []);
    });
  }
}

export function testDeclinedForm({ open, send, shows }) {
  test("a form that the page cannot draw can be declined, and the next message is answered", async () => {
    const page = await open();
    await send(page, "form");
    await button(page, "Decline").click();
    await shows(page, "All right, no T-shirt then.");
    await send(page, "hello");
    await shows(page, "Hello! How can I help you?");
  });
}

export function testStop({ used, open, send, shows, stop }) {
  test("Stop ends the run on the server", async () => {
    const page = await open();
    await send(page, "count to 200");
    await shows(page, "1 2 3");
    await stop(page);
    assert.deepEqual(statuses(await endedRuns(used, page)), ["cancelled"]);
    await send(page, "hello");
    await shows(page, "Hello! How can I help you?");
  });
}

export function testStopAfterReload({ used, open, send, shows, stop }) {
  test("a reloaded page can stop the run", async () => {
    const page = await open();
    await send(page, "count to 200");
    await shows(page, "1 2 3");
    await page.reload();
    await shows(page, "1 2 3 4");
    await stop(page);
    assert.deepEqual(statuses(await endedRuns(used, page)), ["cancelled"]);
  });
}
