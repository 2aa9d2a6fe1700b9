// Claude on Amazon Bedrock, against a fake that checks signatures with botocore, and writes streams that botocore reads:
// tests/py/bedrock.py.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { startServer } from "./server.mjs";

const PYTHON = fileURLToPath(new URL("../.venv/bin/python", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../py/bedrock.py", import.meta.url));
const STATIC = { AWS_ACCESS_KEY_ID: "AKIDSTATIC", AWS_SECRET_ACCESS_KEY: "words/of+a/static+secret", AWS_REGION: "eu-west-1" };
const ARN = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/a1 b";

let fake, url, folder;

before(async () => {
  const python = process.env.AGUI_PYTHON ?? PYTHON;
  assert.ok(existsSync(python), `there is no ${python}: tests/run.sh installs it, or name one in AGUI_PYTHON`);
  fake = spawn(python, [PROGRAM], { stdio: ["ignore", "pipe", "inherit"] });
  const [port] = await once(fake.stdout, "data");
  url = `http://127.0.0.1:${String(port).trim()}`;
  folder = await mkdtemp(join(tmpdir(), "bedrock-"));
  const agent = (name, model, more) =>
    `[agents.${name}]\nkind = "llm"\nmodel = "${model}"\ncredentials = "aws"\nmax_retries = 1\n${more}\n`;
  const claude = `provider = "anthropic"\nbase_url = "${url}"`;
  await writeFile(
    join(folder, "agui.toml"),
    `default_agent = "claude"\n` +
      agent("claude", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", claude) +
      agent("arn", ARN, `${claude}\nheaders = { anthropic-beta = "some-beta" }`) +
      agent("query", "m", `provider = "anthropic"\nbase_url = "${url}/?z=1&a=b%20c"`) +
      agent("chat", "openai.gpt-oss-120b-1:0", `provider = "openai"\nbase_url = "${url}/openai/v1"`),
  );
});

after(async () => {
  fake.kill();
  await rm(folder, { recursive: true });
});

const log = async () => (await fetch(`${url}/log`)).json();

/** Calls `body` with a server that has these variables, and no others of AWS. */
async function withServer(variables, body) {
  const none = Object.fromEntries(Object.keys(process.env).filter((name) => name.startsWith("AWS_")).map((name) => [name, ""]));
  const home = { HOME: folder, AWS_EC2_METADATA_SERVICE_ENDPOINT: `${url}/`, AWS_EC2_METADATA_DISABLED: "true" };
  const server = await startServer({ config: join(folder, "agui.toml"), variables: { ...none, ...home, ...variables } });
  try {
    await body(server);
  } finally {
    await server.stop();
  }
  assert.doesNotMatch(server.log(), /words.of|expired-token/);
  return server.log();
}

/** Returns the text of a run, and the code of its error. */
async function ask(server, text, agent = "claude") {
  const response = await fetch(`${server.url}/agents/${agent}/send-message`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ threadId: crypto.randomUUID(), runId: "r", messages: [{ id: "m", role: "user", content: text }] }),
  });
  const events = (await response.text()).split("\n\n").filter((frame) => frame.startsWith("data: ")).map((frame) => JSON.parse(frame.slice(6)));
  const said = events.filter(({ type }) => type === "TEXT_MESSAGE_CONTENT").map(({ delta }) => delta).join("");
  return [said, events.at(-1).code];
}

test("requests are signed, with the model in the path and the version in the body", async () => {
  await withServer(STATIC, async (server) => {
    assert.deepEqual(await ask(server, "你好"), ["You said 你好.", undefined]);
    const { path, body } = (await log()).at(-1);
    assert.equal(path, "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1:0/invoke-with-response-stream");
    assert.equal(body.anthropic_version, "bedrock-2023-05-31");
    assert.deepEqual([body.model, body.stream, body.anthropic_beta], [undefined, undefined, undefined]);
    assert.deepEqual(await ask(server, "of a profile", "arn"), ["You said of a profile.", undefined]);
    const other = (await log()).at(-1);
    assert.equal(other.path, `/model/arn:aws:bedrock:eu-west-1:1:application-inference-profile%2Fa1%20b/invoke-with-response-stream`);
    assert.deepEqual(other.body.anthropic_beta, ["some-beta"]);
    assert.deepEqual(await ask(server, "with a query", "query"), ["You said with a query.", undefined]);
    assert.deepEqual(await ask(server, "hi", "chat"), ["I am openai.gpt-oss-120b-1:0.", undefined]);
  });
});

test("exceptions in the stream are classified like the status that they name", async () => {
  await withServer(STATIC, async (server) => {
    assert.deepEqual(await ask(server, "throttled once"), ["You said throttled once.", undefined]);
    assert.deepEqual(await ask(server, "too long"), ["", "context_too_long"]);
    assert.deepEqual(await ask(server, "invalid"), ["", "model_failed"]);
    const [said, code] = await ask(server, "unavailable in the middle");
    assert.deepEqual([said, code], ["You said unavailable in the middle.", "model_failed"]);
  });
});

test("a hostile frame is an error", async () => {
  await withServer(STATIC, async (server) => {
    for (const [text, expected] of [
      ["wrong checksum", "model_protocol"],
      ["wrong checksum of the prelude", "model_protocol"],
      ["4 GB", "model_protocol"],
      ["cut", "model_interrupted"],
    ]) {
      assert.deepEqual(await ask(server, text), [`You said ${text}.`, expected], text);
    }
  });
});

test("keys are found where the tools of AWS find them", async () => {
  const file = async (name, text) => (await writeFile(join(folder, name), text), join(folder, name));
  const web = await file("web-token", "words-of-a-web-identity\n");
  const role = { AWS_ROLE_ARN: "arn:aws:iam::1:role/r", AWS_ENDPOINT_URL_STS: `${url}/sts` };
  const printed = JSON.stringify({
    Version: 1, AccessKeyId: "ASIAPROCESS", SecretAccessKey: "words/of+a/process+secret", SessionToken: "words-of-a-process-token==",
  });
  const printer = await file("printed.json", printed);
  await mkdir(join(folder, ".aws"));
  await file(".aws/config", `[default]\nregion = eu-west-1\n[profile process]\nregion = eu-west-1\ncredential_process = cat "${printer}"\n`);
  await file(".aws/credentials", "[default]\naws_access_key_id = AKIDSTATIC\naws_secret_access_key = words/of+a/static+secret\n");
  const empty = { AWS_SHARED_CREDENTIALS_FILE: "/none" };
  const pod = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/container`, AWS_CONTAINER_AUTHORIZATION_TOKEN: "words-of-the-pod" };
  for (const [variables, asked] of [
    [{}, []],
    [{ AWS_PROFILE: "process" }, []],
    [{ AWS_WEB_IDENTITY_TOKEN_FILE: web, ...role }, ["/sts"]],
    [{ ...empty, ...pod }, ["/container"]],
    [
      { ...empty, AWS_EC2_METADATA_DISABLED: "" },
      ["/latest/api/token", "/latest/meta-data/iam/security-credentials/", "/latest/meta-data/iam/security-credentials/the-role"],
    ],
  ]) {
    await withServer(variables, async (server) => {
      const before = (await log()).length;
      assert.deepEqual(await ask(server, "one"), ["You said one.", undefined], JSON.stringify(variables));
      assert.deepEqual(await ask(server, "two"), ["You said two.", undefined]);
      const paths = (await log()).slice(before).map(({ path }) => path).filter((path) => !path.startsWith("/model/"));
      assert.deepEqual(paths, asked, "the keys are kept");
    });
  }
});

test("an expired token is asked for once more, and a key that is refused is an error", async () => {
  const credentials = join(folder, "rotated");
  const profile = (token) =>
    writeFile(credentials, `[default]\naws_access_key_id = ASIAINSTANCE\naws_secret_access_key = words/of+an/instance+secret\naws_session_token = ${token}\n`);
  await profile("words-of-an-instance-token==");
  const variables = { AWS_SHARED_CREDENTIALS_FILE: credentials, AWS_REGION: "eu-west-1" };
  await withServer(variables, async (server) => {
    await profile("expired-token-1");
    assert.deepEqual(await ask(server, "first"), ["", "model_unauthorized"]);
    await profile("words-of-an-instance-token==");
    const before = (await log()).length;
    assert.deepEqual(await ask(server, "second"), ["You said second.", undefined]);
    const tokens = (await log()).slice(before).map(({ token }) => token);
    assert.deepEqual(tokens, ["expired-token-1", "words-of-an-instance-token=="]);
  });
  const wrong = await withServer({ ...STATIC, AWS_SECRET_ACCESS_KEY: "words/of+another/secret" }, async (server) => {
    assert.deepEqual(await ask(server, "hi"), ["", "model_unauthorized"]);
  });
  assert.match(wrong, /The signature does not match/);
  for (const [variables, problem] of [
    [{ AWS_REGION: "", AWS_CONFIG_FILE: "/none" }, /the region of AWS is unknown: set AWS_REGION/],
    [{ AWS_PROFILE: "none" }, /the profile "none" has no keys/],
    [{ AWS_SHARED_CREDENTIALS_FILE: "/none", AWS_CONFIG_FILE: "/none" }, /no keys of AWS were found/],
    [{ AWS_WEB_IDENTITY_TOKEN_FILE: credentials, AWS_ROLE_ARN: "r", AWS_ENDPOINT_URL_STS: `${url}/sts` }, /400 Bad Request \(InvalidIdentityToken\)/],
  ]) {
    const written = await withServer({ AWS_REGION: "eu-west-1", ...variables }, async (server) => {
      assert.deepEqual(await ask(server, "hi"), ["", "model_unauthorized"], String(problem));
    });
    assert.match(written, problem);
  }
});
