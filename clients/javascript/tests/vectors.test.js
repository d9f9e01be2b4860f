import assert from "node:assert/strict";
import { test } from "node:test";
import { Device, MemoryStorage } from "../src/index.js";
import { unhex } from "../src/bytes.js";
import { ANY, bytes, vectors } from "./helpers.js";

assert.equal(vectors.version, 1);

for (const { name, terms, secret, steps } of vectors.cases) {
  test(`the reports of a device are those of every other library: ${name}`, async () => {
    let now;
    const device = new Device(new MemoryStorage(), { limits: ANY, secret: unhex(secret), now: () => now });
    const { id } = await device.join(bytes(terms));
    for (const step of steps) {
      now = Date.parse(step.now);
      const shown = await device.preview(id, step.values);
      assert.equal(shown.report, step.report);
      const { period, report, says } = await device.settle(id, step.values);
      assert.equal(report, step.report);
      assert.deepEqual(shown, { period, settled: false, report, says });
      await device.confirm(id, period);
    }
  });
}
