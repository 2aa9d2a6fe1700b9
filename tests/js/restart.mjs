// A server that is restarted behind an address that stays.

import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startServer } from "./server.mjs";

/**
 * Starts a server that keeps its threads in a file. `more` are further environment variables.
 * @returns its `url`, which stays; `heard(text)`, which resolves when the server has sent a text; `restart()`, which stops the
 *   server and starts it again; and `crash(whileDown)`, which kills it, waits for `whileDown`, and starts it again. Meanwhile nothing
 *   listens behind the address.
 */
export async function restartableServer(t, more) {
  const folder = await mkdtemp(join(tmpdir(), "agui-restarted-"));
  const variables = { AGUI_STORE__URL: `sqlite:${join(folder, "threads.sqlite")}`, AGUI_SERVER__DRAIN_SECS: "0", ...more };
  let running = await startServer({ variables });
  let sent = "";
  const proxy = createServer((client) => {
    const upstream = running && connect(new URL(running.url).port, "127.0.0.1");
    if (!upstream) return void client.destroy();
    upstream.on("data", (bytes) => (sent += bytes));
    for (const [from, to] of [[client, upstream], [upstream, client]]) {
      from.on("error", () => to.destroy()).on("close", () => to.destroy());
      from.pipe(to);
    }
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  t.after(async () => {
    await running?.stop();
    proxy.close();
    await rm(folder, { recursive: true });
  });
  return {
    url: `http://127.0.0.1:${proxy.address().port}`,
    async heard(text) {
      while (!sent.includes(text)) await new Promise(setImmediate);
    },
    async restart() {
      const first = running;
      running = undefined;
      await first.stop();
      running = await startServer({ variables });
    },
    async crash(whileDown = async () => {}) {
      const first = running;
      running = undefined;
      await first.crash();
      await whileDown();
      running = await startServer({ variables });
    },
  };
}
