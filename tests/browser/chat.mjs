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
  field: (page) => page.getByLabel("Message", { exact: true }),
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

/** Fills the demo's form in. */
export async function fillForm(page, size = "M") {
  await page.getByLabel("Name", { exact: true }).fill("Ada");
  await page.getByLabel("E-mail", { exact: true }).fill("ada@example.com");
  await page.getByLabel("Size", { exact: true }).selectOption(size);
}

export function testForms({ used, open, send, shows, field }) {
  const submit = (page) => button(page, "Send").first().click();

  test("a form is drawn by its schema, and the field for messages is locked until it is answered", async () => {
    const page = await open();
    await send(page, "form");
    await page.getByLabel("E-mail", { exact: true }).fill("ada");
    assert.ok(await field(page).isDisabled());
    // The browser does not send a form with a required field that is empty, or with a text of another format.
    await submit(page);
    const isInvalid = (label) => page.getByLabel(label, { exact: true }).evaluate((input) => !input.validity.valid);
    for (const label of ["Name", "E-mail", "Size"]) assert.ok(await isInvalid(label), label);
    await fillForm(page);
    await submit(page);
    await shows(page, "Thank you, Ada! Your T-shirt in size M is set aside, and ada@example.com gets a confirmation.");
    assert.deepEqual((await endedRuns(used, page)).interrupts, []);
    await page.locator("*:enabled").and(field(page)).waitFor();
  });

  test("a form whose answer the server refuses is shown again as it was filled in, with the reason at its field", async () => {
    const page = await open();
    await send(page, "form");
    await fillForm(page);
    // The page itself would not send this size.
    const change = (route) => route.continue({ postData: route.request().postData().replace('"size":"M"', '"size":"XXL"') });
    await page.route((url) => /send-message|\/run$/.test(url.pathname), change, { times: 1 });
    await submit(page);
    const size = page.getByLabel("Size", { exact: true });
    await page.locator("label", { has: size }).getByRole("alert").filter({ hasText: 'is not one of "S", "M" or "L"' }).waitFor();
    assert.equal(await size.getAttribute("aria-invalid"), "true");
    assert.equal(await page.getByLabel("E-mail", { exact: true }).inputValue(), "ada@example.com");
    await fillForm(page, "L");
    await submit(page);
    await shows(page, "Thank you, Ada! Your T-shirt in size L is set aside");
    used.problems.splice(0); // Some libraries write the refusal to the console.
  });

  test("a form can be declined, and the next message is answered", async () => {
    const page = await open();
    await send(page, "form");
    await button(page, "Decline").click();
    await shows(page, "All right, no T-shirt then.");
    await send(page, "hello");
    await shows(page, "Hello! How can I help you?");
  });
}

export function testFailure({ used, open, send, shows }) {
  test("a run that fails is shown with its reason, and the next message is answered", async () => {
    const page = await open();
    await send(page, "fail");
    await page.getByRole("alert").filter({ hasText: "The demo was asked to fail." }).waitFor();
    await send(page, "hello");
    await shows(page, "Hello! How can I help you?");
    used.problems.splice(0);
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

export function testReload({ used, open, send, shows }) {
  test("a reload during a run shows the conversation and the rest of the run", async () => {
    const page = await open();
    await send(page, "hello");
    await shows(page, "Hello! How can I help you?");
    await send(page, "count to 20");
    await shows(page, "1 2 3");
    await page.reload();
    await shows(page, "18 19 20");
    await shows(page, "Hello! How can I help you?");
    assert.deepEqual(statuses(await endedRuns(used, page, 2)), ["finished", "finished"]);
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
