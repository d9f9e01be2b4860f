// What is not in the tests that this library shares with the one in Python (tests/clients): recorders, and locks of files.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Device, Recorder } from "../device.js";

const vectors = JSON.parse(readFileSync(new URL("../../vectors.json", import.meta.url), "utf8"));
const TERMS = vectors.cases.find(({ name }) => name === "capped").terms.test;
const now = () => Date.parse("2026-01-01T12:00:00Z");
const SETTLE = `
  import { Device } from "${new URL("../device.js", import.meta.url)}";
  const device = new Device(process.argv[1], { now: () => ${now()}, limits: ${JSON.stringify(vectors.any)} });
  await device.join(${JSON.stringify(TERMS)}, { trustFirstUse: true });
  console.log((await device.settle("test", { a: process.argv[2] })).report);`;

const inDirectory = (run) => async () => {
  const directory = mkdtempSync(join(tmpdir(), "hearsay-"));
  try {
    await run(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
};

// A process that runs a script, and what it has said when it ends.
function running(script, ...given) {
  const child = spawn(process.execPath, ["--input-type=module", "-e", script, ...given], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout.on("data", (part) => (said += part));
  return { child, ended: once(child, "close").then(() => said) };
}

test(
  "processes that begin at once are one device with one report, and leave nothing else behind",
  inDirectory(async (directory) => {
    const path = join(directory, "device");
    const reports = await Promise.all([1, 2, 3, 4].map((value) => running(SETTLE, path, value).ended));
    assert.equal(new Set(reports).size, 1);
    assert.equal(JSON.parse(reports[0]).period, "00000000");
    assert.deepEqual(readdirSync(directory), ["device"]);
    assert.equal(statSync(path).mode & 0o777, 0o600);
  }),
);

test(
  "calls of one program that are made at once are made one after the other",
  inDirectory(async (directory) => {
    const device = new Device(join(directory, "device"), { now, limits: vectors.any });
    await device.join(TERMS, { trustFirstUse: true });
    const reports = await Promise.all([1, 2, 3, 4].map((a) => device.settle("test", { a })));
    assert.equal(new Set(reports.map(({ report }) => report)).size, 1);
  }),
);

test(
  "the lock of a process is kept while it lives, and broken when it was killed",
  inDirectory(async (directory) => {
    const [path, lock] = [join(directory, "device"), join(directory, "device.lock")];
    const { child, ended } = running("setInterval(() => {}, 1000)");
    writeFileSync(lock, `${child.pid} a-name`);
    let done = false;
    const waiting = new Device(path, { now }).explain().then(() => (done = true));
    await pause(200);
    assert.equal(done, false);
    child.kill("SIGKILL");
    await ended;
    await waiting;
    assert.equal(existsSync(lock), false);
  }),
);

test(
  "a lock of an earlier process with the number of this one is broken",
  inDirectory(async (directory) => {
    const lock = join(directory, "device.lock");
    writeFileSync(lock, `${process.pid} a-name`);
    utimesSync(lock, 1, 1);
    await new Device(join(directory, "device"), { now }).explain();
    assert.equal(existsSync(lock), false);
  }),
);

for (const [rule, value] of Object.entries({ first: "b", last: "a", "most frequent": "a", longest: "b" }))
  test(`a recorder makes one value of many events: ${rule}`, () => {
    const recorder = new Recorder(rule);
    assert.equal(recorder.value, null);
    for (const [name, seconds] of [["b", 9], ["a", 2], ["c", 1], ["a", 3]]) recorder.add(name, seconds);
    const again = new Recorder(rule, { state: JSON.parse(JSON.stringify(recorder.state)) });
    assert.deepEqual([recorder.value, again.value], [value, value]);
    recorder.clear();
    assert.equal(recorder.value, null);
  });

test("of several values with the same weight a recorder has the one that came first, also of numbers", () => {
  const recorder = new Recorder("most frequent");
  for (const value of [10, 9, 9, 10]) recorder.add(value);
  assert.equal(recorder.value, "10");
});

test("a recorder counts in buckets", () => {
  const recorder = new Recorder("count", { buckets: { none: 0, "1-9": 1, "10 or more": 10 } });
  const said = [recorder.value];
  for (let i = 0; i < 10; i++) {
    recorder.add();
    said.push(recorder.value);
  }
  assert.deepEqual(said, ["none", ...Array(9).fill("1-9"), "10 or more"]);
  for (const bad of [["count", { buckets: { some: 1 } }], ["count"], ["first", { buckets: { none: 0 } }], ["best"]])
    assert.throws(() => new Recorder(...bad), { code: "settings" });
});
