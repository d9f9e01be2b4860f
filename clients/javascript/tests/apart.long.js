// Whoever sees when reports arrive pairs the two reports of one device no better than at random.
//
// Thirty devices settle on two days, each at its own time of day. The observer has the times of
// both days' reports, and knows how devices work. All draws follow from a seed, so the figures are
// the same in every run.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { DAY, deviceAt, START, TERMS, withGateway } from "./world.js";

const DEVICES = 30;
const SHUFFLES = 500;
const MOST_CALLS = 100;
const hash = (...what) => createHash("sha256").update(what.join(" ")).digest();
const drawn = (...what) => hash(...what).readUInt32LE() / 2 ** 32;

// `calls`: when a device calls by itself. Between them it also calls when its last call said so,
// unless it is `asleep`.
const SCENARIOS = {
  "a gateway that answers nothing until the second day": {
    calls: (own) => [own, own + DAY],
    asleep: () => false,
    fails: (now) => now < START + 1.4 * DAY,
  },
  "devices that sleep through both moments": {
    calls: (own, number) => [own, own + DAY, START + (2.5 + drawn("wakes", number)) * DAY],
    asleep: (callsLeft) => callsLeft > 0,
    fails: () => false,
  },
};

// By period the time at which the report of each device arrived.
function arrivals({ calls, asleep, fails }, options) {
  const arrived = [[], []];
  let [at, number] = [{ now: START }, 0];
  function answer(period) {
    if (fails(at.now)) return 503;
    if (period < 2) arrived[period][number] = at.now;
    return 201;
  }
  return withGateway(answer, async (address) => {
    for (number = 0; number < DEVICES; number++) {
      at = { now: START };
      const device = deviceAt(at, { entropy: ((name) => (what) => hash(name, what))(number) });
      await device.join(TERMS.once, { trustFirstUse: true });
      const own = START + 0.5 * drawn("own time", number) * DAY;
      const left = calls(own, number);
      let called = 0;
      let next = left.shift();
      while (arrived[0][number] === undefined || arrived[1][number] === undefined) {
        assert.ok(called++ < MOST_CALLS, `device ${number} calls without end`);
        at.now = Math.max(at.now, next);
        const again = await calledAgain(device, address, options);
        next = left.length && (asleep(left.length) || left[0] <= again) ? left.shift() : again;
      }
    }
    return arrived;
  });
}

async function calledAgain(device, address, options) {
  try {
    return (await device.send(address, "once", { c: 1 }, options)).againAt;
  } catch (error) {
    if (error.code !== "gateway") throw error;
    return error.againAt;
  }
}

const ranked = (times) => times.map((time) => times.filter((other) => other < time).length);

// How many devices an observer pairs rightly: by order, by the nearest time, by the nearest time of
// day.
const OBSERVERS = {
  order(first, second) {
    const [ranks, others] = [ranked(first), ranked(second)];
    return ranks.filter((rank, i) => rank === others[i]).length;
  },
  time: (first, second) => nearest(first, second, (apart) => Math.abs(apart)),
  "time of day": (first, second) => nearest(first, second, withinDay),
};

function withinDay(apart) {
  const passed = Math.abs(apart) % DAY;
  return Math.min(passed, DAY - passed);
}

function nearest(first, second, distance) {
  const isRight = (time, i) => {
    const all = second.map((other) => distance(time - other));
    return all[i] === Math.min(...all);
  };
  return first.filter(isRight).length;
}

// Other orders of the devices: what an observer pairs in them is random.
const ORDERS = Array.from({ length: SHUFFLES }, (_, i) => {
  const numbered = Array.from({ length: DEVICES }, (_, place) => [drawn("order", i, place), place]);
  return numbered.sort(([a], [b]) => a - b).map(([, place]) => place);
});

function chanceOf(observer, first, second) {
  const right = observer(first, second);
  const mixed = ORDERS.map((order) => order.map((place) => second[place]));
  const asMany = mixed.filter((other) => observer(first, other) >= right);
  return { right, chance: asMany.length / SHUFFLES };
}

for (const [name, scenario] of Object.entries(SCENARIOS))
  test(`times and order of arrival pair no reports: ${name}`, async () => {
    const apart = await arrivals(scenario, { apart: true });
    for (const [how, observer] of Object.entries(OBSERVERS)) {
      const { right, chance } = chanceOf(observer, ...apart);
      assert.ok(chance > 0.01, `by ${how}: ${right} of ${DEVICES}; at random with ${chance}`);
    }
    // A control: devices that send at once are found.
    const together = await arrivals(scenario, { apart: false });
    const found = Object.values(OBSERVERS).map((observer) => observer(...together));
    assert.ok(Math.max(...found) > 20, `${found}`);
  });
