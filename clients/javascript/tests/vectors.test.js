// All of clients/vectors.json: what every device library must do.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Device, internals } from "../device.js";
import { replayed } from "./replay.js";

const vectors = JSON.parse(readFileSync(new URL("../../vectors.json", import.meta.url), "utf8"));
const { calendar: calendarOf, readTerms, sampleId, tupleId } = internals;
const bytes = (text) => new TextEncoder().encode(text);
const digest = (given) => createHash("sha256").update(given).digest();

async function inDirectory(run) {
  const directory = mkdtempSync(join(tmpdir(), "hearsay-"));
  try {
    await run(join(directory, "device"));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

for (const given of vectors.cases)
  test(`a device does what every other library does: ${given.name}`, () =>
    inDirectory(async (path) => {
      const steps = await replayed(given, vectors.any, (options) => new Device(path, options), digest);
      assert.deepEqual(steps, given.steps);
    }));

for (const { name, questions, ...ids } of vectors.questions)
  test(`questions have the ids that every library gives them: ${name}`, async () => {
    const terms = await readTerms(bytes(vectors.cases.find((each) => each.name === name).terms.test));
    for (const { name: asked, id, order, k } of terms.questions)
      assert.deepEqual({ id, order: order ?? [...Array(k).keys()] }, questions[asked]);
    if (ids.tuple) assert.equal(await tupleId(terms), ids.tuple);
    for (const what of ["sampled", "turn"]) if (ids[what]) assert.equal(await sampleId(terms, what), ids[what]);
  });

for (const [name, { start, period, time_zone: zone, units, reports }] of Object.entries(vectors.flags))
  test(`flags of a year in which clocks change: ${name}`, () => {
    const seconds = { "1d": 86400, "1h": 3600 }[period];
    const calendar = calendarOf(Date.parse(start) / 1000, seconds, zone.offsets, zone.until);
    for (const [at, before, flags] of reports)
      assert.equal(calendar.flags(at, before, units).toString(16).padStart(2, "0"), flags, `period ${at} after ${before}`);
  });

const goodTerms = { ...vectors.hostile.terms };
for (const { name, terms } of vectors.signed) goodTerms[name] = terms;

for (const { name, terms, path, value, delete: gone, refused } of [...vectors.hostile.changes, ...vectors.hostile.signed])
  test(`hostile terms are refused: ${name}`, () =>
    inDirectory(async (file) => {
      const changed = JSON.parse(goodTerms[terms]);
      const where = path.slice(0, -1).reduce((at, key) => at[key], changed);
      if (!gone) where[path.at(-1)] = value;
      else if (Array.isArray(where)) where.splice(path.at(-1), 1);
      else delete where[path.at(-1)];
      const joining = new Device(file, { limits: vectors.any }).join(JSON.stringify(changed), { trustFirstUse: true });
      if (refused === null) await joining;
      else await assert.rejects(joining, { name: "DeviceError", code: refused });
    }));

for (const { name, terms, fingerprint, pins, author, signature } of vectors.signed)
  test(`terms are taken under their pins, and signed by their author: ${name}`, () =>
    inDirectory(async (file) => {
      const joined = async (how, options) => {
        const device = new Device(`${file} ${how}`, { limits: vectors.any, now: () => Date.parse("2026-01-02T00:00:00Z") });
        await device.join(terms, options);
        return JSON.parse((await device.settle("test", {})).report).fingerprint;
      };
      for (const pin of pins) assert.equal(await joined(pin, { pin }), fingerprint);
      assert.equal(await joined("signed", { author, signature }), fingerprint);
      const wrong = [fingerprint.slice(1), pins.at(-1).slice(1), pins.at(-1).toUpperCase(), `${pins.at(-1)}0`, ""];
      if (!pins.includes(fingerprint)) wrong.push(fingerprint);
      for (const pin of wrong) await assert.rejects(joined("wrong", { pin }), { code: "pin" });
      for (const pin of [null, undefined]) await assert.rejects(joined("none", { pin }), { code: "pin" });
    }));
