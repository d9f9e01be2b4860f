import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { MemoryStorage } from "../src/index.js";
import { FileStorage } from "../src/storage/file.js";

function inDirectory(check) {
  return async () => {
    const directory = mkdtempSync(join(tmpdir(), "hearsay-"));
    try {
      await check(join(directory, "state"));
    } finally {
      rmSync(directory, { recursive: true });
    }
  };
}

for (const [name, open] of [
  ["memory", () => new MemoryStorage()],
  ["files", (at) => new FileStorage(at)],
]) {
  test(
    `what was written is read, and a write over something newer is refused: ${name}`,
    inDirectory(async (at) => {
      const storage = open(at);
      const { text, revision } = await storage.read();
      assert.equal(text, null);
      assert.equal(await storage.write("one", revision), true);
      assert.equal(await storage.write("other", revision), false);
      const { text: found, revision: next } = await storage.read();
      assert.equal(found, "one");
      assert.equal(await storage.write("two", next), true);
      assert.equal((await storage.read()).text, "two");
    }),
  );
}

test(
  "a number that was removed because a higher one is there does not count",
  inDirectory(async (at) => {
    const [slow, fast] = [new FileStorage(at), new FileStorage(at)];
    const { revision } = await slow.read();
    for (const text of ["one", "two"]) assert.equal(await fast.write(text, (await fast.read()).revision), true);
    assert.equal(await slow.write("lost", revision), false);
    assert.equal((await slow.read()).text, "two");
  }),
);

test(
  "only the newest state is kept, and nobody else may read it",
  inDirectory(async (at) => {
    const storage = new FileStorage(at);
    for (const text of ["one", "two", "three"]) await storage.write(text, (await storage.read()).revision);
    assert.deepEqual(readdirSync(at), ["state-3.json"]);
    assert.equal(statSync(join(at, "state-3.json")).mode & 0o777, 0o600);
  }),
);
