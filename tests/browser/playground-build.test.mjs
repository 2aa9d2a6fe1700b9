// The source of the playground in web/: the committed build, and the texts.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { TEXTS } from "../../web/src/translations.js";

const file = (path) => fileURLToPath(new URL(path, import.meta.url));
const COMMITTED = file("../../src/http/playground/dist");

test("the committed files are those that web/ builds, byte for byte", async () => {
  const folder = await mkdtemp(join(tmpdir(), "playground-"));
  try {
    await promisify(execFile)(process.execPath, [file("../../web/build.mjs"), folder]);
    const names = await readdir(folder);
    assert.deepEqual(names.sort(), (await readdir(COMMITTED)).sort());
    for (const name of names) {
      const [built, committed] = await Promise.all([readFile(join(folder, name)), readFile(join(COMMITTED, name))]);
      assert.ok(built.equals(committed), `${name} differs: run \`npm ci && npm run build\` in web, and commit the files`);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("each language has every text, with the same parameters", () => {
  const { en, ...others } = TEXTS;
  const parameters = (text) => [...text.matchAll(/\{\d\}/g)].map(String).sort();
  for (const [language, texts] of Object.entries(others)) {
    assert.deepEqual(Object.keys(texts).sort(), Object.keys(en).sort(), language);
    for (const [key, text] of Object.entries(texts)) assert.deepEqual(parameters(text), parameters(en[key]), key);
  }
});

/** Lists in the source whose values, or names of members, are keys of texts. */
const LISTS_OF_KEYS = ["THEMES", "VIEWS", "TABS", "ANNOUNCEMENTS", "DECISIONS", "STATUSES", "SHORT", "RATINGS"];

test("the page uses every text, and has every text that it uses", async () => {
  const folder = file("../../web/src");
  const names = (await readdir(folder)).filter((name) => /\.jsx?$/.test(name) && name !== "translations.js");
  const source = (await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")))).join("\n");
  const lists = LISTS_OF_KEYS.map((name) => source.match(new RegExp(`^const ${name} = (.*);$`, "m"))[1]);
  const calls = [...source.matchAll(/(?<![\w.])t\(([^,()]*)/g)].map(([, argument]) => argument);
  const used = new Set([
    ...calls.flatMap((argument) => [...argument.matchAll(/"(\w+)"/g)]).map(([, key]) => key),
    ...lists.flatMap((list) => [...list.matchAll(/"(\w+)"|(\w+): [A-Z]/g)]).map(([, value, member]) => value ?? member),
  ]);
  assert.deepEqual([...used].sort(), Object.keys(TEXTS.en).sort());
});
