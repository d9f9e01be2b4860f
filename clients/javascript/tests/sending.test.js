// When reports are sent: one in a call, each at a moment of its own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DAY, deviceAt, GRACE, memory, START, TERMS, withGateway } from "./world.js";

const NOON = START + DAY / 2;
const APART = { apart: true };
const periods = (posted) => posted.map(({ period }) => period);
const dues = ({ text }) => JSON.parse(text).surveys.once.owed.map(({ due }) => 1000 * due);

async function joinedAt(at, more) {
  const device = deviceAt(at, more);
  await device.join(TERMS.once, { trustFirstUse: true });
  return device;
}

test("a report is due from ten seconds on until the middle of the grace, whatever the work", async () => {
  const found = [];
  const [empty, full] = [new Uint8Array(32), new Uint8Array(32).fill(255)];
  for (const drawn of [empty, full]) {
    const [at, storage] = [{ now: NOON }, memory()];
    // Settling takes an hour by the clock of this test: it must not show.
    const entropy = (what) => {
      if (what.startsWith("period")) at.now += 3_600_000;
      return drawn;
    };
    const device = await joinedAt(at, { storage, entropy });
    await device.settle("once", { c: 1 });
    found.push(dues(storage)[0] - NOON);
  }
  assert.equal(found[0], 10_000);
  assert.ok(Math.abs(found[1] - (DAY / 2 + GRACE / 2)) < 1, found[1]);
});

test("one call sends at most one report that is due, and says when to call again", () =>
  withGateway(() => 201, async (address, posted) => {
    const [at, storage] = [{ now: NOON }, memory()];
    const device = await joinedAt(at, { storage });
    const send = () => device.send(address, "once", { c: 1 }, APART);
    const first = await send();
    assert.deepEqual([first.status, posted.length], ["owed", 0]);
    const [due] = dues(storage);
    assert.ok(first.againAt >= due && first.againAt < due + 1);
    at.now = first.againAt - 1000;
    assert.deepEqual([(await send()).againAt, posted.length], [first.againAt, 0]);
    at.now = NOON + 2.4 * DAY; // both are due by then, or soon
    await device.settle("once", { c: 1 });
    at.now = NOON + 3.2 * DAY;
    const before = posted.length;
    const second = await send();
    assert.equal(posted.length, before + 1);
    assert.equal(posted[0].period, 0);
    const left = dues(storage);
    assert.ok(left.length > 0);
    assert.ok(left.every((moment) => moment > at.now), "others that were due have new moments");
    assert.ok(second.againAt >= Math.min(...left));
    at.now = second.againAt;
    await send();
    assert.equal(posted.length, before + 2);
  }));

test("an attempt that fails is drawn anew before it is made, and within the grace", () =>
  withGateway(() => 503, async (address, posted) => {
    const [at, storage] = [{ now: NOON }, memory()];
    const device = await joinedAt(at, { storage });
    const { againAt } = await device.send(address, "once", { c: 1 }, APART);
    at.now = againAt;
    const end = START + DAY + GRACE;
    for (let attempt = 1; attempt <= 5; attempt++) {
      const error = await device.send(address, "once", { c: 1 }, APART).catch((caught) => caught);
      if (JSON.parse(storage.text).surveys.once.settled > 0) break; // the next period has begun
      assert.deepEqual([error.code, posted.length], ["gateway", attempt]);
      const [due] = dues(storage);
      assert.ok(at.now < due && due < end);
      assert.ok(error.againAt >= due && error.againAt < due + 1);
      at.now = error.againAt;
    }
    assert.equal(new Set(posted.map(({ body }) => body)).size, 1);
  }));

test("each request has a connection of its own", () =>
  withGateway(() => 201, async (address, posted) => {
    const at = { now: NOON };
    const device = await joinedAt(at);
    for (let day = 0; day < 3; day++) {
      at.now = NOON + day * DAY;
      await device.settle("once", { c: 1 });
    }
    await device.send(address, "once", { c: 1 }); // loopback: all at once
    assert.deepEqual(periods(posted), [0, 1, 2]);
    assert.equal(new Set(posted.map(({ port }) => port)).size, 3);
  }));

test("an app that ends soon sends in this run: one report, at once, or within its spread", () =>
  withGateway(() => 201, async (address, posted) => {
    const [at, storage] = [{ now: NOON }, memory()];
    const device = await joinedAt(at, { storage });
    const send = (spread) => device.send(address, "once", { c: 1 }, { ...APART, spread });
    assert.equal((await send(0)).status, "reported");
    at.now = NOON + DAY;
    const { againAt, status } = await send(60);
    assert.equal(status, "owed");
    assert.ok(againAt >= at.now + 10_000 && againAt <= at.now + 60_000);
    at.now = againAt;
    assert.equal((await send(60)).status, "reported");
    assert.deepEqual(periods(posted), [0, 1]);
  }));

test("a call sleeps until a report is due, for at most as long as it may", () =>
  withGateway(() => 201, async (address, posted) => {
    const [at, storage, slept] = [{ now: NOON }, memory(), []];
    const wait = (seconds) => {
      slept.push(seconds);
      at.now += 1000 * seconds;
    };
    const device = await joinedAt(at, { storage, wait });
    const { againAt } = await device.send(address, "once", { c: 1 }, APART);
    at.now = againAt - 601_000;
    await device.send(address, "once", { c: 1 }, { ...APART, wait: 600 });
    assert.deepEqual([slept, posted.length], [[], 0]);
    at.now = againAt - 599_000;
    await device.send(address, "once", { c: 1 }, { ...APART, wait: 600 });
    assert.equal(posted.length, 1);
    assert.ok(slept.length === 1 && Math.abs(slept[0] - 599) < 0.01);
    for (const wrong of [{ wait: -1 }, { wait: 600_000 }, { spread: NaN }, { spread: "60" }])
      await assert.rejects(device.send(address, "once", { c: 1 }, wrong), { code: "settings" });
  }));

test("two processes do not send a report twice", () =>
  withGateway(() => 201, async (address, posted) => {
    const [at, storage] = [{ now: NOON }, memory()];
    let queue = Promise.resolve();
    storage.locked = (run) => (queue = queue.then(run, run));
    const one = await joinedAt(at, { storage });
    const other = deviceAt(at, { storage });
    const { againAt } = await one.send(address, "once", { c: 1 }, APART);
    at.now = againAt;
    await Promise.all([one, other].map((device) => device.send(address, "once", { c: 1 }, APART)));
    assert.equal(posted.filter(({ period }) => period === 0).length, 1);
  }));

test("a misspelt name is warned of once, and the report goes out as always", () =>
  withGateway(() => 201, async (address, posted) => {
    const said = [];
    const { warn } = console;
    console.warn = (text) => said.push(text);
    try {
      const at = { now: NOON };
      for (let day = 0; day < 2; day++) {
        at.now = NOON + day * DAY;
        const device = deviceAt(at);
        await device.send(address, "once", { c: 1, more: 2 }); // others ask for `more`: no mistake
        await deviceAt(at).send(address, "once", { "C-secret": 1 });
      }
    } finally {
      console.warn = warn;
    }
    assert.equal(posted.length, 4);
    assert.equal(said.length, 1);
    assert.match(said[0], /survey once asks for c/);
    assert.doesNotMatch(said[0], /secret/);
  }));
