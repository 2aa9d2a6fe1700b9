// Surfaces (A2UI) in the playground: components, data, buttons that reach the agent. SHOTS names a folder for screenshots.

import assert from "node:assert/strict";
import { test } from "node:test";

import { endedThread, shot } from "./browser.mjs";
import { button } from "./chat.mjs";
import { answerWith, ask, chat, send, shows, usePlayground } from "./playground.mjs";

const { used, open } = usePlayground();
const PHONE = { width: 390, height: 844 };
const surface = (page) => chat(page).locator(".surface").last();
const threadOf = (page) => decodeURIComponent(page.url()).match(/[0-9a-f]{8}-[0-9a-f-]{27}/)[0];

/** Answers the page's runs with a surface, in place of the server. Returns the requests. */
async function draw(page, components, data) {
  const requests = [];
  const of = { surfaceId: "s" };
  const operations = [
    { version: "v0.9", createSurface: { ...of, catalogId: "c" } },
    { version: "v0.9", updateComponents: { ...of, components } },
    { version: "v0.9", updateDataModel: { ...of, path: "/", value: data } },
  ];
  page.on("request", (request) => request.url().endsWith("/send-message") && requests.push(request.postDataJSON()));
  await answerWith(page, ({ threadId, runId }) => [
    { type: "ACTIVITY_SNAPSHOT", messageId: "surface", activityType: "a2ui-surface", content: { a2ui_operations: operations } },
    { type: "RUN_FINISHED", threadId, runId },
  ]);
  return requests;
}

test("the demo's form is drawn, what is typed reaches the agent with the click, and a reload shows the form again", async () => {
  const page = await open();
  await ask(page, "show a form", "the page draws:");
  const form = surface(page);
  await form.getByRole("heading", { name: "A table for two" }).waitFor();
  assert.equal(await form.getByLabel("Day").inputValue(), "Friday");
  await form.getByLabel("Your name").fill("Ada");
  await form.getByLabel("Day").fill("Sunday");
  await shot(page, "surface-form");
  await button(form, "Book").click();
  await shows(page, "Thank you, Ada! A table is booked for Sunday.");
  assert.equal(await form.getByLabel("Your name").inputValue(), "Ada", "a run does not empty the fields");
  const { runs } = await endedThread(used.server, threadOf(page), 2);
  assert.deepEqual(runs.map(({ status }) => status), ["finished", "finished"]);
  await page.reload();
  await shows(page, "Thank you, Ada! A table is booked for Sunday.");
  await surface(page).getByLabel("Your name").waitFor();
  assert.equal(await chat(page).locator(".surface").count(), 1);
  await page.setViewportSize(PHONE);
  await shot(page, "surface-form-390");
});

const CATALOG = [
  { id: "root", component: "Card", child: "all" },
  { id: "all", component: "Column", children: ["title", "caption", "line", "tabs", "buttons"] },
  { id: "title", component: "Text", text: { call: "formatString", args: { value: "A trip to ${/city}" } }, variant: "h2" },
  { id: "caption", component: "Text", text: "With **each** component", variant: "body" },
  { id: "line", component: "Divider" },
  { id: "tabs", component: "Tabs", tabs: [{ title: "Who", child: "who" }, { title: "When", child: "when" }, { title: "Shown", child: "shown" }] },
  { id: "who", component: "Column", children: ["names", "note", "diet", "kind"] },
  { id: "names", component: "Row", children: ["city", "mail"] },
  { id: "city", component: "TextField", label: "City", value: { path: "/city" }, weight: 1 },
  {
    id: "mail", component: "TextField", label: "E-mail", value: { path: "/mail" }, weight: 1,
    checks: [{ condition: { call: "email", args: { value: { path: "/mail" } } }, message: "An address, please" }],
  },
  { id: "note", component: "TextField", label: "Note", variant: "longText", value: { path: "/note" } },
  { id: "diet", component: "CheckBox", label: "Vegetarian", value: { path: "/diet" } },
  {
    id: "kind", component: "ChoicePicker", label: "By", variant: "multipleSelection", displayStyle: "chips", value: { path: "/by" },
    options: [{ label: "Train", value: "train" }, { label: "Boat", value: "boat" }],
  },
  { id: "when", component: "Column", children: ["day", "hour", "people", "class"] },
  { id: "day", component: "DateTimeInput", label: "Day", enableDate: true, value: { path: "/day" } },
  { id: "hour", component: "DateTimeInput", label: "Hour", enableTime: true, value: { path: "/hour" } },
  { id: "people", component: "Slider", label: "People", min: 1, max: 8, step: 1, value: { path: "/people" } },
  { id: "class", component: "ChoicePicker", label: "Class", value: { path: "/class" }, options: [{ label: "First", value: "1" }, { label: "Second", value: "2" }] },
  { id: "shown", component: "Column", children: ["list", "picture", "elsewhere", "star"] },
  { id: "list", component: "List", listStyle: "unordered", children: { componentId: "stop", path: "/stops" } },
  { id: "stop", component: "Row", align: "center", children: ["stopIcon", "stopName"] },
  { id: "stopIcon", component: "Icon", name: "arrowForward" },
  { id: "stopName", component: "Text", text: { path: "name" } },
  { id: "picture", component: "Image", description: "A dot", url: "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=" },
  { id: "elsewhere", component: "Image", description: "A map", url: "https://maps.example.com/map.png" },
  { id: "star", component: "Icon", name: { svgPath: "M12 2 15 9h7l-6 4 2 7-6-4-6 4 2-7-6-4h7z" } },
  { id: "buttons", component: "Row", justify: "spaceBetween", children: ["more", "book"] },
  { id: "more", component: "Modal", trigger: "moreButton", content: "terms" },
  { id: "moreButton", component: "Button", variant: "borderless", child: "moreLabel" },
  { id: "moreLabel", component: "Text", text: "Terms" },
  { id: "terms", component: "Text", text: "All sales are final." },
  {
    id: "book", component: "Button", variant: "primary", child: "bookLabel",
    checks: [{ condition: { call: "email", args: { value: { path: "/mail" } } }, message: "An address, please" }],
    action: { event: { name: "book", context: Object.fromEntries(["city", "mail", "note", "diet", "by", "day", "hour", "people", "class"].map((name) => [name, { path: `/${name}` }])) } },
  },
  { id: "bookLabel", component: "Text", text: "Book" },
];
const DATA = {
  city: "Oslo", mail: "", note: "", diet: false, by: ["boat"], day: "2026-05-01", hour: "", people: 2, class: ["2"],
  stops: [{ name: "Hamburg" }, { name: "Malmö" }],
};

test("each component of the catalog shows and changes the data, and a click sends it", async () => {
  const page = await open();
  const requests = await draw(page, CATALOG, DATA);
  await send(page, "draw");
  const drawn = surface(page);
  await drawn.getByRole("heading", { name: "A trip to Oslo" }).waitFor();
  await drawn.getByLabel("City").fill("Bergen");
  await drawn.getByRole("heading", { name: "A trip to Bergen" }).waitFor();
  const book = button(drawn, "Book");
  assert.ok(await book.isDisabled(), "a check fails");
  await drawn.getByLabel("E-mail").fill("ada");
  await drawn.getByLabel("Note").fill("By the window");
  await drawn.getByRole("alert").filter({ hasText: "An address, please" }).waitFor();
  await drawn.getByLabel("E-mail").fill("ada@example.com");
  await drawn.getByLabel("Vegetarian").check();
  await drawn.getByLabel("Train").check();
  await shot(page, "surface-who");
  await drawn.getByRole("tab", { name: "When" }).click();
  await drawn.getByLabel("Hour").fill("09:30");
  await drawn.getByLabel("People").fill("5");
  await drawn.getByLabel("First").check();
  await shot(page, "surface-when");
  await page.keyboard.press("Tab");
  await drawn.getByRole("tab", { name: "When" }).press("ArrowRight");
  assert.deepEqual(await drawn.getByRole("listitem").allInnerTexts().then((texts) => texts.map((text) => text.split("\n").at(-1))), ["Hamburg", "Malmö"]);
  assert.equal(await drawn.getByRole("img", { name: "A dot" }).evaluate((image) => image.naturalWidth), 1);
  assert.equal(await drawn.getByRole("link", { name: "A map" }).getAttribute("href"), "https://maps.example.com/map.png");
  await page.setViewportSize(PHONE);
  await shot(page, "surface-shown-390");
  await button(drawn, "Terms").click();
  await page.getByText("All sales are final.").waitFor();
  await button(page, "Close").click();
  await book.click();
  await page.waitForFunction(() => !document.querySelector(".button.stop"));
  const { userAction } = requests[1].forwardedProps.a2uiAction;
  const { timestamp, ...action } = userAction;
  assert.ok(Date.parse(timestamp));
  assert.deepEqual(action, {
    name: "book", surfaceId: "s", sourceComponentId: "book",
    context: {
      city: "Bergen", mail: "ada@example.com", note: "By the window", diet: true, by: ["boat", "train"], day: "2026-05-01", hour: "09:30", people: 5, class: ["1"],
    },
  });
  await send(page, "hello");
  await page.waitForFunction(() => !document.querySelector(".button.stop"));
  assert.equal(requests[2].forwardedProps?.a2uiAction, undefined, "a click is of one run");
  used.problems.splice(0); // The server does not know this thread.
});

test("fields of a repeated component change their own item, and components that contain themselves end", async () => {
  const page = await open();
  const requests = await draw(
    page,
    [
      { id: "root", component: "Column", children: ["rows", "unknown", "send"] },
      { id: "rows", component: "Column", children: { componentId: "row", path: "/people" } },
      { id: "row", component: "TextField", label: { path: "name" }, value: { path: "age" } },
      { id: "unknown", component: "Carousel", children: ["unknown"] },
      { id: "send", component: "Button", child: "label", action: { event: { name: "save", context: { people: { path: "/people" } } } } },
      { id: "label", component: "Text", text: "Save" },
    ],
    { people: [{ name: "Ada", age: "36" }, { name: "Bob", age: "" }] },
  );
  await send(page, "draw");
  await surface(page).getByLabel("Bob").pressSequentially("41");
  await button(surface(page), "Save").click();
  await page.waitForFunction(() => !document.querySelector(".button.stop"));
  const { context } = requests[1].forwardedProps.a2uiAction.userAction;
  assert.deepEqual(context, { people: [{ name: "Ada", age: "36" }, { name: "Bob", age: "41" }] });
  used.problems.splice(0);
});
