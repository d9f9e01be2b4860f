// Devices for tests in Python (tests/clients/libraries.py): a line of commands in, a line of what came of them out.
//
// A command is [device, what, ...arguments]: `open` with { path, limits, entropy }; `at` with the time in seconds since
// 1970, for how many seconds the machine has run (without it, as long as its clock), and which start of it that is; or a
// method.

import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import { Device, internals } from "../device.js";

const { written } = internals;
const ODD = { nan: NaN, infinity: Infinity, undefined, bigint: 7n, symbol: Symbol("a"), bytes: new Uint8Array(2), function: () => 1 };
const devices = new Map();

function opened({ path, limits, entropy: name }) {
  const at = { seconds: 0, uptime: 0, start: "never restarted", waited: [] };
  const entropy = name ? (what) => createHash("sha256").update(written([name, what])).digest() : undefined;
  const wait = (seconds) => {
    at.waited.push(seconds);
    at.seconds += seconds;
    at.uptime += seconds;
  };
  const machine = { now: () => 1000 * at.seconds, uptime: () => [at.start, at.uptime], wait, entropy };
  return { at, device: new Device(path, { limits, ...machine }) };
}

async function done([name, what, ...given]) {
  if (what === "open") return void devices.set(name, opened(given[0]));
  const { at, device } = devices.get(name);
  if (what === "at") return void Object.assign(at, momentOf(...given));
  return device[what](...given);
}

function momentOf(seconds, uptime = seconds, start = "never restarted") {
  return { seconds, uptime, start };
}

for await (const line of createInterface({ input: process.stdin })) {
  const commands = JSON.parse(line, (_, value) => (value?.odd ? ODD[value.odd] : value));
  const outcomes = [];
  for (const command of commands) {
    try {
      outcomes.push({ is: await done(command) });
    } catch (error) {
      if (error.name !== "DeviceError") throw error;
      const { code, message, hint, againAt } = error;
      outcomes.push({ refused: code, message, hint, againAt });
    }
    const at = devices.get(command[0])?.at;
    Object.assign(outcomes.at(-1), { now: at?.seconds, waited: at?.waited.splice(0) });
  }
  console.log(JSON.stringify(outcomes));
}
