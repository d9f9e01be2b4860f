// One of several processes of one device, for processes.test.js: settles a report and prints it.

import { Device } from "../src/index.js";
import { FileStorage } from "../src/storage/file.js";
import { ANY, bytes, named } from "./helpers.js";

const [directory, value] = process.argv.slice(2);
const now = () => Date.parse("2026-01-01T12:00:00Z");
const device = new Device(new FileStorage(directory), { now, limits: ANY });
await device.join(bytes(named("capped").terms));
console.log((await device.settle("test", { a: value })).report);
