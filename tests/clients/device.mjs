// Sends one report: GATEWAY STATE VALUE.
import { Device } from "../../clients/javascript/device.js";
const [gateway, state, a] = process.argv.slice(-3);
const limits = { value: 9, year: 99 };
const device = new Device(state, { limits, now: () => Date.parse("2026-01-01T12:00:00Z"), wait: () => {} });
console.log((await device.send(gateway, "test", { a })).period);
