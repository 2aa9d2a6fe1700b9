// Builds the playground into src/http/playground/dist, or into the folder that is named: node build.mjs [FOLDER]

import { copyFile, mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const folder = process.argv[2] ?? path("../src/http/playground/dist");

await mkdir(folder, { recursive: true });
const { metafile } = await build({
  absWorkingDir: path("."),
  entryPoints: ["src/main.jsx", "src/main.css"],
  outdir: folder,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
});
for (const name of ["index.html", "icon.svg"]) await copyFile(path(`src/${name}`), `${folder}/${name}`);

// The licences of the packages that are in the page: scripts/licenses.mjs adds them to those of the crates.
const packages = new Set(Object.keys(metafile.inputs).flatMap((input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input) ?? []));
const texts = await Promise.all([...packages].sort().map(async (name) => {
  const { name: called, version, license } = JSON.parse(await readFile(path(`${name}/package.json`), "utf8"));
  const file = (await readdir(path(name))).find((file) => /^licen[cs]e/i.test(file));
  return `${called} ${version} (${license})\n\n${file ? await readFile(path(`${name}/${file}`), "utf8") : ""}`;
}));
await writeFile(`${folder}/licenses.txt`, texts.join("\n----\n\n"));
