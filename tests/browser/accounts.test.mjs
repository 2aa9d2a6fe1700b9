// People log in at an MCP server and at a web service: oidc-provider as the authorization server, an MCP server with the SDK's auth
// router, a service that asks oidc-provider whose token it gets, Chromium.
// SHOTS names a folder for screenshots.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { binary, startServer } from "../js/server.mjs";
import { shot, useBrowser } from "./browser.mjs";
import { button } from "./chat.mjs";
import { CLIENT, startLoginServers } from "./login-servers.mjs";
import { startModel } from "./model.mjs";
import { send, shows } from "./playground.mjs";

const KEYS = { ann: "key-of-ann-0123456789", bob: "key-of-bob-0123456789" };
const VISIT_URL = "agui-server.visitUrl";

const servers = await startLoginServers();
/** Repeats a result as the answer. The model calls the tool that the user names. */
const model = await startModel((messages) => {
  const last = messages.at(-1);
  if (last.role === "tool") return { text: `Result: ${last.content}` };
  return { tool: last.content, arguments: {} };
});
const folder = mkdtempSync(join(tmpdir(), "agui-accounts-"));
const configured = (name, more) => {
  const path = join(folder, name);
  writeFileSync(
    path,
    `
${more}
[secrets]
key_env = "AGUI_TEST_SECRETS"

[record]
dir = "${folder}/recordings"

[log]
level = "debug"

[mcp.notes]
url = "${servers.url}"
login = "person"

[agents.assistant]
kind = "llm"
provider = "openai"
api = "chat"
model = "m"
base_url = "${model.url}"
tools = ["mcp:notes"]
`,
  );
  return path;
};
const variables = { AGUI_TEST_SECRETS: "a-key-for-tests-0123456789-0123456789" };
const used = useBrowser({ config: configured("one.toml", ""), variables });
after(() => (servers.stop(), model.stop(), rmSync(folder, { recursive: true })));

const question = (page) => page.getByRole("region", { name: "Connect your account" });

/** Logs in at the authorization server, with the forms of oidc-provider. */
async function logIn(page, name) {
  await page.locator("input[name=login]").fill(name);
  await page.locator("input[name=password]").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

/** Calls a tool as somebody, with replies to interrupts. Returns the events. */
async function run(server, key, threadId, content, resume) {
  const messages = content ? [{ id: randomUUID(), role: "user", content }] : [];
  const input = { threadId, runId: randomUUID(), messages, ...(resume ? { resume } : {}) };
  const headers = { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
  const response = await fetch(`${server.url}/send-message`, { method: "POST", headers, body: JSON.stringify(input) });
  assert.equal(response.status, 200);
  const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: "));
  return lines.map((line) => JSON.parse(line.slice("data: ".length)));
}

/** The browser reports refusals on its console, and that the pages of oidc-provider find no fonts. */
const ignoreProblems = () => void used.problems.splice(0);

const interruptOf = (events) => events.at(-1).outcome?.interrupts?.[0] ?? assert.fail(JSON.stringify(events));
const done = ({ id }) => [{ interruptId: id, status: "resolved", payload: { done: true } }];
const said = (events) => events.filter(({ type }) => type.startsWith("TEXT_MESSAGE_")).map(({ delta = "" }) => delta).join("");
const accounts = async (server, key, method = "GET", path = "") => {
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  const response = await fetch(`${server.url}/accounts${path}`, { method, headers });
  return response.status === 200 ? (await response.json()).accounts : response.status;
};

/** Opens a link in a browser profile of its own, and logs in as somebody. */
async function connectBy(url, name) {
  const page = await used.newPage(await used.browser.newContext());
  await page.goto(url);
  await page.getByRole("button", { name: /Log in at/ }).click();
  await logIn(page, name);
  await page.getByRole("heading", { name: "Connected" }).waitFor();
}

test("a person connects an account from the playground, and the call continues with it", async () => {
  const page = await used.newPage();
  await page.goto(`${used.server.url}/playground`);
  await send(page, "notes_connect");
  await page.getByRole("heading", { name: /^Connect your account at `notes`/ }).waitFor();
  // The person sees who asks, and the whole address.
  await question(page).getByText("Asked by the MCP server notes").waitFor();
  const address = await page.getByRole("link", { name: "Open the page" }).getAttribute("href");
  await question(page).getByText(address, { exact: true }).waitFor();
  await shot(page, "account-question");
  const [opened] = await Promise.all([page.context().waitForEvent("page"), page.getByRole("link", { name: "Open the page" }).click()]);
  await opened.getByText("Conversations of everybody who reaches this server").waitFor();
  await shot(opened, "account-start");
  await opened.getByRole("button", { name: "Log in at 127.0.0.1" }).click();
  await logIn(opened, "ann");
  await opened.getByRole("heading", { name: "Connected" }).waitFor();
  await shot(opened, "account-end");
  await button(page, "I am done there").click();
  await shows(page, "Result: The account at notes is connected. Tools: whoami, notes_connect.");
  await send(page, "whoami");
  await shows(page, "Result: The account is ann, by [redacted]");
  const [account, ...others] = await accounts(used.server);
  assert.deepEqual([account.server, others], ["notes", []]);

  // Exports, the log, the list and recordings have no token.
  const { threads } = await (await fetch(`${used.server.url}/threads`)).json();
  const exported = await (await fetch(`${used.server.url}/threads/${threads[0].threadId}/export`)).text();
  const recorded = readdirSync(join(folder, "recordings")).map((name) => readFileSync(join(folder, "recordings", name), "utf8"));
  assert.ok(exported.includes("whoami") && recorded.join().includes("whoami"), exported);
  assert.ok(servers.tokens.size > 0);
  for (const token of servers.tokens) {
    for (const text of [used.server.log(), exported, JSON.stringify(account), ...recorded]) {
      assert.ok(!text.includes(token), text.slice(text.indexOf(token) - 300, text.indexOf(token) + 10));
    }
  }

  assert.equal(await accounts(used.server, undefined, "DELETE", "/notes"), 204);
  assert.deepEqual(await accounts(used.server), []);
  const thread2 = randomUUID();
  assert.equal(interruptOf(await run(used.server, undefined, thread2, "notes_connect")).reason, "authorization");
});

test("the page with CopilotKit and the chat in a terminal show the link", async () => {
  const page = await used.open("copilotkit");
  await page.getByTestId("copilot-chat-textarea").fill("notes_connect");
  await page.getByTestId("copilot-chat-textarea").press("Enter");
  const link = page.getByRole("link", { name: "Open the page" });
  await link.waitFor();
  await page.locator(".question").getByText(await link.getAttribute("href"), { exact: true }).waitFor();
  await shot(page, "account-copilotkit");
  await connectBy(await link.getAttribute("href"), "kit");
  await page.getByRole("button", { name: "I am done there" }).click();
  await page.getByText("Result: The account at notes is connected.").waitFor();
  ignoreProblems();
  assert.equal(await accounts(used.server, undefined, "DELETE", "/notes"), 204);

  // Questions are answered in a terminal only.
  const chat = spawn("script", ["-qfec", `${binary()} chat ${used.server.url}`, "/dev/null"], { stdio: ["pipe", "pipe", "pipe"] });
  let text = "";
  for (const stream of [chat.stdout, chat.stderr]) stream.setEncoding("utf8").on("data", (chunk) => (text += chunk));
  const exited = once(chat, "exit");
  const shown = async (what) => {
    for (const deadline = Date.now() + 10_000; !what.test(text); await new Promise((done) => setTimeout(done, 50))) {
      assert.ok(Date.now() < deadline, text);
    }
    return what.exec(text)[0];
  };
  chat.stdin.write("notes_connect\r");
  const url = await shown(/http:\S+link=[\w-]+/);
  await shown(/Press Enter when you are done there/);
  await connectBy(url, "tty");
  chat.stdin.write("\r");
  await shown(/Result: The account at notes is connected/);
  chat.stdin.write("/quit\r");
  await exited;
  ignoreProblems();
});

test("a link is for one principal, one browser and one login", async () => {
  const keys = Object.entries(KEYS).map(([name, key]) => `{ name = "${name}", env = "KEY_OF_${name.toUpperCase()}" }`);
  const auth = `[auth]\nmode = "api_key"\napi_keys = [${keys}]\n`;
  const keyVariables = { KEY_OF_ANN: KEYS.ann, KEY_OF_BOB: KEYS.bob };
  const server = await startServer({ config: configured("two.toml", auth), variables: { ...variables, ...keyVariables } });
  const thread = randomUUID();
  const asked = interruptOf(await run(server, KEYS.ann, thread, "notes_connect"));
  const url = asked.metadata[VISIT_URL];
  const page = await used.newPage(await used.browser.newContext());
  await page.goto(url);
  await page.getByText("key:ann").waitFor();

  // Another browser profile.
  const other = await used.newPage(await used.browser.newContext());
  const response = await other.goto(url);
  assert.equal(response.status(), 403);
  await other.getByText("opened in another browser").waitFor();

  await page.getByRole("button", { name: /Log in at/ }).click();
  await page.waitForURL((at) => at.href.startsWith(servers.issuer));
  const callback = page.waitForRequest((request) => request.url().includes("/connections/callback"));
  await logIn(page, "ann");
  const returned = (await callback).url();
  await page.getByRole("heading", { name: "Connected" }).waitFor();
  // The code again, in both browsers.
  assert.equal((await page.goto(returned)).status(), 403);
  assert.equal((await other.goto(returned)).status(), 403);
  assert.equal((await page.goto(url)).status(), 403);
  ignoreProblems();

  assert.match(said(await run(server, KEYS.ann, thread, undefined, done(asked))), /The account at notes is connected/);
  assert.match(said(await run(server, KEYS.ann, thread, "whoami")), /The account is ann/);
  // Bob has no account there, and does not get Ann's.
  assert.deepEqual(await accounts(server, KEYS.bob), []);
  const bob = randomUUID();
  const askedBob = interruptOf(await run(server, KEYS.bob, bob, "notes_connect"));
  // An answer without a login asks again, with another link.
  const again = interruptOf(await run(server, KEYS.bob, bob, undefined, done(askedBob)));
  assert.notEqual(again.metadata[VISIT_URL], askedBob.metadata[VISIT_URL]);
  const declined = await run(server, KEYS.bob, bob, undefined, [{ interruptId: again.id, status: "cancelled" }]);
  assert.match(said(declined), /declined to log in/);
  await server.stop();
});

test("a window of another page neither skips the page of a login nor steers it", async () => {
  const context = await used.browser.newContext();
  const linkOf = async (thread) => interruptOf(await run(used.server, undefined, thread, "notes_connect")).metadata[VISIT_URL];
  await accounts(used.server, undefined, "DELETE", "/notes");
  // Somebody who has logged in a moment ago, so that the browser has the cookie.
  const person = await used.newPage(context);
  await person.goto(await linkOf(randomUUID()));
  await person.getByRole("button", { name: /Log in at/ }).click();
  await logIn(person, "ann");
  await person.getByRole("heading", { name: "Connected" }).waitFor();
  assert.equal(await accounts(used.server, undefined, "DELETE", "/notes"), 204);

  const reached = [];
  context.on("request", (request) => void (request.url().startsWith(servers.issuer) && reached.push(request.url())));
  const link = await linkOf(randomUUID());
  const foreign = await used.newPage(context);
  await foreign.goto(`http://localhost:${used.pages.port}/empty`);
  const open = (url) => Promise.all([context.waitForEvent("page"), foreign.evaluate((url) => void (window.steered = window.open(url)), url)]);
  const [opened] = await open(link);
  await opened.getByRole("button", { name: /Log in at/ }).waitFor();
  assert.ok(await foreign.evaluate(() => window.steered.closed), "the opener has no hold of the page");
  // It can know the link. It opens a window that continues at once, and sends the form with and without a guess.
  const [skipped] = await open(`${link}&go=1`);
  await skipped.getByRole("button", { name: /Log in at/ }).waitFor();
  for (const more of ["", "&go=1", `&button=${"0".repeat(64)}`]) {
    const [sent] = await Promise.all([
      context.waitForEvent("page"),
      foreign.evaluate((action) => {
        const form = Object.assign(document.createElement("form"), { method: "post", action, target: "_blank" });
        document.body.append(form);
        form.submit();
      }, link + more),
    ]);
    await sent.getByText(/Another page has sent this|origin_not_allowed/).waitFor();
  }
  assert.deepEqual(reached, []);
  assert.deepEqual(await accounts(used.server), []);
  // The person presses the button.
  await opened.bringToFront();
  await opened.reload();
  await opened.getByRole("button", { name: /Log in at/ }).click();
  await opened.waitForURL((at) => at.href.startsWith(servers.issuer) || at.pathname.startsWith("/connections/callback/"));
  ignoreProblems();
});

test("a call that the MCP server refuses becomes the question, and is made with the token", async () => {
  const listing = await startLoginServers({ lists: true });
  const path = configured("four.toml", "");
  writeFileSync(path, readFileSync(path, "utf8").replace(servers.url, listing.url));
  const server = await startServer({ config: path, variables });
  const thread = randomUUID();
  const asked = interruptOf(await run(server, undefined, thread, "whoami"));
  assert.deepEqual([asked.reason, asked.metadata.toolName], ["authorization", "whoami"]);
  await connectBy(asked.metadata[VISIT_URL], "eve");
  const events = await run(server, undefined, thread, undefined, done(asked));
  assert.deepEqual(events.filter(({ type }) => type === "TOOL_CALL_RESULT").map(({ toolCallId }) => toolCallId), [asked.toolCallId]);
  assert.match(said(events), /The account is eve/);
  ignoreProblems();
  await server.stop();
  listing.stop();
});

test("a token is renewed before it ends, with the account of the person", async () => {
  const short = await startLoginServers({ seconds: 5 });
  const path = configured("three.toml", "");
  writeFileSync(path, readFileSync(path, "utf8").replace(servers.url, short.url));
  const server = await startServer({ config: path, variables });
  const thread = randomUUID();
  const asked = interruptOf(await run(server, undefined, thread, "notes_connect"));
  await connectBy(asked.metadata[VISIT_URL], "ann");
  await run(server, undefined, thread, undefined, done(asked));
  await new Promise((done) => setTimeout(done, 6000));
  assert.match(said(await run(server, undefined, thread, "whoami")), /The account is ann/);
  const [first, ...renewals] = short.grants;
  assert.equal(first, "authorization_code");
  assert.ok(renewals.length > 0 && renewals.every((grant) => grant === "refresh_token"), String(renewals));
  const { paths } = await (await fetch(`${server.url}/openapi.json`)).json();
  assert.deepEqual(Object.keys(paths).filter((path) => /^\/(accounts|connections)/.test(path)).sort(), [
    "/accounts",
    "/accounts/start",
    "/accounts/{server}",
    "/connections/callback",
    "/connections/callback/{issuer}",
  ]);
  ignoreProblems();
  await server.stop();
  short.stop();
});

test("a web service is called with the token of the person alone, who is asked to log in before", async () => {
  const { service, issuer, calls, grants } = servers;
  const login = `
login = "person"
login_authorization_url = "${issuer}/auth"
login_token_url = "${issuer}/token"
login_revocation_url = "${issuer}/token/revocation"
login_client_id = "${CLIENT.id}"
login_client_secret_env = "CLIENT_SECRET"
login_scopes = ["openid", "offline_access"]
`;
  const tool = (name, more) => `[tools.${name}]\nkind = "http"\ndescription = "d"\n${more}\nresult = "/text"${login}`;
  const keys = Object.entries(KEYS).map(([name, key]) => `{ name = "${name}", env = "KEY_OF_${name.toUpperCase()}" }`);
  const tools = `
[auth]
mode = "api_key"
api_keys = [${keys}]

${tool("list_events", `url = "${service}?day=monday"`)}
${tool("add_event", `url = "${service}"\nmethod = "POST"\nparameters = { properties = { title = { default = "tea" } } }`)}
`;
  const path = configured("five.toml", tools);
  writeFileSync(path, readFileSync(path, "utf8").replace('["mcp:notes"]', '["list_events", "add_event"]'));
  const secrets = { KEY_OF_ANN: KEYS.ann, KEY_OF_BOB: KEYS.bob, CLIENT_SECRET: CLIENT.secret };
  const server = await startServer({ config: path, variables: { ...variables, ...secrets } });
  const calledBy = () => calls.splice(0).map(({ account }) => account);

  const thread = randomUUID();
  const asked = interruptOf(await run(server, KEYS.ann, thread, "list_events"));
  assert.deepEqual([asked.reason, asked.metadata.toolName, asked.metadata["agui-server.mcpServer"]], ["authorization", "list_events", undefined]);
  assert.ok(asked.message.includes(service.host), asked.message);
  // An answer without a login asks again.
  const again = interruptOf(await run(server, KEYS.ann, thread, undefined, done(asked)));
  assert.deepEqual(calledBy(), [], "nothing is called without a token");
  await connectBy(again.metadata[VISIT_URL], "ann");
  assert.match(said(await run(server, KEYS.ann, thread, undefined, done(again))), /The calendar of ann, by \[redacted\]: monday/);
  // Another tool of the same host has the same login, and another principal has none.
  assert.match(said(await run(server, KEYS.ann, thread, "add_event")), /The calendar of ann/);
  assert.deepEqual(calledBy(), ["ann", "ann"]);
  const bob = interruptOf(await run(server, KEYS.bob, randomUUID(), "add_event"));
  assert.equal(bob.reason, "authorization");
  assert.deepEqual(calledBy(), []);
  const [account, ...others] = await accounts(server, KEYS.ann);
  assert.deepEqual([account.server, others, await accounts(server, KEYS.bob)], [service.host, [], []]);

  // The service refuses the token: it is renewed once, and the call is made with the new one.
  const revoke = async (token) => (await servers.provider.AccessToken.find(token)).destroy();
  const token = async () => {
    await run(server, KEYS.ann, thread, "list_events");
    return calls.splice(0).at(-1).token;
  };
  const first = await token();
  await revoke(first);
  grants.splice(0);
  assert.match(said(await run(server, KEYS.ann, thread, "add_event")), /The calendar of ann/);
  assert.deepEqual([calledBy(), grants.splice(0)], [[undefined, "ann"], ["refresh_token"]]);

  // Disconnected here, and revoked there: the next call asks again.
  const last = await token();
  assert.notEqual(last, first);
  assert.equal(await accounts(server, KEYS.ann, "DELETE", `/${encodeURIComponent(service.host)}`), 204);
  for (const deadline = Date.now() + 10_000; await servers.provider.AccessToken.find(last); await new Promise((done) => setTimeout(done, 20))) {
    assert.ok(Date.now() < deadline, "the token is not revoked");
  }
  assert.equal(interruptOf(await run(server, KEYS.ann, thread, "list_events")).reason, "authorization");
  assert.deepEqual(calledBy(), []);
  for (const token of servers.tokens) assert.ok(!server.log().includes(token));
  ignoreProblems();
  await server.stop();
});
