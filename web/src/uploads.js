// The files of the next message. Each is uploaded as soon as it is added.

import { BASE, readKey } from "./api.js";
import { attachmentPart } from "./content.js";

/** Uploads at once: the others wait, because a server bounds the bytes that it reads at once. */
const MAX_UPLOADS = 2;

/** A token that headers can have in a parameter (RFC 8187). */
const encoded = (name) => encodeURIComponent(name).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);

/**
 * Stores a file on the server. `fetch` reports no progress.
 * @returns {{ done: Promise<object>, abort: () => void }} `done`: the file as the server describes it
 */
function upload(file, onProgress) {
  const request = new XMLHttpRequest();
  const done = new Promise((resolve, reject) => {
    const fail = () => {
      const { error } = request.response ?? {};
      reject(Object.assign(new Error(error?.message ?? ""), { status: request.status, code: error?.code ?? String(request.status || "") }));
    };
    request.upload.onprogress = ({ loaded, total }) => onProgress(loaded / total);
    request.onload = () => (request.status < 300 ? resolve(request.response) : fail());
    request.onerror = request.onabort = fail;
  });
  request.open("POST", `${BASE}/files`);
  request.responseType = "json";
  request.setRequestHeader("content-type", file.type || "application/octet-stream");
  request.setRequestHeader("content-disposition", `attachment; filename*=UTF-8''${encoded(file.name)}`);
  if (readKey()) request.setRequestHeader("authorization", `Bearer ${readKey()}`);
  request.send(file);
  return { done, abort: () => request.abort() };
}

export class Uploads {
  /**
   * In the order in which they were added: { id, name, bytes, preview, progress, part, error }. `preview`: the URL of a
   * picture; `progress`: from 0 to 1; `part`: present after the upload; `error`: { code, message, canRetry }
   */
  list = [];
  #onChange;
  #lastId = 0;

  /** @param {{ onChange: () => void }} handlers */
  constructor({ onChange }) {
    this.#onChange = onChange;
  }

  get areDone() {
    return this.list.every(({ part, error }) => part || error);
  }

  add(files) {
    for (const file of files) {
      const preview = /^image\/(png|jpeg|gif|webp|avif|bmp)$/.test(file.type) ? URL.createObjectURL(file) : undefined;
      this.list.push({ id: ++this.#lastId, file, name: file.name, bytes: file.size, preview, progress: 0 });
    }
    this.#startNext();
  }

  retry(entry) {
    Object.assign(entry, { error: undefined, progress: 0 });
    this.#startNext();
  }

  remove(entry) {
    this.list = this.list.filter((other) => other !== entry);
    if (entry.preview) URL.revokeObjectURL(entry.preview);
    entry.abort?.();
    this.#startNext();
  }

  clear() {
    for (const entry of this.list) this.remove(entry);
  }

  /** Returns the parts for a message, and forgets the files. */
  take() {
    const parts = this.list.flatMap(({ part }) => part ?? []);
    this.clear();
    return parts;
  }

  #startNext() {
    const isBusy = () => this.list.filter(({ isStarted }) => isStarted).length >= MAX_UPLOADS;
    for (const entry of this.list) {
      if (!isBusy() && !entry.isStarted && !entry.part && !entry.error) this.#start(entry);
    }
    this.#onChange();
  }

  async #start(entry) {
    entry.isStarted = true;
    try {
      entry.part = await this.#store(entry);
    } catch ({ status, code, message }) {
      // The store of a Rust program may keep no files.
      if (code === "no_files") entry.part = await attachmentPart(entry.file).catch(() => undefined);
      if (!entry.part) entry.error = { code, message, canRetry: !status || status >= 500 };
    }
    entry.isStarted = false;
    this.#startNext();
  }

  async #store(entry) {
    const { done, abort } = upload(entry.file, (progress) => {
      entry.progress = progress;
      this.#onChange();
    });
    entry.abort = abort;
    const { part, bytes } = await done;
    // The server may have the bytes under another name.
    return { ...part, metadata: { ...part.metadata, filename: entry.name, bytes } };
  }
}
