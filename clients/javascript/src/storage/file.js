// State in a directory, for Node.js. Every change is a new file with the next number; of two processes that change the
// same state, one finds that number taken, or a higher one.

import { randomUUID } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

export class FileStorage {
  #directory;

  constructor(directory) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  }

  async read() {
    for (;;) {
      const revision = this.#newest();
      if (revision === 0) return { text: null, revision };
      try {
        return { text: readFileSync(this.#path(revision), "utf8"), revision };
      } catch (error) {
        if (error.code !== "ENOENT") throw error; // replaced by a newer one since
      }
    }
  }

  async write(text, revision) {
    const [path, draft] = [this.#path(revision + 1), join(this.#directory, `draft-${randomUUID()}`)];
    written(draft, text);
    try {
      linkSync(draft, path);
    } catch (error) {
      if (error.code === "EEXIST") return false;
      throw error;
    } finally {
      rmSync(draft);
    }
    this.#sync();
    // A higher number was written from a newer state, and this one's place was free only because it had been removed.
    if (this.#newest() !== revision + 1) {
      rmSync(path, { force: true });
      return false;
    }
    for (const old of this.#revisions()) if (old <= revision) rmSync(this.#path(old), { force: true });
    return true;
  }

  #revisions() {
    return readdirSync(this.#directory)
      .flatMap((name) => /^state-(\d+)\.json$/.exec(name)?.[1] ?? [])
      .map(Number);
  }

  #newest() {
    return Math.max(0, ...this.#revisions());
  }

  #path(revision) {
    return join(this.#directory, `state-${revision}.json`);
  }

  // The new name must be on disk, too, before anything is sent.
  #sync() {
    const directory = openSync(this.#directory, "r");
    try {
      fsyncSync(directory);
    } finally {
      closeSync(directory);
    }
  }
}

function written(path, text) {
  const file = openSync(path, "wx", 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
