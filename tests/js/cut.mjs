// A proxy whose connections break, as those of a mobile phone do.

import { once } from "node:events";
import { connect, createServer } from "node:net";

/** Returns the length of `text` up to the end of the frame with event number `count` of a type, or 0 if `text` has less. */
function lengthUntil(text, count, type) {
  let at = 0;
  for (let seen = 0; seen < count; seen++) {
    at = text.indexOf(type, at) + 1;
    if (at === 0) return 0;
  }
  const end = text.indexOf("\n\n", at);
  return end < 0 ? 0 : end + 2;
}

/**
 * Starts a proxy in front of a server. Breaks connection number n after the frame with event number `cuts[n - 1]` of
 * a type, or at once if that is 0; later connections are left alone.
 * @returns its `url`, the requests it has passed on (`requests`, one text each), and `close`
 */
export async function cuttingProxy(target, cuts, type = "TEXT_MESSAGE_CONTENT") {
  const { hostname, port } = new URL(target);
  const requests = [];
  const sockets = new Set();
  const proxy = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    const number = requests.push("");
    const last = cuts[number - 1] ?? Infinity;
    let received = ""; // one character for each byte
    const cut = () => [client, upstream].forEach((socket) => socket.destroy());
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", cut).on("close", cut).on("close", () => sockets.delete(socket));
    }
    if (last === 0) return void cut();
    client.on("data", (bytes) => {
      requests[number - 1] += bytes;
      upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      const before = received.length;
      received += bytes.toString("latin1");
      const length = lengthUntil(received, last, type);
      if (length === 0) return void client.write(bytes);
      upstream.pause();
      client.end(bytes.subarray(0, length - before), cut);
    });
    upstream.on("end", () => client.end());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const close = () => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  };
  return { url: `http://127.0.0.1:${proxy.address().port}`, requests, close };
}
