// State in a browser's IndexedDB. Ask for persistent storage too (navigator.storage.persist()): a browser may forget
// the rest, and then this is another device.

export class IndexedDbStorage {
  #name;

  constructor(name = "hearsay-device") {
    this.#name = name;
  }

  async read() {
    const database = await this.#open();
    try {
      const found = await answered(database.transaction("state").objectStore("state").get("state"));
      return found ?? { text: null, revision: 0 };
    } finally {
      database.close();
    }
  }

  async write(text, revision) {
    const database = await this.#open();
    try {
      const transaction = database.transaction("state", "readwrite", { durability: "strict" });
      const store = transaction.objectStore("state");
      const found = await answered(store.get("state"));
      const current = (found?.revision ?? 0) === revision;
      if (current) store.put({ text, revision: revision + 1 }, "state");
      await new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onerror = transaction.onabort = () => reject(transaction.error);
      });
      return current;
    } finally {
      database.close();
    }
  }

  #open() {
    const opening = indexedDB.open(this.#name, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("state");
    return answered(opening);
  }
}

function answered(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
