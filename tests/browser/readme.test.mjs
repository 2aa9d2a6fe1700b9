// The listings of the READMEs are the pages that the other tests open.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

/** Returns a document's section. */
const section = (document, heading) => document.split(/^## /m).find((text) => text.startsWith(`${heading}\n`));

/** Returns the listings of a document's section: the code blocks after a line that begins with a file's name. */
function listings(document, heading) {
  const found = section(document, heading).matchAll(/^(?:创建 |Create )?`([\w.]+)`[^\n]*[:：]\n\n```\w+\n(.*?)^```$/gms);
  return Object.fromEntries([...found].map(([, file, code]) => [file, code]));
}

/** Leaves out what a translation changes: comments, strings, and texts of HTML and JSX. */
const withoutWords = (code) =>
  code
    .replace(/ *\/\/ .*/g, "")
    .replace(/"[^"\n]*"/g, '""')
    .replace(/>[^<>{}=;\n]+(?=[<{])/g, ">")
    .replace(/\}[^<>{}=;\n]+(?=[<{])/g, "}");

const PAGES = [
  ["first", "A page", "网页", ["index.html"]],
  ["copilotkit-first", "CopilotKit", "CopilotKit", ["index.html", "main.jsx"]],
];

/** Requires that the section's `npm install` names what the page imports, in the versions that the page is built with. */
function requireInstalled(text, folder, file) {
  const { dependencies } = JSON.parse(read("examples/web/package.json"));
  const [, line] = /`npm install ([^`]+)`/.exec(text);
  const installed = new Map([...line.matchAll(/(@?[^@ ]+)(?:@([\d.]+))?/g)].map(([, name, version]) => [name, version]));
  assert.ok(installed.has("vite"), line);
  for (const [, name] of read(`examples/web/${folder}/${file}`).matchAll(/(?:from|import) "((?:@[^"/]+\/)?[^"/]+)/g)) {
    const version = installed.get(name);
    assert.ok(version && `${dependencies[name]}.`.startsWith(`${version}.`), `${name} ${dependencies[name]}: ${line}`);
  }
}

for (const [folder, heading, chineseHeading, files] of PAGES) {
  test(`README.md lists examples/web/${folder}`, () => {
    requireInstalled(section(read("README.md"), heading), folder, files.at(-1));
    const listed = listings(read("README.md"), heading);
    for (const file of files) assert.equal(listed[file], read(`examples/web/${folder}/${file}`), file);
  });

  test(`README.zh-CN.md lists examples/web/${folder}, in Chinese`, () => {
    requireInstalled(section(read("README.zh-CN.md"), chineseHeading), folder, files.at(-1));
    const listed = listings(read("README.zh-CN.md"), chineseHeading);
    for (const file of files) {
      const expected = read(`examples/web/${folder}/${file}`);
      assert.equal(withoutWords(listed[file]), withoutWords(expected), file);
      assert.match(listed[file], /\p{Script=Han}|root/u);
    }
  });
}

/** 250 lines with their ends. */
test("README.md has at most 250 lines", () => assert.ok(read("README.md").split("\n").length <= 251));

test("the READMEs and docs/protocol.md name the versions that the pages are built with", () => {
  const { dependencies } = JSON.parse(read("examples/web/package.json"));
  for (const document of ["README.md", "README.zh-CN.md"]) {
    const named = [...read(document).matchAll(/(@(?:ag-ui|copilotkit)\/[\w-]+)@([\d.]+)/g)];
    assert.ok(named.length >= 2, document);
    for (const [, name, version] of named) assert.equal(version, dependencies[name], `${document}: ${name}`);
  }
  const rows = read("docs/protocol.md").split("\n").filter((line) => line.startsWith("| `@"));
  for (const name of ["@ag-ui/client", "@copilotkit/react-core", "@assistant-ui/react-ag-ui", "@tanstack/ai-react", "@tanstack/ai-client"]) {
    const isNamed = rows.some((row) => row.includes(`\`${name}\``) && row.includes(` ${dependencies[name]}`));
    assert.ok(isNamed, `docs/protocol.md has no row for ${name} ${dependencies[name]}`);
  }
  const { packages } = JSON.parse(read("examples/web/package-lock.json"));
  const core = packages["node_modules/@copilotkit/core"].version;
  const client = packages["node_modules/@copilotkit/core/node_modules/@ag-ui/client"].version;
  const installs = `It installs \`@copilotkit/core\` ${core} and \`@ag-ui/client\` ${client} |`;
  assert.ok(rows.some((row) => row.endsWith(installs)), installs);
});
