// The tests that `durable-streams.test.mjs` runs with vitest, against the server in CONFORMANCE_TEST_URL.

import { runConformanceTests } from "@durable-streams/server-conformance-tests";

runConformanceTests({ baseUrl: process.env.CONFORMANCE_TEST_URL });
