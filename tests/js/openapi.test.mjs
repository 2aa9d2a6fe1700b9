// Checks /openapi.json against the schema of OpenAPI 3.1, with every route that the command can serve.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Validator } from "@seriousme/openapi-schema-validator";

import { startServer } from "./server.mjs";

for (const [name, variables] of [
  ["without authentication", { AGUI_METRICS__MAIN_LISTENER: "true" }],
  [
    "with a key",
    {
      AGUI_AUTH__MODE: "api_key",
      AGUI_AUTH__API_KEYS: '[{ name = "web", env = "AGUI_KEY_WEB" }]',
      AGUI_KEY_WEB: "open-sesame-1234",
    },
  ],
]) {
  test(`the description of a server ${name} is valid OpenAPI 3.1`, async () => {
    const server = await startServer({ variables });
    try {
      const response = await fetch(`${server.url}/openapi.json`, { headers: { authorization: "Bearer open-sesame-1234" } });
      assert.equal(response.status, 200);
      const document = await response.json();
      assert.equal(document.openapi, "3.1.0");
      const { valid, errors } = await new Validator().validate(document);
      assert.ok(valid, JSON.stringify(errors, undefined, 1));
      const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
      assert.ok(operations.length > 40, `${operations.length} operations`);
      const ids = operations.map(({ operationId }) => operationId).filter(Boolean);
      assert.equal(new Set(ids).size, ids.length, "an id is used twice");

      // The validator does not resolve references.
      const references = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/([^"]+)"/g)];
      for (const [, schema] of references) assert.ok(document.components.schemas[schema], `there is no schema ${schema}`);

      // A broken document is refused.
      document.paths["/healthz"].get.parameters = [{ name: "x" }];
      assert.equal((await new Validator().validate(document)).valid, false);
    } finally {
      await server.stop();
    }
  });
}
