// The source of the playground in web/: the committed build, and the translations.

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
const COMMITTED = file("../../src/playground/dist");

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
