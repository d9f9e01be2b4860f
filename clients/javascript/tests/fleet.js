// For the audits in Python. Reads { terms, start, period, secrets, values } and writes what many devices report, a line
// of wire-format JSON each: `values[period][device]` has a device's values, or null where it is absent. Every device is
// one of its own, with its own storage and clock; each report is settled and confirmed, as an app does.

import { readFileSync } from "node:fs";
import { unhex, utf8 } from "../src/bytes.js";
import { Device, MemoryStorage } from "../src/index.js";
import { ANY } from "./helpers.js";

const { terms, start, period, secrets, values } = JSON.parse(readFileSync(0, "utf8"));
const at = { period: 0 };
const now = () => start + (at.period + 0.5) * period * 1000;
const options = { limits: ANY, now };
const joined = new MemoryStorage();
const { id } = await new Device(joined, { ...options, secret: unhex(secrets[0]) }).join(utf8(terms));
const state = JSON.parse((await joined.read()).text); // terms are verified once, not again for every device
const devices = await Promise.all(
  secrets.map(async (secret) => {
    const storage = new MemoryStorage();
    await storage.write(JSON.stringify({ ...state, secret }), 0);
    return new Device(storage, options);
  }),
);
for (at.period = 0; at.period < values.length; at.period++) {
  const lines = [];
  for (const [place, device] of devices.entries()) {
    if (values[at.period][place] === null) continue;
    const { period: reported, report } = await device.settle(id, values[at.period][place]);
    await device.confirm(id, reported);
    lines.push(report);
  }
  if (lines.length > 0) process.stdout.write(`${lines.join("\n")}\n`);
}
