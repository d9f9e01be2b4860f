import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, changed, deviceAt, honest, named, withGateway } from "./helpers.js";

const ID = "test";
const values = { a: 1, b: 1 };
const [DIRECT, BITS, ORDERED] = ["two rounds, l-grr", "two rounds, l-osue", "two rounds, l-geometric"];
const [MOVED, WEIGHED] = ["two rounds, geo-grid", "two rounds, geo-tight"];
const LOCAL = "local days, between hours";
const zone = (change) => (terms) => change(terms.declared.time_zone, terms.declared.time_zone.offsets);
const first = (change) => (terms) => change(terms.questions[0], terms);

// Each: the survey, what a hostile gateway makes of its terms, and with which code they are refused.
const HOSTILE = {
  "the truth is always told": [DIRECT, first((q) => (q.first = q.second = { p: 1, q: 0 })), "terms"],
  "the truth is nearly always told": [DIRECT, first((q) => (q.second = { p: 0.9999, q: 0.0001 / 8 })), "losses"],
  "the memo is nearly the truth": [DIRECT, first((q) => (q.first = { p: 0.9999, q: 0.0001 / 8 })), "losses"],
  "bits that are kept": [BITS, first((q) => (q.second = { p: 0.999, q: 0.001 })), "losses"],
  "bits that are the truth": [BITS, first((q) => (q.first = { p: 1, q: 0 })), "terms"],
  "shares that sum to more than 1": [DIRECT, first((q) => (q.first = { p: 0.9, q: 0.5 })), "terms"],
  "the value without noise, in order": [
    ORDERED,
    first((q) => q.second.ends.fill(0, 1) && q.second.inside.fill(0, 1)),
    "losses",
  ],
  "rows that name their input": [
    ORDERED,
    first((q) => ((q.first.inside[0] = 0.99), q.first.inside.fill(0, 1))),
    "losses",
  ],
  "probabilities that are not": [DIRECT, first((q) => (q.first.p = "0.5")), "terms"],
  "no second round": [DIRECT, first((q) => (q.second = null)), "terms"],
  "other tables": [DIRECT, first((q) => (q.tables.first[0] = q.tables.second[0])), "terms"],
  "tables left out": [DIRECT, first((q) => (q.tables.second = [])), "terms"],
  "one attribute sampled otherwise": [DIRECT, (terms) => (terms.sampled = null), "terms"],
  "smaller budgets than are spent": [DIRECT, (terms) => (terms.declared.eps_inf = 1), "losses"],
  "fakes that show the truth": ["rs+fd, oue-r", first((q) => (q.first.q = 1e-9)), "losses"],
  "fakes where there are none": [DIRECT, first((q) => (q.fakes = "bare")), "terms"],
  "a key that nobody knows": [DIRECT, (terms) => (terms.declared.exactly = true), "terms"],
  "an attribute with a key that nobody knows": [DIRECT, (terms) => (terms.declared.attributes[0].raw = true), "terms"],
  "another version": [DIRECT, (terms) => (terms.version = 2), "terms"],
  "no tables": [DIRECT, first((q) => delete q.tables), "terms"],
  "no questions": [DIRECT, (terms) => (terms.questions = []), "terms"],
  "offsets in another order": [LOCAL, zone((_, offsets) => offsets.push([0, 3600])), "terms"],
  "offsets of more than a day": [LOCAL, zone((_, offsets) => (offsets[0][1] = 86400)), "terms"],
  "offsets that are no numbers": [LOCAL, zone((_, offsets) => (offsets[0] = "12")), "terms"],
  "no offsets": [LOCAL, zone((named) => (named.offsets = [])), "terms"],
  "days that begin before the survey": [LOCAL, zone((_, offsets) => (offsets[0][1] += 60)), "terms"],
  "zones with a key that nobody knows": [LOCAL, zone((named) => (named.rule = "EU")), "terms"],
  "places that are hardly moved": [MOVED, first((q) => (q.second.rate *= 1.1)), "losses"],
  "memos of places that are hardly moved": [MOVED, first((q) => (q.first.rate *= 1.01)), "losses"],
  "weights that fall too steeply": [WEIGHED, first((q) => (q.first.slope *= 1.01)), "losses"],
  "reports whose weights fall too steeply": [WEIGHED, first((q) => (q.second.slope *= 1.1)), "losses"],
  "cells that are much likelier than others": [WEIGHED, first((q) => (q.first.masses[3] *= 100)), "losses"],
  "masses below 0": [WEIGHED, first((q) => (q.second.masses[3] = -1)), "terms"],
  "cells that are not on the grid": [WEIGHED, (terms) => (terms.declared.attributes[0].grid.inside[0] = "x1-9y0"), "terms"],
  "other cells inside": [WEIGHED, (terms) => (terms.declared.attributes[0].grid.inside[0] = "x2-4y0"), "losses"],
  "another survey": [DIRECT, (terms) => (terms.declared.id = "other"), "terms"],
};

for (const [what, [name, change, code]] of Object.entries(HOSTILE)) {
  test(`a gateway gets nothing with terms in which there are ${what}`, async () => {
    await withGateway(honest(changed(name, change)), async (address, posted) => {
      const { device } = deviceAt(0);
      await assert.rejects(device.send(address, ID, values), { name: "DeviceError", code });
      await assert.rejects(device.settle(ID, values), { code: "unknown" });
      assert.deepEqual(posted, []);
    });
  });
}

test("larger budgets are refused by the limits, although the terms are what they say", async () => {
  await withGateway(honest(named("memo only, grr").terms), async (address, posted) => {
    const { device } = deviceAt(0, { limits: { report: 1.9 } });
    await assert.rejects(device.send(address, ID, values), { code: "limit" });
    assert.deepEqual(posted, []);
  });
});

test("terms that changed since the first use, or that are not those of the app, are refused", async () => {
  const [before, after] = [bytes(named("capped").terms), bytes(named("published calibration").terms)];
  const { device } = deviceAt(0);
  const { fingerprint } = await device.join(before);
  await assert.rejects(device.join(after), { code: "changed" });
  await assert.rejects(deviceAt(0, { pins: { test: fingerprint } }).device.join(after), { code: "pin" });
  await assert.rejects(deviceAt(0, { pins: {} }).device.join(before), { code: "pin" });
  await deviceAt(0, { pins: { test: fingerprint } }).device.join(before);
});

test("a gateway that changes its terms gets reports under the first ones only", async () => {
  let terms = named("capped").terms;
  const gateway = (request, response) => honest(terms)(request, response);
  await withGateway(gateway, async (address, posted) => {
    const { device, at } = deviceAt(0);
    await device.send(address, ID, values);
    terms = named("published calibration").terms;
    at.day = 1;
    await device.send(address, ID, values);
    const [one, other] = posted.map((report) => JSON.parse(report).fingerprint);
    assert.equal(one, other);
  });
});

// Answers to the request for terms that are not terms.
const ANSWERS = {
  "cut short": (_, response) => {
    response
      .writeHead(200, { "content-length": 10_000 })
      .write(named("capped").terms.slice(0, 100), () => response.destroy());
  },
  "half of the terms": (_, response) => response.writeHead(200).end(named("capped").terms.slice(0, 400)),
  "terms after a mark": (_, response) => response.writeHead(200).end(`\ufeff${named("capped").terms}`),
  "not JSON": (_, response) => response.writeHead(200).end("<html>"),
  "not text": (_, response) => response.writeHead(200).end(Buffer.from([0xff, 0xfe, 0])),
  null: (_, response) => response.writeHead(200).end("null"),
  "too long": (_, response) => {
    const more = () => response.write(" ".repeat(1 << 20), () => response.destroyed || more());
    response.writeHead(200);
    more();
  },
  slow: (_, response) => {
    // Good terms, but byte by byte for far longer than the device waits.
    const terms = Buffer.from(named("capped").terms);
    response.writeHead(200);
    let sent = 0;
    const drip = setInterval(() => {
      sent += 1;
      if (sent < 40) response.write(terms.subarray(sent - 1, sent));
      else response.end(terms.subarray(sent - 1), () => clearInterval(drip));
    }, 100);
    response.on("close", () => clearInterval(drip));
  },
  "no answer": () => {},
  "a redirect": (request, response) => {
    if (request.url.startsWith("/v1")) response.writeHead(302, { location: "/elsewhere" }).end();
    else response.writeHead(200).end(named("capped").terms);
  },
  "an error": (_, response) => response.writeHead(500).end(named("capped").terms),
};

for (const [what, answer] of Object.entries(ANSWERS)) {
  test(`a gateway gets nothing for an answer that is ${what}`, async () => {
    await withGateway(answer, async (address, posted) => {
      const { device } = deviceAt(0);
      await assert.rejects(
        device.send(address, ID, values, { timeout: 1000 }),
        ({ code }) => code === "gateway" || code === "terms",
      );
      assert.deepEqual(posted, []);
    });
  });
}
