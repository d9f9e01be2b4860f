import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const script = fileURLToPath(new URL("settle.js", import.meta.url));

test("processes that begin at once are one device, with one secret and one report", async () => {
  const directory = mkdtempSync(join(tmpdir(), "hearsay-"));
  try {
    const processes = [1, 2, 3, 4].map((value) => run(process.execPath, [script, directory, value], { timeout: 60_000 }));
    const reports = (await Promise.all(processes)).map(({ stdout }) => stdout);
    assert.equal(new Set(reports).size, 1);
    assert.equal(JSON.parse(reports[0]).period, "00000000");
    assert.deepEqual(readdirSync(directory), ["state-2.json"]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
