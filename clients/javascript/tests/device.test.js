import assert from "node:assert/strict";
import { test } from "node:test";
import { Device, MemoryStorage } from "../src/index.js";
import { ANY, bytes, changed, deviceAt, honest, named, withGateway } from "./helpers.js";

const CASE = named("capped"); // nine values, at most two memos
const TERMS = bytes(CASE.terms);
const ID = "test";
const value = (a) => ({ a });
const refused = (code) => ({ name: "DeviceError", code });

test("a report is the same for the rest of its period, whatever the values", async () => {
  const { device } = deviceAt(3);
  await device.join(TERMS);
  const first = await device.settle(ID, value(1));
  assert.deepEqual(await device.settle(ID, value(7)), first);
  assert.equal((await device.preview(ID, value(7))).settled, true);
});

test("a person can see a report before anything is sent", async () => {
  await withGateway(honest(CASE.terms), async (address, posted) => {
    const { device } = deviceAt(0);
    await device.joinFrom(address, ID);
    const { report } = await device.preview(ID, value(1));
    assert.deepEqual(posted, []);
    await device.send(address, ID, value(1));
    assert.deepEqual(posted, [report]);
  });
});

test("a period is reported once, and earlier ones not at all", async () => {
  const { device, at } = deviceAt(3);
  await device.join(TERMS);
  await device.settle(ID, value(1));
  await device.confirm(ID, 3);
  for (at.day of [3, 2]) await assert.rejects(device.settle(ID, value(1)), refused("reported"));
});

test("the gap counts from the last report that arrived", async () => {
  const { device, at } = deviceAt(0);
  await device.join(TERMS);
  const gaps = [];
  for (at.day of [0, 1, 2, 9]) {
    const { period, report } = await device.settle(ID, value(1));
    gaps.push(JSON.parse(report).gap);
    if (at.day !== 1) await device.confirm(ID, period); // the report of day 1 is never confirmed, and late on day 2
  }
  assert.deepEqual(gaps, ["0004", "0001", "0002", "0004"]);
});

test("a device holds its last memo from its cap on", async () => {
  const { device, at, storage } = deviceAt(0);
  await device.join(TERMS);
  for (const [day, a] of [1, 2, 3, 1, 4].entries()) {
    at.day = day;
    await device.settle(ID, value(a));
    await device.confirm(ID, day);
  }
  const { text } = await storage.read();
  assert.deepEqual(JSON.parse(text).surveys[ID].cells, { a: [1, 2] });
});

test("a report that was not confirmed is sent again as it was, also by a later process", async () => {
  let status = 503;
  const gateway = (request, response) =>
    request.method === "GET" ? honest(CASE.terms)(request, response) : response.writeHead(status).end();
  await withGateway(gateway, async (address, posted) => {
    const { device, storage } = deviceAt(0);
    await assert.rejects(device.send(address, ID, value(1)), refused("gateway"));
    status = 201;
    const again = deviceAt(0, { storage }).device;
    assert.deepEqual(await again.send(address, ID, value(5)), { period: 0 });
    assert.equal(posted.length, 2);
    assert.equal(posted[0], posted[1]);
    await assert.rejects(again.send(address, ID, value(5)), refused("reported"));
    assert.equal(posted.length, 2);
  });
});

test("an unconfirmed report is sent before the next one while its grace lasts, and never after", async () => {
  const graceful = named("any text"); // one hour of grace
  let status = 503;
  const gateway = (request, response) =>
    request.method === "GET" ? honest(graceful.terms)(request, response) : response.writeHead(status).end();
  await withGateway(gateway, async (address, posted) => {
    const { device, at } = deviceAt(0);
    await assert.rejects(device.send(address, ID, value("é")), refused("gateway"));
    at.day = 1 - 11.5 / 24; // half an hour after midnight
    await assert.rejects(device.settle(ID, value("é")), refused("owed"));
    status = 201;
    await device.send(address, ID, value("é"));
    assert.deepEqual(
      posted.map((report) => JSON.parse(report).period),
      ["00000000", "00000000", "00000001"],
    );
    status = 503;
    at.day = 2;
    await assert.rejects(device.send(address, ID, value("é")), refused("gateway"));
    at.day = 3;
    status = 201;
    await device.send(address, ID, value("é"));
    assert.deepEqual(
      posted.slice(3).map((report) => JSON.parse(report).period),
      ["00000002", "00000003"],
    );
  });
});

test("a collector that has the report already has it; one whose period is closed does not get it", async () => {
  for (const [reason, code] of [
    ["repeat", undefined],
    ["late", "late"],
  ]) {
    const gateway = (request, response) =>
      request.method === "GET"
        ? honest(CASE.terms)(request, response)
        : response.writeHead(409).end(JSON.stringify({ reason }));
    await withGateway(gateway, async (address, posted) => {
      const { device } = deviceAt(0);
      if (code) await assert.rejects(device.send(address, ID, value(1)), refused(code));
      else await device.send(address, ID, value(1));
      await assert.rejects(device.send(address, ID, value(1)), refused("reported"));
      assert.equal(posted.length, 1);
    });
  }
});

test("a report whose period was closed before it was sent is an error, and is never sent", async () => {
  await withGateway(honest(CASE.terms), async (address, posted) => {
    const { device, at } = deviceAt(0);
    const slow = {
      get a() {
        at.day = 2; // what follows takes two days
        return 1;
      },
    };
    await assert.rejects(device.send(address, ID, slow), refused("late"));
    assert.deepEqual(posted, []);
    assert.deepEqual(await device.send(address, ID, value(1)), { period: 2 });
    assert.equal(posted.length, 1);
  });
});

test("a report that another process of the device delivered meanwhile is reported", async () => {
  await withGateway(honest(CASE.terms), async (address, posted) => {
    const { device, storage } = deviceAt(0);
    const other = deviceAt(0, { storage }).device;
    const settle = device.settle.bind(device);
    device.settle = async (...report) => {
      const settled = await settle(...report);
      await other.send(address, ID, value(1));
      return settled;
    };
    assert.deepEqual(await device.send(address, ID, value(1)), { period: 0 });
    assert.equal(posted.length, 1);
  });
});

test("values that the survey does not have are refused, and not repeated in the error", async () => {
  const { device } = deviceAt(0);
  await device.join(TERMS);
  for (const values of [{}, { a: "very personal" }, { constructor: 1 }]) {
    await assert.rejects(
      device.settle(ID, values),
      (error) => error.code === "value" && !error.message.includes("personal"),
    );
  }
});

test("a survey that has not begun, or that was not joined, is not answered", async () => {
  const { device } = deviceAt(-1);
  await assert.rejects(device.settle(ID, value(1)), refused("unknown"));
  await device.join(TERMS);
  await assert.rejects(device.settle(ID, value(1)), refused("early"));
});

test("limits hold for one report, one survey and all of them, and are finite by default", async () => {
  await assert.rejects(deviceAt(0, { limits: { report: 0.9 } }).device.join(TERMS), refused("limit"));
  await assert.rejects(deviceAt(0, { limits: { life: 3.9 } }).device.join(TERMS), refused("limit"));
  await deviceAt(0, { limits: { report: 1, life: 4, total: 4 } }).device.join(TERMS);
  await assert.rejects(
    deviceAt(0, { limits: undefined }).device.join(bytes(named("two bytes").terms)),
    refused("limit"),
  );
  for (const bad of [{ report: Infinity }, { life: NaN }, { total: "60" }, { totals: 1 }]) {
    assert.throws(() => new Device(new MemoryStorage(), { limits: bad }), TypeError);
  }
});

test("a survey is over when its time zone is no longer known", async () => {
  const { steps, terms } = named("local days, between hours");
  const { until } = JSON.parse(terms).declared.time_zone;
  let now = 1000 * until - 1;
  const device = new Device(new MemoryStorage(), { limits: ANY, now: () => now });
  await device.join(bytes(terms));
  assert.equal((await device.settle(ID, steps[0].values)).period, 99);
  await device.confirm(ID, 99);
  now += 1;
  await assert.rejects(device.settle(ID, steps[0].values), refused("over"));
});

test("answers without memos add up until a limit is reached, in one survey and over all", async () => {
  const once = bytes(named("any text").terms); // one report costs 1
  const { device, at } = deviceAt(0, { limits: { ...ANY, life: 2 } });
  await device.join(once);
  for (at.day of [0, 1]) await device.settle(ID, value("é"));
  at.day = 3;
  await assert.rejects(device.settle(ID, value("é")), refused("limit"));
  await assert.rejects(device.settle(ID, value("é")), refused("limit"));
});

test("two processes of one device settle one report", async () => {
  const { device, storage } = deviceAt(0);
  await device.join(TERMS);
  const all = await Promise.all([1, 2, 3, 4].map((a) => deviceAt(0, { storage }).device.settle(ID, value(a))));
  assert.equal(new Set(all.map(({ report }) => report)).size, 1);
});

test("a new device draws its secret from the system", async () => {
  const secrets = new Set();
  for (let i = 0; i < 3; i++) {
    const { device, storage } = deviceAt(0);
    await device.join(TERMS);
    secrets.add(JSON.parse((await storage.read()).text).secret);
  }
  assert.equal(secrets.size, 3);
  for (const secret of secrets) assert.match(secret, /^[0-9a-f]{64}$/);
});

test("what other surveys may reveal counts, too", async () => {
  const other = changed("capped", (terms) => (terms.declared.id = "other"));
  const { device } = deviceAt(0, { limits: { report: 1, life: 4, total: 7.9 } });
  await device.join(TERMS);
  await assert.rejects(device.join(other), refused("limit"));
  await deviceAt(0, { limits: { total: 8 } }).device.join(other);
});
