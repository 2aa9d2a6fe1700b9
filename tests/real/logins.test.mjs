// Tokens of a real identity provider (oidc-provider): each algorithm that it signs with, and a change of its keys.

import assert from "node:assert/strict";
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";

import Provider from "oidc-provider";

import { configFile, listen } from "../js/models.mjs";
import { startServer } from "../js/server.mjs";

const AUDIENCE = "https://agents.example.com";
const CURVES = { ES256: "P-256", ES384: "P-384" };
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA", "Ed25519"];
/** The server fetches keys for an unknown one at most every 30 s. */
const NEW_KEYS_TIMEOUT_MS = 60_000;

function key(algorithm) {
  const curve = CURVES[algorithm];
  const isEdwards = algorithm.startsWith("Ed");
  const { privateKey } = curve
    ? generateKeyPairSync("ec", { namedCurve: curve })
    : generateKeyPairSync(isEdwards ? "ed25519" : "rsa", isEdwards ? {} : { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: algorithm };
}

/** An identity provider whose clients, one for each algorithm, get tokens for this server. */
class Identity {
  static async start() {
    const identity = new Identity();
    const server = await listen((request, response) => identity.callback(request, response));
    Object.assign(identity, server);
    identity.useNewKeys();
    return identity;
  }

  /** The provider starts again with other keys. */
  useNewKeys() {
    this.callback = new Provider(this.url, {
      clients: ALGORITHMS.map((client_id) => ({
        client_id,
        client_secret: "secret",
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      })),
      jwks: { keys: ALGORITHMS.map(key) },
      enabledJWA: { idTokenSigningAlgValues: ALGORITHMS },
      features: {
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (_, __, { clientId }) => ({
            scope: "run",
            audience: AUDIENCE,
            accessTokenFormat: "jwt",
            jwt: { sign: { alg: clientId } },
          }),
        },
      },
    }).callback();
  }

  async token(algorithm) {
    const response = await fetch(`${this.url}/token`, {
      method: "POST",
      headers: { authorization: `Basic ${btoa(`${algorithm}:secret`)}` },
      body: new URLSearchParams({ grant_type: "client_credentials", resource: AUDIENCE }),
    });
    const { access_token, ...rest } = await response.json();
    assert.ok(access_token, JSON.stringify(rest));
    return access_token;
  }
}

describe("tokens of oidc-provider", () => {
  let identity, file, server;
  before(async () => {
    identity = await Identity.start();
    file = await configFile(`
[agents.demo]
kind = "echo"
[auth]
mode = "jwt"
[auth.jwt]
jwks_url = "${identity.url}/jwks"
issuer = "${identity.url}"
audience = "${AUDIENCE}"
`);
    server = await startServer({ config: file.config });
  });
  after(() => Promise.all([server?.stop(), identity?.stop(), file?.remove()]));

  const ask = async (token) => {
    const response = await fetch(`${server.url}/threads`, { headers: { authorization: `Bearer ${token}` } });
    return { status: response.status, text: await response.text() };
  };

  test("each algorithm is accepted, and a changed token is refused", async () => {
    for (const algorithm of ALGORITHMS) {
      const token = await identity.token(algorithm);
      const header = JSON.parse(Buffer.from(token.split(".")[0], "base64url"));
      assert.equal(header.alg, algorithm);
      const { status, text } = await ask(token);
      assert.equal(status, 200, `${algorithm}: ${text}`);
      const [head, , signature] = token.split(".");
      const claims = { iss: identity.url, aud: AUDIENCE, sub: "another", exp: 4_000_000_000 };
      const forged = `${head}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.${signature}`;
      assert.equal((await ask(forged)).status, 401, algorithm);
    }
  });

  test("new keys of the provider are used, and the old ones no longer", async () => {
    const old = await identity.token("ES256");
    assert.equal((await ask(old)).status, 200);
    identity.useNewKeys();
    const token = await identity.token("ES256");
    for (const deadline = Date.now() + NEW_KEYS_TIMEOUT_MS; (await ask(token)).status !== 200; await delay(500))
      assert.ok(Date.now() < deadline, JSON.stringify(await ask(token)));
    assert.equal((await ask(old)).status, 401);
  });
});
