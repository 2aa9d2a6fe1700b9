// The link to the description of the server's routes.

import { BASE, readKey, request } from "./api.js";
import { download } from "./download.js";

const ADDRESS = `${BASE}/openapi.json`;

/** A link sends no key, so with a key the page reads the file and saves it. */
export function ApiLink({ session }) {
  const open = (event) => {
    if (!readKey()) return;
    event.preventDefault();
    session.attempt(async () => download("openapi.json", await (await request(ADDRESS)).blob()));
  };
  return <a class="button quiet" href={ADDRESS} target="_blank" rel="noopener" onClick={open}>OpenAPI</a>;
}
