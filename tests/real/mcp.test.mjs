// MCP servers that people use: server-filesystem, @playwright/mcp with Chromium, and FastMCP, which crashes during a call.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { agentOn, configFile, listen, startModel } from "../js/models.mjs";
import { Page, textOf, useServer } from "../js/threads.mjs";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const FILESYSTEM = path("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
const PLAYWRIGHT = path("node_modules/@playwright/mcp/cli.js");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const OUTPUT = ["--output-dir", join(tmpdir(), "agui-real-playwright")];
const BROWSER = [PLAYWRIGHT, "--headless", "--isolated", "--no-sandbox", "--executable-path", CHROMIUM, ...OUTPUT];
const FASTMCP = path("fastmcp_server.py");
const PYTHON = path("../.venv-mcp/bin/python");

/** A server whose agent has the tools of one MCP server, and a model that calls the tools which a test names. */
function useMcp(transport) {
  const used = {};
  let file, model;
  before(async () => {
    model = await startModel();
    const agent = agentOn("openai", model.url, { tools: ["mcp:partner"] });
    file = await configFile(`${agent}\n[mcp.partner]\n${await transport()}\n`);
  });
  used.server = useServer(() => ({ config: file.config }));
  after(() => Promise.all([model?.stop(), file?.remove()]));

  /** Has the model call a tool. Returns what the model gets, and the events. */
  used.call = async (name, args, page = new Page(used.server, {})) => {
    const sentence = `call ${name} ${randomUUID()}`;
    const last = (role) => ({ messages }) => {
      const asked = messages.findLast((message) => message.role === "user");
      return JSON.stringify(asked.content).includes(sentence) && messages.at(-1).role === role;
    };
    model.on({ predicate: last("user") }, { toolCalls: [{ name, arguments: JSON.stringify(args) }] });
    model.on({ predicate: last("tool") }, { content: "So." });
    const { events, finished } = await page.say(sentence);
    const result = events.find(({ type }) => type === "TOOL_CALL_RESULT")?.content;
    return { page, events, finished, text: typeof result === "string" ? result : JSON.stringify(result) };
  };
  return used;
}

const command = (...words) => `command = ${JSON.stringify(words)}`;

describe("server-filesystem", () => {
  let folder;
  const mcp = useMcp(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), "agui-real-")));
    await writeFile(join(folder, "note.txt"), "Buy milk.");
    return `${command(process.execPath, FILESYSTEM, folder)}\napproval = "annotations"`;
  });
  after(() => rm(folder, { recursive: true, force: true }));

  test("a file is read without a question, and what it may not read is an error for the model", async () => {
    const { text, page } = await mcp.call("read_text_file", { path: join(folder, "note.txt") });
    assert.match(text, /Buy milk\./);
    assert.match((await mcp.call("read_text_file", { path: "/etc/passwd" })).text, /access denied/i);
    await page.requireStored();
  });

  test("a file is written after a person has approved", async () => {
    const file = join(folder, "new.txt");
    const { page, finished } = await mcp.call("write_file", { path: file, content: "from the model" });
    assert.deepEqual(finished, ["interrupt"]);
    assert.ok(!existsSync(file));
    await page.answer({ approved: true });
    assert.equal(await readFile(file, "utf8"), "from the model");
    await page.requireStored();
  });
});

/** Waits until a process has logged what fits the pattern, and reads on: a program can end when nobody reads its log. */
function logged(child, pattern) {
  return new Promise((found, fail) => {
    let log = "";
    child.stderr.setEncoding("utf8").on("data", (text) => {
      const match = pattern.exec((log += text));
      if (match) found(match);
    });
    child.once("exit", () => fail(new Error(log)));
  });
}

/** @playwright/mcp over streamable HTTP. */
async function startBrowserOverHttp() {
  const child = spawn(process.execPath, [...BROWSER, "--port", "0"], { stdio: ["ignore", "ignore", "pipe"] });
  const kill = () => child.kill("SIGTERM");
  process.once("exit", kill);
  const [, url] = await logged(child, /"url": "([^"]+)"/);
  const stop = async () => {
    process.removeListener("exit", kill);
    kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  };
  return { url, stop };
}

for (const transport of ["stdio", "http"]) {
  describe(`@playwright/mcp over ${transport}`, { skip: existsSync(CHROMIUM) ? false : `${CHROMIUM} is missing` }, () => {
    let site, remote;
    const mcp = useMcp(async () => {
      const page = '<title>Shop</title><button onclick="document.title = `Bought`">Buy</button>';
      site = await listen((_, response) => response.writeHead(200, { "content-type": "text/html" }).end(page));
      if (transport === "stdio") return command(process.execPath, ...BROWSER);
      remote = await startBrowserOverHttp();
      return `url = "${remote.url}"`;
    });
    after(() => Promise.all([site?.stop(), remote?.stop()]));

    test("a page is opened, and a button pressed in a later run", async () => {
      const { text, page } = await mcp.call("browser_navigate", { url: site.url });
      assert.match(text, /Shop/);
      const snapshot = (await mcp.call("browser_snapshot", {}, page)).text;
      const button = /button "Buy" \[ref=(\w+)\]/.exec(snapshot.replaceAll('\\"', '"'));
      assert.ok(button, snapshot);
      const pressed = await mcp.call("browser_click", { element: "Buy", target: button[1] }, page);
      assert.match(pressed.text, /Bought/);
      await page.requireStored();
    });
  });
}

/** FastMCP over HTTP on one port, started again after it has crashed, as a supervisor of the operator does. */
async function startFastMcp() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  await new Promise((done) => probe.close(done));
  const state = { url: `http://127.0.0.1:${port}/mcp` };
  const start = async () => {
    state.child = spawn(PYTHON, [FASTMCP, String(port)], { stdio: ["ignore", "ignore", "pipe"] });
    state.child.once("exit", () => void (state.stopped || start().catch(() => {})));
    await logged(state.child, /running on/i);
  };
  const kill = () => state.child.kill("SIGKILL");
  process.once("exit", kill);
  await start();
  state.stop = () => {
    state.stopped = true;
    process.removeListener("exit", kill);
    kill();
  };
  return state;
}

for (const transport of ["stdio", "http"]) {
  describe(`FastMCP over ${transport}`, { skip: existsSync(PYTHON) ? false : `${PYTHON} is missing: see tests/run.sh` }, () => {
    let remote;
    const mcp = useMcp(async () => {
      if (transport === "stdio") return command(PYTHON, FASTMCP);
      remote = await startFastMcp();
      return `url = "${remote.url}"`;
    });
    after(() => remote?.stop());

    test("defaults are not required, an error is the model's, and after a crash the next call is answered", async () => {
      const { text, page } = await mcp.call("add", { a: 41 });
      assert.match(text, /42/);
      assert.match((await mcp.call("fail", {}, page)).text, /the shelf is empty/);
      const crashed = await mcp.call("die", {}, page);
      assert.match(crashed.text, /unknown|ended|closed|lost/i);
      assert.equal(textOf(crashed.events), "So.");
      assert.match((await mcp.call("add", { a: 1, b: 2 }, page)).text, /3/);
      await page.requireStored();
    });
  });
}
