// Writes the text streams of all demo conversations to files, for checks in other languages (tests/py/validate.py).
//
//   node run.mjs [FOLDER]      (default: ../../target/tmp/captured)
//
// One file a run, <conversation>.<language>.<turn>.jsonl, with one event a line, unchanged.

import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { play } from "./play.mjs";
import { scenarios, title } from "./scenarios.mjs";
import { startServer } from "./server.mjs";

const folder = resolve(process.argv[2] ?? fileURLToPath(new URL("../../target/tmp/captured", import.meta.url)));

/** Returns the JSON of each event unparsed: parsing and printing could repair what is to be checked. */
const lines = (text) =>
  text
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => `${line.slice("data: ".length)}\n`)
    .join("");

const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-");

await mkdir(folder, { recursive: true });
for (const file of await readdir(folder)) {
  if (file.endsWith(".jsonl")) await rm(join(folder, file));
}

const server = await startServer();
try {
  let runs = 0;
  await Promise.all(
    scenarios.map(async (scenario) => {
      const played = await play(server.url, scenario);
      for (const [index, { answer }] of played.entries()) {
        if (!answer.events) throw new Error(`${title(scenario)}: HTTP ${answer.status} ${answer.text}`);
        const name = `${slug(scenario.name)}.${scenario.language}.${index + 1}.jsonl`;
        await writeFile(join(folder, name), lines(answer.text));
        runs += 1;
      }
    }),
  );
  console.log(`${runs} runs captured in ${folder}`);
} finally {
  await server.stop();
}
