// State that is forgotten with the process: for tests, and for pages that show what a device would do.

export class MemoryStorage {
  #text = null;
  #revision = 0;

  async read() {
    return { text: this.#text, revision: this.#revision };
  }

  async write(text, revision) {
    if (revision !== this.#revision) return false;
    this.#text = text;
    this.#revision += 1;
    return true;
  }
}
