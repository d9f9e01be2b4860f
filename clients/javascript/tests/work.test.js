// How much is computed for a report is no function of a value, nor of how many values a set has.
//
// Counted, not timed: calls of the cipher from which all draws come.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { DAY, deviceAt, START, TERMS } from "./world.js";

const VALUES = {
  memos: [0, 8, 3, "3", "none", null, undefined, NaN, [], {}].map((a) => ({ a })),
  once: [0, 3, "none", null].map((c) => ({ c })),
  hashed: [0, 19, "none", null].map((d) => ({ d })),
  sets: [[], ["v0"], ["v5"], ["v1", "v2"], ["v1", "v3", "v5"], ["v0", "v1", "v2", "v3", "v4"], ["none", "v4"], null].map((a) => ({ a })),
};

async function cipherCalls(run) {
  const { subtle } = globalThis.crypto;
  let calls = 0;
  const encrypt = subtle.encrypt.bind(subtle);
  subtle.encrypt = (...given) => {
    calls += 1;
    return encrypt(...given);
  };
  try {
    await run();
  } finally {
    delete subtle.encrypt;
  }
  return calls;
}

for (const [survey, all] of Object.entries(VALUES))
  test(`every value takes the same work: ${survey}`, async () => {
    const counts = new Set();
    for (const values of all) {
      const entropy = (what) => createHash("sha256").update(what).digest();
      const device = deviceAt({ now: START + DAY / 2 }, { entropy });
      await device.join(TERMS[survey], { trustFirstUse: true });
      counts.add(await cipherCalls(() => device.settle(survey, values)));
    }
    assert.equal(counts.size, 1, [...counts].join());
    assert.ok([...counts][0] > 1);
  });

test("a set is any iterable but a text", async () => {
  const reportOf = async (a) => {
    const entropy = (what) => createHash("sha256").update(what).digest();
    const device = deviceAt({ now: START + DAY / 2 }, { entropy });
    await device.join(TERMS.sets, { trustFirstUse: true });
    return Buffer.from((await device.settle("sets", { a })).report).toString();
  };
  const listed = await reportOf(["v1", "v3"]);
  assert.equal(await reportOf(new Set(["v1", "v3"])), listed);
  assert.equal(await reportOf(new Map([["v1", true], ["v3", true]]).keys()), listed);
  assert.equal(await reportOf("v1"), await reportOf(["v1"]));
});
