// OpenAI's SDK for Python, unchanged, with the demo agent behind `/v1` (tests/py/openai_client.py).

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { useServer } from "./threads.mjs";

const PYTHON = fileURLToPath(new URL("../.venv/bin/python", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../py/openai_client.py", import.meta.url));

const server = useServer();

test("texts, calls and errors reach a program in Python", async () => {
  const python = process.env.AGUI_PYTHON ?? PYTHON;
  assert.ok(existsSync(python), `there is no ${python}: tests/run.sh installs it, or name one in AGUI_PYTHON`);
  const { stdout } = await promisify(execFile)(python, [PROGRAM, `${server.url}/v1`]);
  assert.deepEqual(JSON.parse(stdout), {
    models: ["demo"],
    text: { whole: "1 2 3", streamed: "1 2 3", role: "assistant", last: 0 },
    tools: {
      reason: "tool_calls",
      call: ["search_local_files", { keyword: "report" }],
      answer: "Found 1 file: report.txt",
    },
    errors: { unknown: "unknown_agent", approval: "person_needed", failure: "The demo was asked to fail." },
  });
});
