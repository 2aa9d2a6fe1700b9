// The link to the description of the server's routes.

import { BASE, readKey, request } from "./api.js";

const ADDRESS = `${BASE}/openapi.json`;

async function save() {
  const url = URL.createObjectURL(await (await request(ADDRESS)).blob());
  Object.assign(document.createElement("a"), { href: url, download: "openapi.json" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** A link sends no key, so with a key the page reads the file and saves it. */
export function ApiLink({ session }) {
  const open = (event) => {
    if (!readKey()) return;
    event.preventDefault();
    session.attempt(save);
  };
  return <a class="button quiet" href={ADDRESS} target="_blank" rel="noopener" onClick={open}>OpenAPI</a>;
}
