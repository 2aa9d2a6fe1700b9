// Files that the page gives to the user.

/** The browser has read a file long before. */
const KEPT_MS = 60_000;

/** Saves a blob as a file, as the browser saves downloads. */
export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}
