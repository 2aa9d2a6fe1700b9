// The JSON Schema of the configuration, read by Taplo, which editors use for TOML. A file names it in its first line.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { binary } from "./server.mjs";

const config = fileURLToPath(new URL("../../config", import.meta.url));
const taplo = fileURLToPath(new URL("node_modules/.bin/taplo", import.meta.url));
const run = promisify(execFile);

/** Returns Taplo's complaints about files, without colours; an empty text if it has none. */
async function lint(...files) {
  try {
    await run(taplo, ["lint", "--colors", "never", ...files]);
    return "";
  } catch (error) {
    assert.equal(error.code, 1, error.message);
    return error.stderr + error.stdout;
  }
}

test("Taplo accepts the example configurations by the schema that they name", async () => {
  const files = readdirSync(config).filter((name) => name.endsWith(".toml"));
  assert.ok(files.length > 10, files.join());
  assert.equal(await lint(...files.map((name) => join(config, name))), "");
});

test("Taplo marks faults by the schema that `agui-server schema` prints", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "agui-schema-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "schema.json"), (await run(binary(), ["schema"], { maxBuffer: 2 ** 24 })).stdout);
  const file = join(folder, "my.toml");
  const complaints = (text) => {
    writeFileSync(file, `#:schema ./schema.json\n${text}\n`);
    return lint(file);
  };
  assert.equal(await complaints('[agents.a]\nkind = "echo"'), "");
  for (const [fault, expected] of [
    ['[server]\nlisen = "127.0.0.1:1"', "'lisen' was unexpected"],
    ["[runs]\nmax_seconds = -1", "-1 is less than the minimum of 0"],
    ['[agents.a]\nkind = "eco"', '"eco" is not one of'],
    ['[agents.a]\nkind = "echo"\nmodel = "m"', 'False schema does not allow "m"'],
  ]) {
    const found = await complaints(fault);
    assert.ok(found.includes(expected), `${fault}\n${found}`);
  }
});
