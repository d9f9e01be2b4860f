import assert from "node:assert/strict";
import { test } from "node:test";
import { Device, MemoryStorage } from "../src/index.js";
import { unhex } from "../src/bytes.js";
import { ANY, bytes, vectors } from "./helpers.js";

assert.equal(vectors.version, 1);

for (const { name, terms, secret, steps } of vectors.cases) {
  test(`the reports of a device are those of every other library: ${name}`, async () => {
    let now;
    const { declared } = JSON.parse(terms);
    const remembered = {};
    const device = new Device(new MemoryStorage(), { limits: ANY, secret: unhex(secret), now: () => now });
    const { id } = await device.join(bytes(terms));
    for (const step of steps) {
      now = Date.parse(step.now);
      const shown = await device.preview(id, step.values);
      assert.equal(shown.report, step.report);
      const { period, report, says } = await device.settle(id, step.values);
      assert.equal(report, step.report);
      const { memos, ...sent } = shown;
      assert.deepEqual(sent, { period, settled: false, report, says });
      assert.deepEqual(Object.keys(memos), declared.eps === undefined ? Object.keys(says) : []);
      for (const [name, memo] of Object.entries(memos)) {
        const answer = `${name} ${name.split("*").map((part) => step.values[part])}`;
        if (declared.memo_cap === undefined) assert.deepEqual(memo, (remembered[answer] ??= memo)); // made once
      }
      await device.confirm(id, period);
    }
  });
}
