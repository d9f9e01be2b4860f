// What is stored, and what somebody who copies it can do with it.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, linkSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Device } from "../device.js";
import { ANYTHING, DAY, deviceAt, inDirectory, memory, START, TERMS } from "./world.js";

const NOON = START + DAY / 2;
const ASKED = { memos: "a", once: "c" };

// Of 30 later reports, how many a copy of the state of day 0 makes with the right token, for any
// value.
async function readByACopy(survey, entropyOfThief) {
  const at = { now: NOON };
  const drawn = new Map();
  const entropy = (what) => drawn.set(what, randomBytes(32)).get(what);
  const storage = memory();
  const device = deviceAt(at, { storage, entropy });
  await device.join(TERMS[survey], { trustFirstUse: true });
  await device.settle(survey, { [ASKED[survey]]: 1 });
  const copy = storage.text;
  let found = 0;
  for (let day = 1; day <= 30; day++) {
    at.now = NOON + day * DAY;
    const { report } = await device.settle(survey, { [ASKED[survey]]: day % 4 });
    for (let value = 0; value < 4; value++) {
      const thief = deviceAt(at, { storage: memory(copy), entropy: entropyOfThief(drawn) });
      const guess = await thief.settle(survey, { [ASKED[survey]]: value });
      const [theirs, own] = [guess.report, report].map((text) => JSON.parse(text).token);
      if (theirs === own && value === day % 4) found += 1;
    }
  }
  return found;
}

for (const survey of Object.keys(ASKED))
  test(`a copy of the state reads nothing that is answered later: ${survey}`, async () => {
    assert.equal(await readByACopy(survey, () => () => randomBytes(32)), 0);
    // A control: who had the keys of the periods, too, would read all of it.
    assert.equal(await readByACopy(survey, (drawn) => (what) => drawn.get(what)), 30);
  });

test("no key of a period is ever stored, and what was erased is gone from every link to the file", () =>
  inDirectory(async (directory) => {
    const at = { now: NOON };
    const drawn = [];
    const entropy = (what) => {
      const key = randomBytes(32);
      if (what.startsWith("period")) drawn.push(key.toString("hex"));
      return key;
    };
    const path = join(directory, "device");
    const device = new Device(path, { now: () => at.now, limits: ANYTHING, entropy });
    await device.join(TERMS.once, { trustFirstUse: true });
    for (let day = 0; day < 3; day++) {
      at.now = NOON + day * DAY;
      const { report } = await device.settle("once", { c: 1 });
      const { token } = JSON.parse(report);
      assert.ok(readFileSync(path, "utf8").includes(token)); // owed
      linkSync(path, `${path}-${day}`);
      await device.confirm("once", day);
      for (const name of [path, `${path}-${day}`])
        assert.ok(!readFileSync(name, "utf8").includes(token));
      assert.ok(readFileSync(`${path}-${day}`).every((byte) => byte === 0));
    }
    assert.equal(drawn.length, 3);
    const stored = readFileSync(path, "utf8");
    for (const key of drawn) assert.ok(!stored.includes(key));
    const { format, surveys } = JSON.parse(stored);
    assert.equal(format, 4);
    assert.deepEqual(Object.keys(surveys.once).filter((name) => name.includes("key")), []);
    assert.ok(!existsSync(`${path}.new`));
  }));

test("a preview is an example with noise of its own and the real memo, until it is settled", async () => {
  const at = { now: NOON };
  const storage = memory();
  const device = deviceAt(at, { storage });
  await device.join(TERMS.memos, { trustFirstUse: true });
  const stored = storage.text;
  const shown = [];
  for (let i = 0; i < 4; i++) shown.push(await device.preview("memos", { a: 3 }));
  assert.equal(storage.text, stored);
  assert.ok(shown.every(({ example }) => example));
  const settled = await device.settle("memos", { a: 3 });
  const tokens = [...shown, settled].map(({ report }) => JSON.parse(report).token);
  assert.equal(new Set(tokens).size, 5);
  assert.equal(new Set(shown.map(({ memo }) => memo.a.join())).size, 1);
  assert.equal(settled.example, false);
  assert.deepEqual(await device.preview("memos", { a: 7 }), settled);
  assert.deepEqual(await device.owed("memos"), [settled]);
});
