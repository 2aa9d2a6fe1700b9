// Builds the playground into src/http/playground/dist, or into the folder that is named: node build.mjs [FOLDER]

import { copyFile, mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const folder = process.argv[2] ?? path("../src/http/playground/dist");

await mkdir(folder, { recursive: true });
await build({
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
});
for (const name of ["index.html", "icon.svg"]) await copyFile(path(`src/${name}`), `${folder}/${name}`);
