// A state that release 0.2 has written: three days of six surveys; reports of the second are owed.
// Devices go on with it.
//
// device-of-0.2-expected.json has what that release said on the third day.

import assert from "node:assert/strict";
import { linkSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Device } from "../device.js";
import { ANYTHING, DAY, deviceAt, inDirectory, memory, START, withGateway } from "./world.js";
import { OLD_EXPECTED, OLD_STATE } from "./world.js";

const THIRD_DAY = { now: START + 2.5 * DAY };
const old = JSON.parse(OLD_STATE);
const OLD_KEYS = Object.values(old.surveys).map(({ key }) => key);

test("a state of release 0.2 keeps memos, charges and owed reports", async () => {
  const device = deviceAt(THIRD_DAY, { storage: memory(OLD_STATE) });
  const { week, answers, metres, presence, ...explained } = await device.explain();
  assert.deepEqual(explained, OLD_EXPECTED.explained);
  assert.equal(answers, old.charges.length);
  for (const [survey, reports] of Object.entries(OLD_EXPECTED.owed))
    assert.deepEqual((await device.owed(survey)).map(({ report }) => report), reports);
  for (const [survey, previews] of Object.entries(OLD_EXPECTED.memos))
    for (const { values, memo } of previews) {
      const shown = await device.preview(survey, values);
      assert.deepEqual(shown.memo, memo);
      assert.equal(shown.example, true);
    }
});

test("a state of release 0.2 loses the keys of periods at its first use, in every link to it", () =>
  inDirectory(async (directory) => {
    const path = join(directory, "device");
    writeFileSync(path, OLD_STATE);
    linkSync(path, `${path}-again`);
    const device = new Device(path, { now: () => THIRD_DAY.now, limits: ANYTHING });
    assert.equal(OLD_KEYS.length, 6);
    for (const key of OLD_KEYS) assert.ok(readFileSync(path, "utf8").includes(key));
    await assert.rejects(device.settle("unknown", {}), { code: "unknown" }); // nothing else is done
    for (const name of [path, `${path}-again`])
      for (const key of OLD_KEYS) assert.ok(!readFileSync(name, "utf8").includes(key));
    const { format, keys, surveys } = JSON.parse(readFileSync(path, "utf8"));
    assert.deepEqual([format, keys], [4, old.keys]);
    for (const [id, { cells, stays, settled }] of Object.entries(surveys)) {
      const before = old.surveys[id];
      assert.deepEqual([cells, stays, settled], [before.cells, before.stays, before.settled]);
    }
  }));

test("what a device of release 0.2 owes is delivered as it was, and its gaps go on", () =>
  withGateway(() => 201, async (address, posted) => {
    const device = deviceAt(THIRD_DAY, { storage: memory(OLD_STATE) });
    assert.equal((await device.send(address, "memos", { a: 1 })).status, "reported");
    assert.deepEqual(posted[0].body, OLD_EXPECTED.owed.memos[0]);
    assert.deepEqual(posted.map(({ period }) => period), [1, 2]);
    assert.equal(posted[1].report.gap, "0001");
  }));

test("a clock of release 0.2 that was ahead can be set right", async () => {
  const device = deviceAt({ now: START + 0.5 * DAY }, { storage: memory(OLD_STATE) });
  await device.forgetClock("memos");
  // Period 0 was attempted, as that release has noted.
  await assert.rejects(device.settle("memos", { a: 1 }), { code: "reported" });
});
