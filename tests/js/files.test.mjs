// Photos in a thread: the clients send each of them once, whatever they send again.

import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";

import { HttpAgent } from "@ag-ui/client";
import { HttpAgent as OldHttpAgent } from "client-0-0-59";

import { readThread, said, useServer } from "./threads.mjs";

const PHOTOS = 10;
const PHOTO_BYTES = 4_000_000;
const MAX_BODY_BYTES = 100_000;

const photo = () => Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), randomBytes(PHOTO_BYTES)]).toString("base64");

/** A message with a picture. */
function showing(value, text = "hello") {
  const source = { type: "data", value, mimeType: "image/png" };
  return said([{ type: "text", text }, { type: "image", source, metadata: { filename: "photo.png" } }]);
}

/** The sources of the pictures that messages have. */
const sourcesOf = (messages) =>
  messages.flatMap(({ content }) => (Array.isArray(content) ? content : [])).flatMap(({ source }) => source ?? []);

/** The URL without its signature. */
const fileOf = ({ value }) => value.split("?")[0];

/** A class of clients that count the bytes of their last request. */
const counting = (Client) =>
  class extends Client {
    requestInit(input) {
      const init = super.requestInit(input);
      this.bytes = Buffer.byteLength(init.body);
      return init;
    }
  };

const folder = mkdtempSync(join(tmpdir(), "agui-files-"));
after(() => rmSync(folder, { recursive: true }));

/** Ten photos in one thread, of which none is sent twice. */
async function sendPhotos(server, Client) {
  const agent = new (counting(Client))({ url: `${server.url}/send-message`, threadId: randomUUID() });
  for (let number = 1; number <= PHOTOS; number++) {
    agent.addMessage(showing(photo()));
    await agent.runAgent();
    const sources = sourcesOf(agent.messages);
    assert.equal(sources.length, number);
    for (const { type, value, mimeType } of sources) {
      assert.deepEqual([type, mimeType], ["url", "image/png"]);
      assert.ok(value.startsWith(`${server.url}/files/file_`), value.slice(0, 200));
    }
  }
  agent.addMessage(said("hello"));
  await agent.runAgent();
  assert.ok(agent.bytes <= MAX_BODY_BYTES, `${agent.bytes} bytes`);
  const { messages, alternatives } = await readThread(server, agent.threadId);
  assert.deepEqual(sourcesOf(messages), sourcesOf(agent.messages));
  assert.deepEqual([messages.length, alternatives], [2 * (PHOTOS + 1), {}]);
}

describe("in memory", () => {
  const server = useServer();
  const newAgent = (Client) => new Client({ url: `${server.url}/send-message`, threadId: randomUUID() });

  for (const [version, Client] of [["1.0.0", HttpAgent], ["0.0.59", OldHttpAgent]]) {
    test(`ten photos of 4 MB in one thread, with ${version}`, () => sendPhotos(server, Client));

    test(`the same picture in forty messages is one file, with ${version}`, async () => {
      const [agent, value] = [newAgent(Client), photo().slice(0, 40_000)];
      for (let number = 1; number <= 40; number++) {
        agent.addMessage(showing(value));
        await agent.runAgent();
      }
      const files = new Set(sourcesOf(agent.messages).map(fileOf));
      assert.equal(files.size, 1);
      const another = newAgent(Client);
      another.addMessage(showing(value));
      await another.runAgent();
      assert.ok(files.has(fileOf(sourcesOf(another.messages)[0])), "another thread shares it");
    });

    test(`an edited message keeps its picture, with ${version}`, async () => {
      const agent = newAgent(Client);
      agent.addMessage(showing(photo()));
      await agent.runAgent();
      const [{ id, role, content }] = agent.messages;
      const [file] = sourcesOf(agent.messages);
      agent.setMessages([{ id, role, content: [{ type: "text", text: "count to 3" }, content[1]] }]);
      await agent.runAgent();
      const { messages } = await readThread(server, agent.threadId);
      assert.equal(messages.at(-1).content, "1 2 3");
      assert.equal(fileOf(sourcesOf(messages)[0]), fileOf(file));
    });
  }
});

describe("in SQLite", () => {
  const server = useServer(() => ({ variables: { AGUI_STORE__URL: `sqlite:${join(folder, "threads.db")}` } }));

  test("ten photos of 4 MB in one thread", () => sendPhotos(server, HttpAgent));
});
