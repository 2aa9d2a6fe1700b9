// Writes the licences of what is in a binary, crates and the page at /playground: node scripts/licenses.mjs FILE
//
// Most licences want their text and the copyright beside a copy. Needs Cargo, and compiles nothing.

import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const options = ["--format-version", "1", "--locked", "--features", "jemalloc,object-store,otel"];
const { packages, resolve, workspace_members: own } = JSON.parse(execFileSync("cargo", ["metadata", ...options], { cwd: root, maxBuffer: 2 ** 28 }));
const [byId, nodes] = [packages, resolve.nodes].map((list) => new Map(list.map((it) => [it.id, it])));

/** What a binary of any platform is linked with: no crate of builds and tests. */
const linked = new Set();
const add = (id) => {
  if (linked.has(id)) return;
  linked.add(id);
  nodes.get(id).deps.filter(({ dep_kinds: kinds }) => kinds.some(({ kind }) => kind === null)).forEach(({ pkg }) => add(pkg));
};
add(resolve.root);

/** The paths of the licences in a folder, and in those below it that hold sources of others, such as jemalloc's. */
function licensesIn(folder, depth = 1) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return depth > 0 ? licensesIn(path, depth - 1) : [];
    return /^(licen[cs]e|copying|copyright|notice|unlicense)/i.test(entry.name) ? [path] : [];
  });
}

/** The names of crates by the text that they share. */
const crates = new Map();
for (const { name, version, license, manifest_path: manifest } of [...linked].filter((id) => !own.includes(id)).map((id) => byId.get(id))) {
  const files = licensesIn(dirname(manifest));
  const texts = files.length > 0 ? files.map((file) => readFileSync(file, "utf8").replace(/\r\n/g, "\n").trim()) : [""];
  for (const text of texts) crates.set(text, [...(crates.get(text) ?? []), `${name} ${version} (${license})`]);
}
const page = readFileSync(join(root, "src/http/playground/dist/licenses.txt"), "utf8");
const parts = [...crates].map(([text, names]) => `${names.sort().join("\n")}\n\n${text}\n`).sort();
writeFileSync(process.argv[2], [...parts, page].join("\n----\n\n"));
