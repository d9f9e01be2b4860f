// Gateways that lie about clocks, clocks that are wrong, and clocks that are moved on purpose.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ANYTHING, DAY, deviceAt, memory, START, TERMS, withGateway } from "./world.js";

const NOON = START + DAY / 2;
const AHEAD = [422, "too-far-ahead"];

async function joinedAt(at, survey, more) {
  const device = deviceAt(at, more);
  await device.join(TERMS[survey], { trustFirstUse: true });
  return device;
}

test("nine days of lies about the clock change no gap, and no period has two reports", () => {
  const at = { now: NOON };
  const lying = () => at.now >= NOON + DAY && at.now < NOON + 10 * DAY;
  return withGateway(() => (lying() ? AHEAD : 201), async (address, posted) => {
    const device = await joinedAt(at, "memos");
    const doubts = [];
    for (let day = 0; day < 12; day++) {
      for (let again = 0; again < (lying() ? 5 : 1); again++) {
        at.now = NOON + day * DAY + again * 1000;
        const { status, doubt } = await device.send(address, "memos", { a: 1 });
        doubts.push(`${day} ${status} ${doubt}`);
        if (doubt) await assert.rejects(device.forgetClock("memos"), { code: "clock" });
      }
    }
    assert.ok(doubts.includes("1 owed clock") && doubts.includes("9 owed clock"));
    assert.equal(doubts.at(-1), "11 reported null");
    const reports = new Map();
    for (const { body, period } of posted) {
      const before = reports.get(period) ?? new Set();
      reports.set(period, before.add(body));
    }
    assert.equal(Math.max(...[...reports.values()].map(({ size }) => size)), 1);
    const gaps = new Map(posted.map(({ period, report }) => [period, report.gap]));
    for (let day = 1; day < 12; day++) assert.equal(gaps.get(day), "0001", `day ${day}`);
  });
});

test("a clock that was ahead is forgotten only when it is right, and nothing is answered twice", () => {
  const at = { now: NOON + 5 * DAY };
  let right = 201; // what a gateway answers whose clock is right
  return withGateway(() => right, async (address, posted) => {
    const device = await joinedAt(at, "memos");
    const send = () => device.send(address, "memos", { a: 1 });
    await send();
    at.now = NOON + 44 * DAY;
    right = AHEAD;
    assert.equal((await send()).doubt, "clock");
    at.now = NOON + 45 * DAY;
    assert.equal((await send()).doubt, "clock"); // of the older report; this one was not sent
    await assert.rejects(device.forgetClock("memos"), (error) => {
      assert.equal(error.code, "clock");
      const [what, hint] = ["by this clock these periods have begun", "or the gateway is wrong"];
      assert.ok(error.message.includes(`${what}: set the clock first, ${hint}`), error.message);
      return true;
    });
    at.now = NOON + 6 * DAY;
    right = 201;
    await device.forgetClock("memos");
    assert.deepEqual(await device.owed("memos"), []);
    posted.splice(0);
    const statuses = [];
    for (let day = 6; day < 50; day++) {
      at.now = NOON + day * DAY;
      statuses.push((await send().catch((error) => error)).status);
    }
    // The report of day 44 was attempted, and the gateway has seen it; that of day 45 was not.
    const answered = new Set(posted.map(({ period }) => period));
    const days = Array.from({ length: 44 }, (_, i) => i + 6);
    assert.deepEqual(days.filter((day) => !answered.has(day)), [44]);
    assert.deepEqual(statuses.slice(37, 40), ["reported", "already reported", "reported"]);
    const gaps = new Map(posted.map(({ period, report }) => [period, parseInt(report.gap, 16)]));
    assert.deepEqual([6, 43, 45, 46].map((day) => gaps.get(day)), [1, 1, 2, 1]);
  });
});

test("a report that nobody has seen is made anew after the clock was set right, and no other", () =>
  withGateway(() => 201, async (address) => {
    const at = { now: NOON + 44 * DAY };
    const device = await joinedAt(at, "memos");
    const send = () => device.send(address, "memos", { a: 1 }, { apart: true });
    assert.equal((await send()).status, "owed");
    at.now = NOON + 45 * DAY;
    await device.settle("memos", { a: 1 }); // which the program may have sent
    at.now = NOON + 6 * DAY;
    await device.forgetClock("memos");
    at.now = NOON + 44 * DAY;
    assert.equal((await send()).status, "owed");
    at.now = NOON + 45 * DAY;
    await assert.rejects(device.settle("memos", { a: 1 }), { code: "reported" });
  }));

test("the next call names a report that was dropped, whatever happens in between", () =>
  withGateway(() => 201, async (address) => {
    const at = { now: NOON };
    const device = await joinedAt(at, "memos");
    await device.settle("memos", { a: 1 });
    at.now = NOON + 9 * DAY;
    assert.deepEqual(await device.owed("memos"), []);
    const told = [];
    for (let i = 0; i < 2; i++) told.push((await device.send(address, "memos", { a: 1 })).dropped);
    assert.deepEqual(told, [[0], []]);
  }));

test("a report that was delivered while the clock was ahead is not made again", () =>
  withGateway(() => 201, async (address, posted) => {
    const at = { now: NOON + 45 * DAY };
    const device = await joinedAt(at, "memos");
    await device.send(address, "memos", { a: 1 });
    at.now = NOON + 6 * DAY;
    await device.forgetClock("memos");
    for (const day of [6, 45, 46]) {
      at.now = NOON + day * DAY;
      await device.send(address, "memos", { a: 1 });
    }
    assert.deepEqual(posted.map(({ period }) => period), [45, 6, 46]);
  }));

// How many answers of `once` a device gives under a limit of three, if its clock and its machine
// are moved like this.
async function answersOf(moments) {
  const storage = memory();
  const limits = { ...ANYTHING, year: 4.1 }; // of which one survey gets three quarters
  let moment = moments[0];
  const clock = { now: () => START + 1000 * moment[0], uptime: () => [moment[2], moment[1]] };
  let given = 0;
  for (moment of moments) {
    const device = deviceAt({}, { storage, limits, ...clock });
    try {
      await device.join(TERMS.once, { trustFirstUse: true });
      await device.settle("once", { c: 1 });
      given += 1;
    } catch (error) {
      if (!["limit", "reported"].includes(error.code)) throw error;
    }
  }
  const { answers, year } = await deviceAt({}, { storage, limits, ...clock }).explain();
  assert.equal(answers, given);
  assert.ok(year.answers <= 3);
  return given;
}

const SECONDS = DAY / 1000;
const jumps = (count, uptime, start) =>
  Array.from({ length: count }, (_, i) => [366 * i * SECONDS, uptime(i), start(i)]);

test("who moves the clock, or starts the machine before, renews no limit", async () => {
  assert.equal(await answersOf(jumps(40, (i) => 1000 + 10 * i, () => "a")), 3);
  assert.equal(await answersOf(jumps(40, () => 50, (i) => `start ${i}`)), 3);
  const unnamed = jumps(40, (i) => 5000 - 50 * i, () => ""); // starts that the system does not name
  assert.equal(await answersOf(unnamed), 3);
  // A control: a machine that really runs for all these years.
  assert.equal(await answersOf(jumps(40, (i) => 366 * i * SECONDS, () => "a")), 40);
});

test("limits are renewed after a year for people who move nothing", async () => {
  const weeks = Array.from({ length: 3 * 53 }, (_, week) => week);
  const running = weeks.map((week) => [7 * week * SECONDS, 600 + 7 * week * SECONDS, "a"]);
  assert.equal(await answersOf(running), 9); // three in every 53 weeks
});

test("a machine that is off for long renews its limits later, never earlier", async () => {
  const days = Array.from({ length: 3 * 366 }, (_, day) => day).filter((day) => day % 90 < 60);
  const nightly = days.map((day) => [day * SECONDS, 3600, `day ${day}`]);
  const few = await answersOf(nightly.filter((_, i) => i % 2 === 0));
  assert.ok(few >= 3 && few < 12, few);
});
