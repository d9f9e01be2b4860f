// A device that answers hearsay surveys under local differential privacy, and trusts nobody.
// docs/device-protocol.md says what it does, device.d.ts what an app calls.

import { DeviceError, field, has, isNumber, isRecord, listOf, matching, need, notTerms } from "./errors.js";
import { oneOf, onlyKeys, own, parsed, refuse, SKIP, textOf, unique, wholeIn } from "./errors.js";
import { gatewayAt, LATER, MAX_TERMS_BYTES } from "./gateway.js";
import { anotherMoment, firstMoment, sendingOf } from "./moments.js";
import { chance, explained, presenceOf } from "./presence.js";
import { database, drop, erase, forgetAfter, handOut, isAnswered } from "./state.js";
import { live, noteSettled, opened, owedIn, today } from "./state.js";

export { DeviceError };
export { Recorder } from "./recorder.js";

// ---- bytes

const { abs, ceil, exp, floor, log, log2, max, min, sqrt } = Math;
const DAY = 86400;
const range = (count, from = 0) => Array.from({ length: count }, (_, i) => from + i);
const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
const largest = (numbers) => numbers.reduce((most, each) => max(most, each), 0);
const distance = (a, b) => sqrt(a * a + b * b); // Math.hypot is not rounded correctly everywhere
const utf8 = (text) => new TextEncoder().encode(text);
const hex = (bytes) => Array.from(bytes, (byte) => digits(byte, 2)).join("");
const unhex = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
const digits = (number, width) => number.toString(16).padStart(width, "0");
const webCrypto = globalThis.crypto ?? (await import(/* webpackIgnore: true */ "node:crypto")).webcrypto;

function subtle() {
  return webCrypto.subtle ?? refuse("settings", "this page has no cryptography", "open it by https, or on localhost");
}

function concat(parts) {
  const all = new Uint8Array(sum(parts.map((part) => part.length)));
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  return all;
}

// Of each text the length in UTF-8 (4 bytes, little-endian), then its bytes.
function written(texts) {
  const sized = (bytes) => [new Uint8Array([0, 8, 16, 24].map((shift) => bytes.length >> shift)), bytes];
  return concat(texts.map(utf8).flatMap(sized));
}

// The order of UTF-8 bytes: surrogates come after all other units of UTF-16.
function byBytes(one, other) {
  let i = 0;
  while (i < one.length && one[i] === other[i]) i++;
  if (i === one.length || i === other.length) return one.length - other.length;
  const [a, b] = [one, other].map((text) => text.charCodeAt(i));
  const [first, second] = [a, b].map((unit) => unit >= 0xd800 && unit <= 0xdfff);
  return first === second ? a - b : first - second;
}

const sha256 = async (bytes) => hex(new Uint8Array(await subtle().digest("SHA-256", bytes)));

async function hmac(key, message) {
  const imported = await subtle().importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await subtle().sign("HMAC", imported, message));
}

const derived = async (key, ...purpose) => (await hmac(key, written(purpose))).subarray(0, 16);

// ---- draws: the random bits of an AES key and a tweak

const drawsWith = async (key, tweak = 0) =>
  drawsOf(await subtle().importKey("raw", key, "AES-CTR", false, ["encrypt"]), tweak, 0);

function drawsOf(key, tweak, lane) {
  // WebCrypto has no single block: it is the keystream of AES-CTR with the block as its counter.
  async function block(number) {
    const counter = new DataView(new ArrayBuffer(16));
    counter.setUint32(8, tweak, true);
    counter.setUint32(12, number, true);
    const options = { name: "AES-CTR", counter: counter.buffer, length: 128 };
    return new Uint8Array(await subtle().encrypt(options, key, new Uint8Array(16)));
  }
  async function blocks(kind, first, count) {
    const numbers = range(count, (lane + kind) * 2 ** 24 + first);
    return new DataView(concat(await Promise.all(numbers.map(block))).buffer);
  }
  return {
    fork: (other) => drawsOf(key, tweak, lane + 3 * other),
    async longs(count) {
      const view = await blocks(0, 0, ceil(count / 2));
      return range(count).map((i) => view.getBigUint64(8 * i, true));
    },
    async words(count) {
      const view = await blocks(1, 0, ceil(count / 8));
      return range(count).map((i) => view.getUint16(2 * i, true));
    },
    further: async (place) => (await blocks(2, place, 1)).getBigUint64(0, true),
    async allFurther(count) {
      const view = await blocks(2, 0, count);
      return range(count).map((place) => view.getBigUint64(16 * place, true));
    },
  };
}

// ---- tables: exact sampling from integers; no float is compared

const [SLOTS, WORD] = [1n << 16n, 1n << 64n];
const bigSum = (numbers) => numbers.reduce((total, each) => total + each, 0n);
const below = (count, long) => Number((long * BigInt(count)) >> 64n); // 64 random bits as a number below `count`

// numerator and exponent: the float is numerator / 2^exponent.
function fraction(float) {
  const bits = BigInt(`0x${bitsOf(float)}`);
  const exponent = Number(bits >> 52n);
  const mantissa = bits & 0xfffffffffffffn;
  return exponent === 0 ? [mantissa, 1074] : [mantissa | 0x10000000000000n, 1075 - exponent];
}

function bitsOf(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  return digits(view.getBigUint64(0), 16);
}

function wholeNumbers(floats) {
  const found = floats.map(fraction);
  const scale = largest(found.map(([numerator, exponent]) => (numerator ? exponent : 0)));
  return found.map(([numerator, exponent]) => (numerator ? numerator << BigInt(scale - exponent) : 0n));
}

// The float nearest to numerator / 2^exponent; of two equally near ones that with the even last bit.
function nearest(numerator, exponent) {
  const spare = max(0, numerator.toString(2).length - 53, exponent - 1074);
  const whole = 1n << BigInt(spare);
  let kept = numerator / whole;
  const twice = (numerator % whole) * 2n;
  if (twice > whole || (twice === whole && kept % 2n)) kept += 1n;
  const half = (exponent - spare) >> 1; // in two steps: 2^-1074 times 2^-1 would be 0
  return Number(kept) * 2 ** -half * 2 ** -(exponent - spare - half);
}

// Where [0, 2^64) is cut so that piece i has weights[i] of it.
function cutsOf(weights) {
  const total = bigSum(weights);
  let running = 0n;
  return weights.slice(0, -1).map((weight) => {
    running += weight;
    const cut = total ? (2n * running * WORD + total) / (2n * total) : 0n;
    return cut < WORD ? cut : WORD - 1n;
  });
}

function notBelow(ascending, number) {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle] <= number) low = middle + 1;
    else high = middle;
  }
  return low;
}

function digest(rows, width, rowAt, shape = `(${rows}, ${width})`) {
  const head = utf8(shape);
  const view = new DataView(new ArrayBuffer(head.length + 8 * rows * width));
  new Uint8Array(view.buffer).set(head);
  for (const row of range(rows))
    rowAt(row).forEach((each, i) => view.setBigUint64(head.length + 8 * (row * width + i), BigInt(each), true));
  return sha256(view.buffer);
}

// One distribution over symbols, or a few of them (kinds) that are drawn with the same words.
function table(...distributions) {
  const weights = distributions.map(wholeNumbers);
  const totals = weights.map(bigSum);
  const all = weights.map((each, kind) => each.map((weight) => Number((weight * SLOTS) / totals[kind])));
  const filled = min(...all.map(sum)); // not a function of the kind
  const ends = all.map((each) => {
    let end = 0;
    return each.map((slots) => (end = min(filled, end + slots)));
  });
  const slots = ends.map((each) => each.map((end, i) => end - (each[i - 1] ?? 0)));
  const cuts = weights.map((each, kind) =>
    cutsOf(each.map((weight, i) => weight * SLOTS - BigInt(slots[kind][i]) * totals[kind])),
  );
  // A symbol for each of `count` words; at the place exempt[0] of kind exempt[1].
  async function sample(draws, count, exempt = [0, 0]) {
    const drawn = async (word, place) => {
      const kind = place === exempt[0] ? exempt[1] : 0;
      return word < filled ? notBelow(ends[kind], word) : notBelow(cuts[kind], await draws.further(place));
    };
    return Promise.all((await draws.words(count)).map(drawn));
  }
  return {
    sample,
    one: async (draws, kind = 0) => (await sample(draws, 1, [0, kind]))[0],
    digest: () => digest(slots.length, 2 * slots[0].length - 1, (kind) => [...slots[kind], ...cuts[kind]]),
  };
}

function byDistance(row, ends, inside) {
  const last = ends.length - 1;
  return ends.map((_, column) => (column === 0 || column === last ? ends : inside)[abs(row - column)]);
}

const tables = new Map();

function remembered(name, make) {
  if (tables.size >= 64) tables.clear();
  if (!tables.has(name)) tables.set(name, make());
  return tables.get(name);
}

const uniform = (count) => remembered(`uniform ${count}`, () => table(new Array(count).fill(1)));

// A byte of independent bits, each 1 with probability q; of kind i, bit i - 1 is 1 with probability p instead.
function eightBits(q, p) {
  const all = new Array(8).fill(q);
  const kinds = [all, ...(p === undefined ? [] : range(8).map((bit) => all.map((each, i) => (i === bit ? p : each))))];
  return remembered(`bits ${q} ${p}`, () => table(...kinds.map(independent)));
}

function independent(bits) {
  let [found, scale] = [[1n], 0];
  for (const [one, exponent] of bits.map(fraction)) {
    const zero = (1n << BigInt(exponent)) - one;
    found = [zero, one].flatMap((factor) => found.map((rest) => rest * factor));
    scale += exponent;
  }
  return found.map((chance) => nearest(chance, scale));
}

// ---- encodings: a value becomes a cell, a cell a memo (round 1), a memo an answer (round 2)
//
// `memoise` is in the question's own order of values; `toSurvey` puts memo and trait into the survey's.

const encodings = { direct, unary, hashed, fresh, buckets, threshold, plane: direct };

const digestsOf = (...noises) => Promise.all(noises.filter(Boolean).map((each) => each.digest()));

function noise({ rate, ends, inside, p, q }, k, grid, fakes) {
  if (rate) return geo.displacement(grid, rate);
  if (ends) {
    const whole = wholeNumbers([...ends, ...inside]); // of one scale, which cuts do not depend on
    const row = (symbol) => cutsOf(byDistance(symbol, whole.slice(0, k), whole.slice(k)));
    const from = async (symbol, draws) => notBelow(row(symbol), (await draws.longs(1))[0]);
    return { digest: () => digest(k, k - 1, row), from };
  }
  // A flip is a shift: by 0 with p, by each other amount with q. So one table serves all symbols.
  const shifts = table([p, ...new Array(k - 1).fill(q)], ...(fakes ? [fakes] : []));
  const from = async (symbol, draws) => (symbol + (await shifts.one(draws))) % k;
  return { digest: shifts.digest, from, fake: (draws) => shifts.one(draws, 1) };
}

function direct({ k, first, second, fakes, grid }) {
  const one = noise(first, k, grid, fakes?.kind === "bare" && fakes.shares);
  const two = second && noise(second, k, grid);
  const drawn = fakes?.kind === "noisy" && table(fakes.shares);
  return {
    digests: async () => ({ traits: [], first: await digestsOf(one, drawn), second: await digestsOf(two) }),
    trait: async () => null,
    cell: (value) => value,
    async memoise(cell, mine, draws) {
      if (!mine && !drawn) return one.fake(draws);
      return one.from(mine ? cell : await drawn.one(draws.fork(2)), draws);
    },
    toSurvey: (memo, trait, order) => [order(memo), trait],
    perturb: async (memo, draws) => (two ? two.from(memo, draws) : memo),
    finish: (answer) => symbolBytes(answer, k),
    supports: (answer) => [answer],
  };
}

function unary({ k, first, second, fakes }) {
  const drawn = fakes?.kind === "noisy" && table(fakes.shares);
  const one = eightBits(first.q, first.p);
  const flips = second && eightBits(second.q);
  const stays = second && second.p + second.q !== 1 && eightBits(second.p); // ones are flipped with 1 - p, not with q
  const bytes = ceil(k / 8);
  const spare = 8 * bytes - k;
  const cleared = (given) => Uint8Array.from(given, (byte, i) => byte & (i < bytes - 1 ? 0xff : 0xff >> spare));
  const ones = (given) => range(k).filter((i) => (given[i >> 3] >> (i & 7)) & 1);
  return {
    digests: async () => ({ traits: [], first: await digestsOf(one, drawn), second: await digestsOf(flips, stays) }),
    trait: async () => null,
    cell: (value) => value,
    async memoise(cell, mine, draws) {
      const at = mine || !drawn ? cell : await drawn.one(draws.fork(2));
      const there = (mine || drawn) && at < k;
      return cleared(await one.sample(draws, bytes, there ? [at >> 3, 1 + (at & 7)] : [0, 0]));
    },
    toSurvey: (memo, trait, order) => [setBits(k, ones(memo).map(order)), trait],
    async perturb(memo, draws) {
      if (!second) return memo;
      let flip = await flips.sample(draws, bytes);
      const stay = stays && (await stays.sample(draws.fork(1), bytes));
      if (stay) flip = flip.map((byte, i) => byte ^ (memo[i] & (byte ^ ~stay[i])));
      return cleared(flip).map((byte, i) => byte ^ memo[i]);
    },
    finish: (answer) => answer,
    supports: ones,
  };
}

// Hash x maps value i to the inner product of the digits of x and those of the i-th point.
function hashed({ k, parameter: g, first, second }) {
  const places = range(mostDigits(g)).reverse();
  const rows = range(g ** places.length).map((number) => places.map((i) => floor(number / g ** i) % g));
  const points = rows.filter((row) => row.find((digit) => digit) === 1).slice(0, k);
  const cell = (value, trait) => sum(rows[trait].map((digit, i) => digit * points[value][i])) % g;
  const symbols = direct({ k: g, first, second });
  return {
    ...symbols,
    async digests() {
      const hashes = await digest(rows.length, k, (x) => range(k).map((i) => cell(i, x)));
      return { ...(await symbols.digests()), traits: [await uniform(rows.length).digest(), hashes] };
    },
    trait: (draws) => uniform(rows.length).one(draws),
    cell,
    toSurvey: kept,
    finish: (answer, trait) => symbolBytes(trait * g + answer, rows.length * g),
    supports: sentTo(k, cell),
  };
}

function fresh({ k, parameter: g, first }) {
  const count = freshDigits(k, g);
  const places = range(count).map((i) => g ** i);
  const digitOf = (number, place) => floor(number / place) % g;
  const cell = (hash, value) => sum(places.map((place) => digitOf(hash, place) * digitOf(value, place))) % g;
  const symbols = direct({ k: g, first });
  return {
    ...symbols,
    async digests() {
      const found = await symbols.digests();
      return { ...found, first: [await uniform(g).digest(), ...found.first] };
    },
    async memoise(value, mine, draws) {
      const drawn = await uniform(g).sample(draws.fork(1), count);
      const hash = drawn.reduce((before, digit) => before * g + digit, 0);
      return hash * g + (await symbols.memoise(cell(hash, value), mine, draws));
    },
    toSurvey: kept,
    finish: (answer) => symbolBytes(answer, g ** (count + 1)),
    supports: (answer) => range(k).filter((value) => cell(floor(answer / g), value) === answer % g),
  };
}

// The last cell stands for all values that are not held.
function buckets({ k, parameter: d, first, second }) {
  const bits = unary({ k: d, first, second });
  const supports = (answer, trait) => bits.supports(answer).map((place) => trait[place]);
  return {
    ...bits,
    async digests() {
      return { ...(await bits.digests()), traits: [await digest(1, d, () => range(d, k - d + 1), `(${d},)`)] };
    },
    // Floyd's algorithm: every set is equally likely.
    async trait(draws) {
      const held = new Set();
      for (const [i, long] of (await draws.longs(d)).entries()) {
        const pick = below(k - d + i + 1, long);
        held.add(held.has(pick) ? k - d + i : pick);
      }
      return [...held].sort((a, b) => a - b);
    },
    cell(value, trait) {
      const places = new Map(trait.map((each, place) => [each, place])); // a search would take longer for later values
      return places.get(value) ?? d;
    },
    toSurvey: (memo, trait, order) => [memo, trait.map(order)],
    finish: (answer, trait) => setBits(k, supports(answer, trait)),
    supports,
  };
}

// One bit: whether a number is above a threshold, whose slot answers show.
function threshold({ k, parameter: slots, first, second }) {
  const [symbols, places] = [direct({ k: 2, first, second }), slots * (k - 1)];
  const cell = (value, trait) => Number(value > floor(trait / slots));
  return {
    ...symbols,
    digests: async () => ({ ...(await symbols.digests()), traits: [await digest(1, 1, () => [places], "(1,)")] }),
    trait: async (draws) => below(places, (await draws.longs(1))[0]),
    cell,
    toSurvey: kept,
    finish: (answer, trait) => symbolBytes(floor(trait / (k - 1)) + (1 - answer) * slots, 2 * slots),
    supports: sentTo(k, cell),
  };
}

const kept = (memo, trait) => [memo, trait];
const sentTo = (k, cell) => (answer, trait) => range(k).filter((value) => cell(value, trait) === answer);

function symbolBytes(symbol, count) {
  const width = count <= 1 << 8 ? 1 : count <= 1 << 16 ? 2 : 4;
  return Uint8Array.from(range(width), (i) => symbol >>> (8 * i));
}

function setBits(k, ones) {
  const bytes = new Uint8Array(ceil(k / 8));
  for (const one of ones) bytes[one >> 3] |= 1 << (one & 7);
  return bytes;
}

const mostDigits = (g) => [8, 7, 6, 5, 4, 3, 2, 1].find((count) => g ** count <= 256);

const freshDigits = (k, g) => range(63, 1).find((count) => g ** count >= k);

// ---- calendar: when periods begin, and which units they belong to; in seconds since 1970

const LAST_PERIOD = 2 ** 32 - 2;
const UNITS = ["day", "week", "month", "year", "ever"];
const SHORTER = { day: 1, week: 7, month: 31, year: 366 }; // days

// `offsets`: since when local time is how many seconds ahead of UTC.
function calendar(start, period, offsets, until) {
  const given = offsets ?? [[0, 0]];
  const since = given.map(([moment], i) => (i === 0 ? -Infinity : moment));
  // The latest local time that clocks have shown before the end of each stretch of one offset.
  let latest = -Infinity;
  const ends = given.map(([, ahead], i) => (latest = max(latest, (since[i + 1] ?? Infinity) + ahead)));
  // The same until an instant: it does not go back when clocks do.
  function reached(instant) {
    const stretch = notBelow(since, instant) - 1;
    return max(instant + given[stretch][1], (ends[stretch - 1] ?? -Infinity) - 1);
  }
  const even = !offsets || period % DAY !== 0;
  const firstDay = floor(reached(start) / DAY) * DAY;
  function begin(number) {
    if (even) return start + number * period;
    const local = firstDay + number * period;
    const stretch = notBelow(ends, local);
    return max(since[stretch], local - given[stretch][1]);
  }
  const of = (instant) => floor((even ? instant - start : reached(instant) - firstDay) / period);
  function units(number) {
    const day = floor(reached(begin(number)) / DAY);
    const date = new Date(day * DAY * 1000);
    const year = date.getUTCFullYear();
    return [day, floor((day + 3) / 7), 12 * year + date.getUTCMonth(), year, "ever"];
  }
  // One bit for each counted unit in which this is the first report after that of `before`.
  function flags(number, before, counted) {
    const [now, then] = [units(number), before === null ? [] : units(before)];
    return sum(UNITS.map((unit, bit) => (now[bit] !== then[bit] && counted.includes(unit) ? 1 << bit : 0)));
  }
  return { period, begin, of, flags, last: offsets ? min(LAST_PERIOD, of(until) - 1) : LAST_PERIOD };
}

// ---- terms: read from whoever answers, and believed in nothing

const MAX_VALUES = 1 << 16;
const [MOST_VALUES, MOST_HASHES] = [1_000_000, 1 << 23];
const FRESH_PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61];
const [MAX_ORDERED, MAX_ORDERED_TWICE] = [1024, 256];
const MAX_CUTS = 1 << 22; // more would keep a device busy for minutes
const MAX_QUESTIONS = 64;
const SECONDS = { s: 1, m: 60, h: 3600, d: DAY, w: 7 * DAY };
// A key that is not listed might change what an answer means: such terms are refused.
const RESOLVED = "declared places questions sampled shares version";
const DECLARED =
  "attributes calibration central clock crosses devices eps eps_1 eps_inf grace guarantee id memo_cap " +
  "one_in period presence_epsilon solution start time_zone visitors";
const DECLARED_BEFORE_3 = "horizon minimum";
const DECLARED_FROM_3 = "lookback new numbers publish_from rolling tables";
const ATTRIBUTE = "geo geo_inf grid mechanism name other parameter prior range share values";
const PARTS = ["traits", "first", "second"];

const RAISE = `${SKIP}; the app can change its limits, if the person agrees`;
const termsRead = new Map(); // by their hash
let geo, more; // places.js, once terms have had a grid; losses.js, which few devices need

const moreLosses = async () =>
  (more ??= (await import("./losses.js")).moreLosses({ byDistance, largest, mostDigits, range, sum }));

// Their tables are not compared yet, nor their losses computed.
async function readTerms(given) {
  const bytes = typeof given === "string" ? utf8(given) : given;
  need(bytes.length <= MAX_TERMS_BYTES, `more than ${MAX_TERMS_BYTES} bytes`);
  const hash = await sha256(bytes);
  if (termsRead.has(hash)) return termsRead.get(hash);
  let terms;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    terms = { ...understood(parsed(text)), hash, fingerprint: hash.slice(0, 32), text };
    terms.pin = terms.version < 3 ? terms.fingerprint : hash; // what an app gives
  } catch (error) {
    if (error instanceof DeviceError) throw error;
    notTerms("their form");
  }
  if (terms.attributes.some(({ grid }) => grid))
    geo ??= (await import("./places.js")).onGrids({ below, bigSum, digest, distance, notBelow, own, range });
  if (terms.questions.some(({ first }) => first.ends)) await moreLosses();
  for (const question of terms.questions) {
    question.order = orderOf(question);
    question.ranks = question.order && inverse(question.order);
    question.id = await questionId(question);
  }
  if (termsRead.size >= 16) termsRead.clear();
  termsRead.set(hash, terms);
  return terms;
}

function understood(resolved) {
  onlyKeys(resolved, RESOLVED, "the terms");
  const { declared } = resolved;
  const version = oneOf(resolved.version, [1, 2, 3], "another version");
  onlyKeys(declared, `${DECLARED} ${version < 3 ? DECLARED_BEFORE_3 : DECLARED_FROM_3}`, "declared");
  const given = (key) => has(declared, key);
  const solution = oneOf(field(declared, "solution", "smp"), ["smp", "spl", "rs+fd", "rs+rfd"], "solution");
  const hides = solution.startsWith("rs");
  const parts = listOf(declared.attributes, MAX_QUESTIONS, "attributes");
  const attributes = parts.map((part) => attributeOf(part, solution, version));
  need(unique(attributes.map(({ name }) => name)) && (!hides || parts.length > 1), "attributes");
  const crosses = given("crosses") ? listOf(declared.crosses, MAX_QUESTIONS, "crosses") : [];
  need(crosses.length === 0 || solution === "smp", "crosses");
  const sources = [...attributes.map((each) => [each]), ...crosses.map((each) => crossOf(each, attributes))];
  const shares = sharesOf([...parts, ...crosses], resolved.shares ?? null, solution);
  const asked = listOf(resolved.questions, 2 * MAX_QUESTIONS, "questions");
  need(asked.length === sources.length, "questions");
  const questions = asked.map((each, i) => questionOf(each, sources[i], solution, shares?.[i] ?? 1 / sources.length));
  need(unique(questions.map(({ name }) => name)), "crosses");
  need(sum(questions.map(({ first, k }) => (first.ends ? k * k : 0))) <= MAX_CUTS, "too many ordered values");
  if (version < 3) requireVersion(version, given("visitors"), attributes);
  const [longitudinal, budgets] = budgetsOf(declared, attributes, questions);
  const guarantee = oneOf(field(declared, "guarantee", "tuple"), ["tuple", "attribute", "published"], "guarantee");
  need(hides || guarantee === "tuple", "guarantee");
  const oneIn = wholeIn(field(declared, "one_in", 1), 1, 10_000, "one_in");
  need(oneIn === 1 || !longitudinal, "one_in");
  need(longitudinal || !given("memo_cap"), "memo_cap");
  const unfit = longitudinal ? ["fresh"] : ["hashed", "buckets"];
  need(!questions.some(({ kind }) => unfit.includes(kind)), "encoding");
  const horizon = version < 3 ? "horizon" : "lookback";
  need(!given("visitors") || !given(horizon), "visitors");
  need(has(resolved, "sampled"), "sampled");
  const periods = calendarOf(declared);
  return {
    version,
    id: matching(/^[a-z0-9][a-z0-9._-]{0,127}$/, declared.id, "id")[0],
    calendar: periods,
    grace: secondsOf(field(declared, "grace", "0s")),
    horizon: wholeIn(field(declared, horizon, 1), 1, 65535, horizon),
    presence: presenceOf(declared, version),
    units: given("visitors") ? unitsOf(declared.visitors, periods) : null,
    memoCap: given("memo_cap") ? wholeIn(declared.memo_cap, 1, MAX_VALUES, "memo_cap") : Infinity,
    oneIn,
    adds: solution === "spl", // all are answered: losses add up
    hides,
    sampling: solution !== "spl" && attributes.length > 1, // one question for life
    budgets: guarantee === "tuple" ? budgets : null,
    longitudinal,
    devices: given("devices") ? wholeIn(declared.devices, 1, 1e10, "devices") : null,
    attributes,
    questions,
    shares,
    digests: { sampled: resolved.sampled, places: resolved.places ?? null },
  };
}

// Of a survey that was not read as version 3, the version follows from what it has.
function requireVersion(version, countsUnits, attributes) {
  const isNew = countsUnits || attributes.some(({ other, several }) => other !== null || several > 1);
  const placed = attributes.some((attribute) => attribute.placed);
  wholeIn(version, isNew ? 2 : 1, isNew || placed ? 2 : 1, "another version");
}

// Every table, made here, must be the one that whoever made the terms has.
async function verify(terms) {
  if (terms.verified) return;
  for (const { tables: stated, encoding } of terms.questions) {
    const found = await encoding().digests();
    for (const part of PARTS) need(stated[part].join(" ") === found[part].join(" "), `tables of ${part}`);
  }
  const { sampled, places } = terms.digests;
  need(sampled === (terms.sampling ? await sampledTable(terms).digest() : null), "sampled");
  need(places === (terms.oneIn > 1 ? await uniform(terms.oneIn).digest() : null), "places");
  terms.verified = true;
}

function sampledTable({ questions, shares }, order = range(questions.length)) {
  return table(order.map((place) => shares?.[place] ?? 1));
}

function attributeOf(given, solution, version) {
  const many = version < 3 ? "several" : "multi_select";
  onlyKeys(given, `${ATTRIBUTE} ${many}`, "attribute");
  const name = matching(/^[a-z][a-z0-9_]{0,62}$/, given.name, "name")[0];
  const span = has(given, "range") ? spanOf(given.range) : null;
  const grid = has(given, "grid") ? gridOf(given.grid) : null;
  need(!grid || !(span || has(given, "values")), "values");
  const values = grid
    ? range(grid.rows).flatMap((row) => range(grid.columns).map((column) => `x${column}y${row}`))
    : listed(given, span);
  const places = new Map(values.map((value, place) => [value, place]));
  need(values.length >= 2 && places.size === values.length, "values");
  const other = field(given, "other");
  need(!has(given, "other") || places.has(other), "other");
  const geos = ["geo", "geo_inf"].map((key) => (has(given, key) ? geoOf(given[key], grid) : null));
  const placed = geos.some(Boolean);
  need(!placed || solution === "smp", "geo");
  const several = has(given, many) ? wholeIn(given[many], 2, values.length - 1, many) : 1;
  need(several === 1 || (solution === "smp" && !span && !grid), many);
  let prior = null;
  need(has(given, "prior") === (solution === "rs+rfd"), "prior");
  if (has(given, "prior")) {
    need(isRecord(given.prior) && Object.keys(given.prior).length === values.length, "prior");
    prior = sumTo1(values.map((value) => own(given.prior, value)), "prior");
  }
  return { name, values, places, other, span, grid, geos, placed, prior, several, version };
}

function listed(given, span) {
  const [first, last, step] = span ?? [];
  const count = span && floor((last - first) / step) + 1;
  if (!span || has(given, "values")) {
    const values = listOf(given.values, MAX_VALUES, "values").map(textOf);
    need(!span || values.length === count, "range");
    return values;
  }
  need(MAX_VALUES < count && count <= MOST_VALUES, "range");
  const starts = range(count).map((i) => first + i * step);
  return starts.map((start) => (step === 1 ? `${start}` : `${start}-${min(start + step - 1, last)}`));
}

function spanOf(given) {
  onlyKeys(given, "first last step", "range");
  const first = wholeIn(field(given, "first", 0), -(2 ** 53), 2 ** 53, "range");
  return [first, wholeIn(given.last, first, 2 ** 53, "range"), wholeIn(field(given, "step", 1), 1, 2 ** 53, "range")];
}

function gridOf(given) {
  onlyKeys(given, "at cell columns crs origin rows", "grid");
  const [columns, rows] = ["columns", "rows"].map((key) => wholeIn(given[key], 2, MAX_VALUES / 2, key));
  const [cell, at, origin] = [given.cell, field(given, "at"), field(given, "origin", [0, 0])];
  need(columns * rows <= MAX_VALUES && isNumber(cell) && cell > 0, "grid");
  const pair = (numbers) => Array.isArray(numbers) && numbers.length === 2 && numbers.every(isNumber);
  need(pair(origin) && (!has(given, "at") || pair(at)), "grid");
  const crs = textOf(field(given, "crs", "local"));
  return { columns, rows, cell, at, origin, crs };
}

function geoOf(given, grid) {
  onlyKeys(given, "level radius", "geo");
  need(grid && [given.level, given.radius].every((number) => isNumber(number) && number > 0), "geo");
  return given;
}

function crossOf(cross, attributes) {
  onlyKeys(cross, "mechanism of parameter share", "cross");
  const axes = listOf(cross.of, 2, "crosses").map((name) => attributes.find((each) => each.name === name));
  need(axes.length === 2 && axes.every((axis) => axis?.several === 1 && !axis.placed) && axes[0] !== axes[1], "crosses");
  need(axes[0].values.length * axes[1].values.length <= MAX_VALUES, "crosses");
  return axes;
}

function questionOf(given, sources, solution, share) {
  onlyKeys(given, "encoding fakes first mechanism second tables", "question");
  const [{ grid, prior, placed, several, values: own }, other] = sources;
  const paddings = range(several > 1 ? several : 0).map((size) => `${size} or fewer`);
  const values = other ? own.flatMap((one) => other.values.map((two) => `${one}*${two}`)) : [...own, ...paddings.reverse()];
  need(unique(values), "crosses");
  const k = values.length;
  const [kind, parameter] = encodingOf(given.encoding, k, grid);
  const size = kind === "threshold" ? 2 : parameter || k; // of a memo: how many symbols there are, or bits
  need((kind === "plane") === placed, "geo");
  need(kind === "fresh" || k <= MAX_VALUES, "values");
  const bits = kind === "unary" || kind === "buckets";
  const ordered = kind === "direct" && has(given.first, "ends");
  const plain = kind === "unary" || (kind === "direct" && !ordered);
  need(several === 1 || plain, "several");
  const read = (numbers) => {
    if (kind === "plane") return moveOf(numbers);
    return ordered ? matrixOf(numbers, k) : flipOf(numbers, bits ? 0 : size);
  };
  const [first, second] = [read(given.first), given.second === null ? null : read(given.second)];
  need(!ordered || second === null || k <= MAX_ORDERED_TWICE, "values");
  onlyKeys(given.tables, PARTS.join(" "), "tables");
  need(PARTS.every((part) => Array.isArray(given.tables[part])), "tables");
  let [fakes, encoding] = [null, null];
  if (solution.startsWith("rs")) {
    need(plain, "fakes");
    const kinds = kind === "direct" ? ["bare", "noisy"] : solution === "rs+fd" ? ["zero", "noisy"] : ["noisy"];
    const shares = prior ?? new Array(k).fill(1 / k);
    fakes = { kind: oneOf(given.fakes, kinds, "fakes"), shares, prior: prior !== null };
  }
  need(fakes || given.fakes === null, "fakes");
  return {
    ...{ sources, values, several, items: k - paddings.length, k, kind, first, second, fakes, bits, tables: given.tables },
    name: sources.map((source) => source.name).join("*"),
    parameter, // of hashes g, of buckets d, of thresholds slots, otherwise 0
    share, // the chance that a device draws it, where it draws one
    size,
    states: min(k, size + (kind === "buckets")), // memos that a device can ever have
    losses: new Map(),
    encoding: () => (encoding ??= encodings[kind]({ k, parameter, first, second, fakes, grid })),
  };
}

function encodingOf(given, k, grid) {
  const keys = { direct: "", unary: "", hashed: "g", fresh: "g", buckets: "d", threshold: "slots", plane: "columns rows" };
  const kind = oneOf(given.kind, Object.keys(keys), "encoding");
  onlyKeys(given, `kind ${keys[kind]}`, "encoding");
  if (kind === "plane") need(grid && given.columns === grid.columns && given.rows === grid.rows, "encoding");
  if (["buckets", "threshold"].includes(kind))
    return [kind, wholeIn(given[keys[kind]], 1, k - (kind === "threshold"), kind)];
  if (keys[kind] !== "g") return [kind, 0];
  const g = oneOf(given.g, FRESH_PRIMES, "hash");
  if (kind === "hashed") need(g <= 13 && k <= (g ** mostDigits(g) - 1) / (g - 1), "hash");
  else need(k <= MOST_VALUES && g ** freshDigits(k, g) <= MOST_HASHES, "hash");
  return [kind, g];
}

function flipOf(numbers, symbols) {
  onlyKeys(numbers, "p q", "probabilities");
  const { p, q } = numbers;
  need(isNumber(p) && isNumber(q) && 0 < q && q < p && p < 1, "probabilities");
  need(symbols === 0 || abs(p + (symbols - 1) * q - 1) < 1e-9, "probabilities");
  return { p, q };
}

function matrixOf(numbers, k) {
  onlyKeys(numbers, "ends inside", "probabilities");
  const { ends, inside } = numbers;
  need(k <= MAX_ORDERED && ends.length === k && inside.length === (k > 2 ? k - 1 : 0), "values");
  need([...ends, ...inside].every((each) => isNumber(each) && 0 <= each && each < 1), "probabilities");
  need(ends[0] > 0 && (k === 2 || inside[0] > 0), "probabilities");
  return { ends, inside };
}

function moveOf(numbers) {
  onlyKeys(numbers, "rate", "rate");
  need(isNumber(numbers.rate) && 0.05 <= numbers.rate && numbers.rate <= 20, "rate");
  return numbers;
}

// Whether there are memos, and the budgets; null where all attributes are places, which have their own.
function budgetsOf(declared, attributes, questions) {
  const given = ["eps", "eps_inf", "eps_1"].filter((key) => has(declared, key));
  const most = 20 * attributes.length;
  need(given.every((key) => isNumber(declared[key]) && 0 < declared[key] && declared[key] <= most), "budgets");
  const placed = attributes.filter((attribute) => attribute.placed);
  const all = placed.length === attributes.length;
  need((all ? [""] : ["eps", "eps_inf", "eps_inf eps_1"]).includes(given.join(" ")), "budgets");
  const memos = given.includes("eps_inf");
  const rounds = all ? placed[0].geos.map(Boolean) : [!memos || given.includes("eps_1"), memos];
  need(placed.every(({ geos }) => geos.every((one, i) => !!one === rounds[i])), "budgets");
  need(questions.every(({ second }) => (second !== null) === (rounds[0] && rounds[1])), "rounds");
  const ever = declared.eps ?? declared.eps_inf;
  return [rounds[1], all ? null : [declared.eps_1 ?? ever, ever]];
}

function sharesOf(parts, shares, solution) {
  if (!parts.some((part) => has(part, "share"))) return need(shares === null, "shares") && null;
  need(solution === "smp" && shares?.length === parts.length && parts.length > 1, "shares");
  need(parts.every((part, i) => !has(part, "share") || part.share === shares[i]), "shares");
  return sumTo1(shares, "shares");
}

function sumTo1(shares, what) {
  need(shares.every((share) => isNumber(share) && 1e-6 <= share && share < 1), what);
  need(abs(sum(shares) - 1) < 1e-9, what);
  return shares;
}

function unitsOf(given, { period }) {
  onlyKeys(given, "units", "visitors");
  const units = listOf(given.units, UNITS.length, "visitors").map((unit) => oneOf(unit, UNITS, "visitors"));
  need(unique(units) && units.every((unit) => unit === "ever" || period < SHORTER[unit] * DAY), "visitors");
  return units;
}

function calendarOf(declared) {
  const [text] = matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/, declared.start, "start");
  const start = Date.parse(text) / 1000;
  need(new Date(start * 1000).toISOString().startsWith(text.slice(0, 19)), "start");
  const period = secondsOf(declared.period);
  need(0 < period && period <= 366 * DAY, "period");
  if (!has(declared, "time_zone")) return calendar(start, period);
  const { offsets, until } = declared.time_zone;
  onlyKeys(declared.time_zone, "name offsets until", "time_zone");
  const pairs = listOf(offsets, 500, "time_zone").every((pair) => Array.isArray(pair) && pair.length === 2);
  const moments = [...offsets.map(([since]) => since), until];
  for (const moment of moments) wholeIn(moment, -(2 ** 36), 2 ** 36, "time_zone");
  for (const [, ahead] of offsets) wholeIn(ahead, 1 - DAY, DAY - 1, "time_zone");
  need(pairs && moments.every((moment, i) => i === 0 || moments[i - 1] < moment), "time_zone");
  const found = calendar(start, period, offsets, until);
  need(found.begin(0) === start && found.last > 0, "time_zone");
  return found;
}

function secondsOf(given) {
  const [, count, unit] = matching(/^(\d{1,9})([smhdw])$/, given, "a duration");
  return Number(count) * SECONDS[unit];
}

// ---- losses: what terms reveal; every figure is exact or too large, never too small

const NEAR = 500; // metres between the positions for which the loss of places is counted
const SENT = { p: 1, q: 0 }; // a second round that changes nothing: the memo itself is sent

const then = ({ p, q }, next) => ({ p: p * (next.p - next.q) + next.q, q: q * (next.p - next.q) + next.q });

// After t linked answers from one memo: `whole` between any two values, `unit` between neighbours, or for a cell side.
function loss(question, t) {
  if (!question.losses.has(t)) question.losses.set(t, lossAfter(question, t));
  return question.losses.get(t);
}

function lossAfter(question, t) {
  const { first, second, bits, size, several } = question;
  if (first.ends) return more.matrixLoss(first, t === 1 ? second : null);
  if (first.rate) {
    const rate = t === 1 && second ? min(first.rate, second.rate) : first.rate;
    return { whole: rate * geo.sidesApart(question.sources[0].grid, NEAR), unit: rate };
  }
  const drawn = second ? normalised(question, second) : SENT;
  const ones = then(normalised(question, first), { p: 1, q: (drawn.q / drawn.p) ** t });
  const zeros = then(first, { p: ((1 - drawn.p) / (1 - drawn.q)) ** t, q: 1 });
  const [named, contradicted] = [log(ones.p / ones.q), -log(zeros.p / zeros.q)];
  const element = bits ? (size === 1 ? max(named, contradicted) : named + contradicted) : named;
  const whole = bits || several === 1 ? element : log(1 + (exp(element) - 1) / several);
  return { whole, unit: whole, element };
}

// All memos of `count` cells, between histories that are the same up to renaming the cells.
function cost(question, count) {
  const { first, k, kind, parameter } = question;
  const ever = loss(question, Infinity);
  const places = range(first.ends ? 2 * k : 0).map((place) => place >> 1); // each value once in either history
  if (first.ends) return ever.unit * (sum(places.slice(2 * k - count)) - sum(places.slice(0, count)));
  if (kind === "buckets" && parameter < k)
    return min(count, parameter) * log((first.p * (1 - first.q)) / (first.q * (1 - first.p)));
  return count === 1 ? ever.whole : count * (ever.element ?? ever.whole);
}

function link(question) {
  const { second, bits, size, sources } = question;
  if (second === null) return Infinity;
  if (second.ends) return more.matrixLoss(second, null).whole;
  if (second.rate) return second.rate * geo.sidesApart(sources[0].grid, Infinity);
  const { p, q } = normalised(question, second);
  return bits ? size * max(log(p / q), log((1 - q) / (1 - p))) : log(p / q);
}

function reportLoss({ questions, adds }, t = 1, part = "whole") {
  return (adds ? sum : largest)(questions.map((each) => loss(each, t)[part]));
}

function requireWithinBudgets(terms) {
  const flips = { adds: terms.adds, questions: terms.questions.filter(({ first }) => !first.rate) };
  const [one, ever] = terms.budgets ?? [Infinity, Infinity];
  const near = ({ first, sources }) => !first.rate || first.rate <= geo.rateOf(sources[0]) * SLACK;
  const fits = reportLoss(flips, 1, "unit") <= one * SLACK && reportLoss(flips, Infinity, "unit") <= ever * SLACK;
  if (!fits || !terms.questions.every(near))
    refuse("losses", `survey ${terms.id}: its numbers reveal more than it declares`, SKIP);
}

// A table draws shares of the sum of what it is given.
function normalised({ bits, size }, { p, q }) {
  const total = bits ? 1 : p + (size - 1) * q;
  return { p: p / total, q: q / total };
}

// ---- questions: one memo per question, however many surveys ask it

// Its values in the question's own order, each by its place in the survey's; null: as listed.
function orderOf({ kind, fakes, first, values, items, k }) {
  if (["hashed", "fresh", "plane", "threshold"].includes(kind) || fakes?.prior) return null;
  if (!first.ends)
    return [...range(items).sort((a, b) => byBytes(values[a], values[b])), ...range(k - items, items)];
  return byBytes(values[0], values[k - 1]) < 0 ? null : range(k).reverse(); // no value is there twice
}

// The place in the question's own order of each value of the survey.
function inverse(order) {
  const ranks = new Array(order.length);
  order.forEach((value, rank) => (ranks[value] = rank));
  return ranks;
}

function questionId({ kind, parameter, k, fakes, tables: { traits, first }, sources, values, order }) {
  const grids = ({ crs, at, origin, cell, columns, rows }) =>
    [crs, ...[...(at ?? []), ...origin, cell].map(bitsOf), columns, rows].join(" ");
  const about = sources.flatMap(({ name, other, grid }) => [name, other ?? "", grid ? grids(grid) : ""]);
  const texts = ["question", kind, `${parameter}`, `${k}`, fakes?.kind ?? "", traits.join(" "), first.join(" ")];
  texts.push(`${sources.length}`, ...about);
  return sha256(written(texts.concat(order?.map((place) => values[place]) ?? values)));
}

const tupleId = ({ questions }) => sha256(written(["tuple", ...questions.map(({ id }) => id).sort()]));

function sampleId({ questions, shares, oneIn }, what) {
  const all = questions.map(({ id, share }) => `${id} ${shares ? bitsOf(share) : ""}`).sort();
  return sha256(written([what, ...(what === "turn" ? [`${oneIn}`] : []), ...all]));
}

// ---- respondent: what a device answers

// What is asked is charged together: a question, or a tuple. `cap`: the most memos of an attribute that it can have.
const costOf = ({ questions, cap }, answers, most = cap) =>
  largest(questions.map((each) => cost(each, min(answers, most, each.states))));

const constantOf = ({ questions, fresh: anew }) =>
  largest(questions.map((each) => loss(each, anew ? 1 : Infinity).whole));

function lineOf(asked) {
  const { questions, fresh: anew, cap } = asked;
  const constant = constantOf(asked);
  const tells = anew || cap === 1 ? constant : sum(questions.map(link));
  const reads = [...new Set(questions.flatMap(({ sources }) => sources.map(({ name }) => name)))].sort();
  return { reads, fresh: anew, cap, constant, link: min(tells, 1e300), reserved: 0, answers: 0, first: null };
}

// `key` gives the AES key of an id and a purpose. `old`: the survey was joined by version 0.1, which knew no questions.
function respondent(terms, key, old) {
  const { id, fingerprint, questions, hides, sampling, longitudinal, memoCap, oneIn } = terms;
  const orderIn = (question) => (old ? null : question.order);
  const ranksIn = (question) => (old ? null : question.ranks);
  const idOf = (question) => (old ? `${id} ${question.name}` : question.id);
  const drawn = async (what) => drawsWith(await key(old ? `${id} ${what}` : await sampleId(terms, what), what));
  const asking = (known, of) => {
    const states = largest(of.map(({ states }) => states));
    return { id: known, questions: of, fresh: !longitudinal, cap: min(states, memoCap) };
  };
  async function drawsOfQuestion(asked, question, purpose, tweak) {
    const which = asked.questions.length > 1 ? [idOf(question)] : []; // of a tuple: the attribute
    return drawsWith(await key(asked.id, purpose, ...which), tweak);
  }
  // The question that alone is about the truth, by its place in the survey.
  async function sampled() {
    const order = range(questions.length);
    if (!old) order.sort((a, b) => (questions[a].id < questions[b].id ? -1 : 1));
    return order[await sampledTable(terms, order).one(await drawn("sampled"))];
  }
  async function asked() {
    if (hides) return [asking(old ? id : await tupleId(terms), questions)];
    const mine = sampling ? [questions[await sampled()]] : questions;
    return mine.map((each) => asking(idOf(each), [each]));
  }
  async function answersIn(period) {
    return oneIn === 1 || (await uniform(oneIn).one(await drawn("turn"))) === period % oneIn;
  }
  // Then what a report will say does not depend on when it is made.
  async function drawKeys() {
    await answersIn(0);
    for (const { id: known } of await asked()) for (const purpose of ["memo", "unlisted"]) await key(known, purpose);
  }
  async function trait(of, question) {
    return question.parameter ? question.encoding().trait(await drawsOfQuestion(of, question, "trait", 0)) : null;
  }
  // For all values that are not listed: the survey's `other`, or one drawn for life.
  async function unlisted(of, question, axis) {
    const source = question.sources[axis];
    if (source.other !== null) return source.places.get(source.other);
    const [long] = await (await drawsOfQuestion(of, question, "unlisted", axis)).longs(1);
    const place = below(source.values.length, long);
    if (question.sources.length === 1) return orderIn(question)?.[place] ?? place;
    return sortedValues(source)[place];
  }
  // Of a set, padded to `several`, the element with the lowest priority; with memos priorities are lifelong.
  async function element(of, question, places, periodKey) {
    const { items, several, name, ranks, k } = question;
    const chosen = new Set(places.map((place) => ranks[place]));
    const paddings = max(0, several - chosen.size);
    for (const padding of range(paddings, items)) chosen.add(padding);
    const anew = async () => drawsWith(await derived(periodKey, "draw", id, fingerprint, name));
    const draws = await (of.fresh ? anew() : drawsOfQuestion(of, question, "draw", 0));
    let [lowest, found] = [WORD, 0];
    // Those of all elements, whatever the set has: otherwise a large set would take longer.
    for (const [number, priority] of (await draws.allFurther(k)).entries())
      if (chosen.has(number) && priority < lowest) [lowest, found] = [priority, number];
    return found;
  }
  async function cell(of, question, places, periodKey) {
    if (question.several > 1) return element(of, question, places[question.name], periodKey);
    let value = 0;
    for (const [axis, { name, values }] of question.sources.entries()) {
      const otherwise = await unlisted(of, question, axis); // always: or a listed value would take less time
      value = value * values.length + (places[name] ?? otherwise);
    }
    const place = ranksIn(question)?.[value] ?? value;
    return question.encoding().cell(place, await trait(of, question));
  }
  async function answer(of, question, at, periodKey) {
    const [encoding, order] = [question.encoding(), orderIn(question)];
    const mine = !hides || question === questions[await sampled()];
    const noised = async (what) => drawsWith(await derived(periodKey, what, id, fingerprint, question.name), at);
    const first = of.fresh ? await noised("once") : await drawsOfQuestion(of, question, "memo", at);
    const made = await encoding.memoise(at, mine, first);
    const [memo, held] = encoding.toSurvey(made, await trait(of, question), (place) => order?.[place] ?? place);
    const sent = await encoding.perturb(memo, await noised("report"));
    const values = (said) =>
      question.k > MAX_VALUES ? [] : encoding.supports(said, held).map((place) => question.values[place]);
    return { digits: hex(encoding.finish(sent, held)), says: values(sent), memo: values(memo) };
  }
  return { asked, sampled, answersIn, drawKeys, trait, cell, answer };
}

function sortedValues(source) {
  const { values } = source;
  source.sorted ??= range(values.length).sort((a, b) => byBytes(values[a], values[b]));
  return source.sorted;
}

// The place of a value in the survey's list; null if it is not listed. Never an error.
function placeOf({ grid, places, span }, given, last) {
  if (grid && isRecord(given)) return geo.cellOf(grid, given, last);
  let number = typeof given === "number" || typeof given === "bigint" ? Number(given) : NaN;
  const whole = Number.isInteger(number) && abs(number) <= 2 ** 53;
  const text = typeof given === "boolean" || whole ? String(whole ? number : given) : given;
  if (typeof text === "string" && places.has(text)) return places.get(text);
  if (typeof text === "string" && /^-?[0-9]{1,15}$/.test(text)) number = Number(text);
  if (!span || Number.isNaN(number)) return null;
  const [low, high, step] = span;
  return floor((floor(min(max(number, low), high)) - low) / step);
}

// ---- limits: what a device may reveal; nothing here knows a value

export const LIMITS = { report: 1.1, value: 3, year: 12, week: 10, ratio: 0.8, shortest: 3600, horizon: 31 };
const [YEAR, WEEK] = [365, 7]; // days
const MOST_OF_YEAR = 0.75; // of the limit `year`, for one survey
const SLACK = 1 + 1e-9;

function checkedLimits(given) {
  for (const [name, limit] of Object.entries(given)) {
    const least = name === "shortest" ? 60 : 0;
    if (!has(LIMITS, name) || !(isNumber(limit) && limit > 0 && limit >= least))
      refuse("settings", `limits: ${name} is ${limit}`, `give a finite number above ${least}`);
  }
  return { ...LIMITS, ...given };
}

function checkTerms(limits, terms) {
  const { id, calendar: { period }, horizon, longitudinal, questions } = terms;
  // What one report tells of the memo: above 0.8, whoever links reports sees when a value changed.
  const ratios = questions.map((each) => loss(each, 1).whole / loss(each, Infinity).whole);
  const ratio = longitudinal ? largest(ratios) : 0;
  const rule = (name, given, fits) =>
    fits || refuse("rules", `survey ${id}: ${name} is ${given}, and the limit is ${limits[name]}`, RAISE);
  rule("shortest", period, period >= limits.shortest);
  rule("horizon", horizon, horizon <= limits.horizon);
  rule("ratio", ratio.toPrecision(3), ratio <= limits.ratio * SLACK);
  requireWithin(limits, id)("report", reportLoss(terms), "one report may reveal");
}

// Refuse what would exceed a limit: the state is as it would be afterwards.
function checkCharges(limits, survey, state) {
  const { credential, asked } = state.surveys[survey];
  const within = requireWithin(limits, survey);
  within("year", committed(state, survey), "its charges of a year are", MOST_OF_YEAR);
  const total = sum(Object.keys(state.surveys).map((name) => committed(state, name)));
  within("year", total, "with those of other surveys, the charges of a year are");
  for (const name of readBy([{ asked }]))
    within("value", toldAbout(state, name), `what is told about ${name} in a year is`);
  if (credential) within("week", linkedInWeek(state), "the reports of a week, which a credential links, tell");
}

const requireWithin = (limits, survey) => (name, spent, what, share = 1) => {
  const limit = limits[name] * share;
  if (!(spent <= limit * SLACK))
    refuse("limit", `survey ${survey}: ${what} ${spent.toPrecision(4)}, the limit of a ${name} is ${limit}`, RAISE);
};

function readBy(surveys) {
  const lines = surveys.flatMap(({ asked }) => Object.values(asked));
  return [...new Set(lines.flatMap(({ reads }) => reads))].sort();
}

const linesIn = ({ surveys }) =>
  Object.entries(surveys).flatMap(([survey, { asked }]) => Object.entries(asked).map((line) => [survey, ...line]));

const sharedLines = (state, question) => linesIn(state).filter(([, id, line]) => id === question && !line.fresh);

function charge(state, survey, asked) {
  const shared = sharedLines(state, asked.id);
  const costWith = (more) => {
    const memos = shared.map(([name, , { answers, cap }]) => min(answers + (name === survey ? more : 0), cap));
    return costOf(asked, sum(memos), Infinity);
  };
  const [before, after] = [costWith(0), costWith(1)];
  const line = state.surveys[survey].asked[asked.id];
  line.answers += 1;
  line.first ??= today(state);
  const amount = asked.fresh ? constantOf(asked) : after - before;
  state.charges = [...recent(state), [today(state), survey, asked.id, amount]];
}

const recent = (state, days = YEAR) => state.charges.filter(([day]) => day > today(state) - days);
const amountOf = (charges) => sum(charges.map(([, , , amount]) => amount));
const spentOn = (state, survey, question) =>
  amountOf(recent(state).filter(([, name, id]) => name === survey && (question ?? id) === id));

const answersWithin = (days, { calendar: { period }, oneIn }) => ceil((days * DAY) / (period * oneIn));

function reservedFor(terms, asked) {
  const answers = answersWithin(YEAR, terms);
  return asked.fresh ? answers * constantOf(asked) : costOf(asked, answers);
}

function committed(state, survey) {
  const lines = Object.values(state.surveys[survey].asked);
  return max(spentOn(state, survey), sum(lines.map(({ reserved }) => reserved)));
}

// All reports about a value that stays as it is, of questions first charged in the last year.
function toldAbout(state, name) {
  let total = 0;
  const constants = new Map();
  for (const [survey, question, line] of linesIn(state).filter(([, , { reads }]) => reads.includes(name))) {
    const firsts = sharedLines(state, question).flatMap(([, , { first }]) => first ?? []);
    if (line.fresh) total += max(line.reserved, spentOn(state, survey, question));
    else if (firsts.length ? min(...firsts) > today(state) - YEAR : line.reserved) constants.set(question, line.constant);
  }
  return total + sum([...constants.values()]);
}

function linkedInWeek(state) {
  const told = linesIn(state).map(([survey, question, { link: tells, cap, fresh: anew }]) => {
    if (!state.surveys[survey].credential) return 0;
    const answers = recent(state, WEEK).filter(([, name, id]) => name === survey && id === question).length;
    return tells * (cap === 1 && !anew ? min(1, answers) : answers); // of one memo, all tell together what one does
  });
  return sum(told);
}

// ---- keys of questions: drawn at their first use, and kept, because memos are derived from them

// By an id and a purpose: the AES key.
function keyOf(state, entropy) {
  return async (id, ...purpose) => {
    const kept = own(state.kept, [id, ...purpose].join(" "));
    if (kept !== undefined) return unhex(kept);
    if (!has(state.keys, id)) state.keys[id] = hex(await entropy(id));
    return derived(unhex(state.keys[id]), ...purpose);
  };
}

// ---- device
//
// Settle first: make and store the report of a period. Then send these bytes, or none. No value
// decides when it sends.

const [HARMLESS_BITS, SPARE_BITS] = [1, 10];
const termsOf = (joined) => readTerms(joined.terms);

// A setting that an app lacks is often null, which pins nothing.
const isGiven = (option) => option !== undefined && option !== null;

// In version 3 a pin is the whole hash: whoever writes surveys could find two whose first 32 digits
// are the same, and pin one of them in the app.
function requirePin({ id, version, hash, fingerprint }, pin) {
  if (pin === hash || (version < 3 && pin === fingerprint)) return;
  const short = `survey ${id}: its pin has 32 digits, and terms of version 3 have a pin of 64`;
  if (pin === fingerprint) refuse("pin", short, `give ${hash}`);
  refuse("pin", `survey ${id}: its terms are not those that were pinned`, SKIP);
}

export class Device {
  #path;
  #storage;
  #limits;
  #now;
  #wait;
  #uptime;
  #entropy;

  // `now`, `wait`, `uptime`, `entropy` and `storage` are for tests.
  constructor(path, { limits = {}, now = Date.now, wait, uptime, entropy, storage } = {}) {
    [this.#path, this.#storage, this.#limits] = [String(path), storage, checkedLimits(limits)];
    this.#now = () => now() / 1000;
    this.#wait = wait ?? slept;
    this.#uptime = uptime;
    this.#entropy = entropy ?? (() => webCrypto.getRandomValues(new Uint8Array(32)));
  }

  async send(url, survey, values, options = {}) {
    const { pin, author, bearer, timeout = 20_000, trustFirstUse = false } = options;
    const { spread = null, wait = 0, apart } = options;
    const gateway = gatewayAt(url, timeout, bearer);
    const sending = sendingOf({ spread, wait, apart }, gateway.loopback, refuse);
    const credential = bearer !== undefined;
    try {
      await this.#joinAt(gateway, survey, { pin, author, trustFirstUse, credential });
      return await this.#report(gateway, survey, values, credential, sending);
    } catch (error) {
      // A state that cannot be used would only fail again.
      if (error instanceof DeviceError && error.code !== "state")
        error.againAt = await this.#againAt(survey);
      throw error;
    }
  }

  async join(given, { pin, author, signature, trustFirstUse = false, credential = null } = {}) {
    const terms = await readTerms(given);
    const { id } = terms;
    if (author) await (await import("./signatures.js")).requireSignature(terms, author, signature, webCrypto, refuse);
    else if (!isGiven(pin) && !trustFirstUse)
      refuse("pin", `survey ${id}: there is no pin to compare its terms with`, `give ${terms.pin}, if it is meant`);
    if (isGiven(pin)) requirePin(terms, pin);
    requireWithinBudgets(terms);
    await verify(terms);
    checkTerms(this.#limits, terms);
    await this.#change((state) => this.#join(state, terms, isGiven(pin ?? author), credential));
    return id;
  }

  async preview(survey, values) {
    return this.#change(async (state) => {
      const settled = owedIn(joinedIn(state, survey), await this.#period(state, survey));
      if (settled) return reportOf(handOut(settled));
      const copy = structuredClone(state);
      const { report, memo } = await this.#make(copy, survey, values, { example: true });
      return { ...reportOf(report), example: true, memo };
    });
  }

  async settle(survey, values) {
    await this.#dropLate(survey);
    return this.#change(async (state) => {
      const report = await this.#settle(state, survey, values);
      return reportOf(handOut(report));
    });
  }

  async owed(survey) {
    await this.#dropLate(survey);
    return this.#change((state) => joinedIn(state, survey).owed.map(handOut).map(reportOf));
  }

  async confirm(survey, period) {
    await this.#change((state) => erase(joinedIn(state, survey), period));
  }

  async leave(survey) {
    await this.#change((state) => {
      const joined = Object.assign(joinedIn(state, survey), { terms: null, owed: [] });
      for (const line of Object.values(joined.asked)) line.reserved = 0;
    });
  }

  async forgetClock(survey) {
    await this.#change(async (state) => {
      const begun = await this.#period(state, survey);
      if (forgetAfter(joinedIn(state, survey), begun)) return;
      const hint = "set the clock first, or the gateway is wrong";
      refuse("clock", `survey ${survey}: by this clock these periods have begun: ${hint}`);
    });
  }

  async explain() {
    return this.#change(async (state) => {
      const { surveys } = state;
      const names = Object.keys(surveys).sort();
      const [report, presence, shared] = [{}, {}, {}];
      const placed = [];
      for (const name of names.filter((each) => surveys[each].terms)) {
        const terms = await termsOf(surveys[name]);
        report[name] = chance(reportLoss(terms));
        presence[name] = explained(terms.presence);
        placed.push(...terms.questions.filter(({ kind }) => kind === "plane").map((question) => question.name));
      }
      for (const [name, id] of linesIn(state)) shared[id] = [...(shared[id] ?? []), name].sort();
      const told = readBy(Object.values(surveys)).map((name) => [name, chance(toldAbout(state, name))]);
      const charges = recent(state);
      const all = sum(names.map((name) => committed(state, name)));
      return {
        report,
        value: Object.fromEntries(told),
        year: { answers: charges.length, charged: amountOf(charges), committed: all, limit: this.#limits.year },
        answers: sum(linesIn(state).map(([, , line]) => line.answers)),
        presence,
        metres: Object.fromEntries(placed.sort().map((name) => [name, NEAR])),
        week: "whoever knows which reports are yours can see that and when your answer changed",
        shared: Object.values(shared).filter((each) => each.length > 1),
      };
    });
  }

  async check(terms, possible) {
    const { attributes } = await readTerms(terms);
    const unlisted = attributes.map((attribute) => {
      const given = own(possible, attribute.name) ?? [undefined];
      return [attribute.name, given.filter((value) => placeOf(attribute, value, null) === null)];
    });
    return Object.fromEntries(unlisted.filter(([, values]) => values.length > 0));
  }

  // ---- the state

  // `run` changes the state. If it refuses, only the days are kept that have passed.
  async #change(run) {
    await this.#open();
    return this.#storage.locked(async () => {
      const text = await this.#storage.read();
      const state = opened(text, this.#path);
      live(state, this.#now(), this.#uptime());
      let changed = JSON.stringify(state);
      try {
        const result = await run(state);
        changed = JSON.stringify(state);
        return result;
      } finally {
        if (changed !== text) await this.#storage.write(changed);
      }
    });
  }

  async #open() {
    if (typeof indexedDB !== "undefined") {
      this.#storage ??= database(this.#path);
      this.#uptime ??= pageUptime;
    } else {
      const node = await import("./node.js");
      this.#storage ??= node.file(this.#path, refuse);
      this.#uptime ??= node.uptime;
    }
  }

  // The present period of a survey, by this clock.
  async #period({ surveys }, survey, now = this.#now()) {
    const { calendar: periods } = await termsOf(joinedIn({ surveys }, survey));
    return periods.of(floor(now));
  }

  // ---- joining

  async #joinAt(gateway, survey, { pin, author, trustFirstUse, credential }) {
    const { terms } = await this.#change(({ surveys }) => own(surveys, survey) ?? {});
    if (terms && isGiven(pin)) requirePin(await readTerms(terms), pin);
    if (terms) return;
    const { body, signature } = await gateway.terms(survey);
    if ((await readTerms(body)).id !== survey) refuse("terms", `${gateway.address} answered with another survey`, SKIP);
    const trusted = trustFirstUse || gateway.loopback;
    await this.join(body, { pin, author, signature, trustFirstUse: trusted, credential });
  }

  async #join(state, terms, pinned, credential) {
    const { id, fingerprint, text } = terms;
    const answers = { cells: {}, stays: {}, asked: {} };
    const settled = { settled: null, runs: [], spent: [], dropped: [] };
    const empty = { ...settled, ...answers, listed: false, fingerprint };
    const before = own(state.surveys, id) ?? empty;
    // Whole terms are compared where they are kept: the fingerprint has half of their hash.
    const isSame = before.fingerprint === fingerprint && (!before.terms || before.terms === text);
    if (!isSame) refuse("changed", `the terms of survey ${id} have changed`, SKIP);
    if (before.terms) return;
    const joined = (state.surveys[id] = { ...before, owed: [], terms: text, credential });
    const answering = await this.#respondent(state, joined);
    await answering.drawKeys();
    const asked = await answering.asked();
    for (const each of asked) {
      joined.asked[each.id] = own(joined.asked, each.id) ?? lineOf(each);
      joined.asked[each.id].reserved = pinned ? reservedFor(terms, each) : 0;
    }
    await this.#refuseLinked(state, id);
    // What comes next must fit: one answer, and with a credential those of a week.
    const trial = structuredClone(state);
    for (const each of asked) {
      charge(trial, id, each);
      for (let more = credential ? answersWithin(WEEK, terms) : 1; more > 1; more--)
        trial.charges.push([today(trial), id, each.id, 0]);
    }
    checkCharges(this.#limits, id, trial);
  }

  // Surveys that share a question can be linked like two periods of one.
  async #refuseLinked(state, survey) {
    const askedBy = async (joined) => (await this.#respondent(state, joined)).asked();
    const joined = state.surveys[survey];
    const [terms, mine] = [await termsOf(joined), await askedBy(joined)];
    for (const [name, other] of Object.entries(state.surveys)) {
      if (name === survey || !other.terms) continue;
      const theirs = await termsOf(other);
      const crowd = terms.devices && theirs.devices ? log2(min(terms.devices, theirs.devices)) - SPARE_BITS : 0;
      const mixed = joined.credential !== null && other.credential !== null && joined.credential !== other.credential;
      for (const each of await askedBy(other)) {
        const same = mine.find(({ id, fresh: anew }) => id === each.id && !anew);
        if (!same || each.fresh) continue;
        const bits = (await moreLosses()).sharedBits(terms, same, theirs, each);
        if (!mixed && bits <= max(HARMLESS_BITS, crowd)) continue;
        const why = mixed ? "one of them has a credential" : `${bits.toPrecision(2)} bits are the same`;
        refuse("linked", `survey ${survey} asks what ${name} asks, and links reports: ${why}`, "leave one of them");
      }
    }
  }

  async #respondent(state, joined) {
    return respondent(await termsOf(joined), keyOf(state, this.#entropy), joined.listed);
  }

  // ---- settling

  // The report of this period: made once, whatever values come later.
  async #settle(state, survey, values, { credential = null, spread = null } = {}) {
    const began = this.#now(); // before all work: how long it takes must not show in what follows
    const joined = joinedIn(state, survey);
    await this.#useCredential(state, survey, credential);
    const before = owedIn(joined, await this.#period(state, survey, began));
    if (before) return before;
    const { report } = await this.#make(state, survey, values, { began });
    report.due = await this.#firstDue(survey, joined, report, began, spread);
    joined.owed.push(report);
    noteSettled(joined, report.period);
    return report;
  }

  async #useCredential(state, survey, credential) {
    const joined = state.surveys[survey];
    const isFirst = credential && !joined.credential;
    const isSaid = credential !== null && joined.credential === null;
    if (!isFirst && !isSaid) return;
    joined.credential = credential;
    await this.#refuseLinked(state, survey);
  }

  // Makes and charges a report of the period of `began`. An `example` is never sent.
  async #make(state, survey, values, { began = this.#now(), example = false }) {
    const joined = joinedIn(state, survey);
    const terms = await termsOf(joined);
    const period = await this.#period(state, survey, began);
    requireOpen(joined, survey, terms, period);
    checkTerms(this.#limits, terms);
    const answering = await this.#respondent(state, joined);
    const asked = (await answering.answersIn(period)) ? await answering.asked() : [];
    for (const each of asked) charge(state, survey, each);
    checkCharges(this.#limits, survey, state);
    // The key of this report alone. It is never stored: whoever copies the state later has no part
    // of its noise.
    const key = await this.#entropy(`${example ? "example" : "period"} ${survey} ${period}`);
    warnOfMissing(terms, values);
    const said = await answersTo(answering, asked, terms, values, joined, key);
    const { answers, says, memo, unlisted } = said;
    const report = await reportText(terms, joined, period, answers, key);
    return { report: { period, report, says, unlisted, attempts: 0 }, memo };
  }

  // ---- sending

  // Settle this period; then send what is due.
  async #report(gateway, survey, values, credential, sending) {
    await this.#dropLate(survey);
    const spread = sending.apart ? sending.spread : 0;
    let [failed, report] = [null, null];
    try {
      const options = { credential, spread };
      report = await this.#change((state) => this.#settle(state, survey, values, options));
    } catch (error) {
      if (!(error instanceof DeviceError)) throw error;
      failed = error; // what is owed is sent all the same
    }
    const { delivered, doubt } = await this.#sendOwed(gateway, survey, sending);
    if (failed && failed.code !== "reported") throw failed;
    const sent = await this.#change((state) => this.#outcome(state, survey, report, delivered));
    return { ...sent, againAt: await this.#againAt(survey), doubt };
  }

  // What the app gets as an answer. Without a report it is about the last settled period, or of this one.
  async #outcome(state, survey, report, delivered) {
    const joined = joinedIn(state, survey);
    const { dropped } = joined;
    joined.dropped = [];
    const latest = max(joined.settled, await this.#period(state, survey));
    const period = report?.period ?? latest;
    let status = owedIn(joined, period) ? "owed" : "already reported";
    if (delivered.includes(period)) status = "reported";
    return { period, status, unlisted: report?.unlisted ?? [], dropped };
  }

  // At most one report, whose moment has come; or, not apart, all of them, oldest first.
  async #sendOwed(gateway, survey, { apart, spread, wait }) {
    const delivered = [];
    const waiting = apart ? await this.#nextOwed(survey, wait) : await this.#begun(survey);
    for (const next of waiting) {
      await this.#dropLate(survey);
      const report = await this.#attempt(survey, next, apart, spread);
      if (report === null) continue; // late by now, or another process sends it
      const outcome = await gateway.post(report);
      if (outcome === "late") {
        const which = `${gateway.address}: period ${next.period} of survey ${survey}`;
        const what = `${which} is closed there, but not by this machine's clock`;
        refuse("late", what, `look at the clock; ${LATER}`);
      }
      // By this clock the period has begun. A gateway that lies would mark whoever believes it.
      if (outcome === "too-far-ahead") return { delivered, doubt: "clock" };
      await this.#change(({ surveys }) => erase(surveys[survey], next.period));
      delivered.push(next.period);
    }
    return { delivered, doubt: null };
  }

  // What is owed of periods that have begun: others are of a time when the clock was ahead.
  async #begun(survey) {
    return this.#change(async (state) => {
      const present = await this.#period(state, survey);
      return joinedIn(state, survey).owed.filter(({ period }) => period <= present);
    });
  }

  // The oldest report that is due; otherwise the one that is due first, if that is within `wait`
  // seconds. It waits for it.
  async #nextOwed(survey, wait) {
    const now = this.#now();
    const waiting = await this.#begun(survey);
    const due = waiting.find((each) => each.due <= now);
    if (due) return [due];
    const [first] = waiting.sort((a, b) => a.due - b.due);
    if (!first || first.due > now + wait) return [];
    await this.#wait(first.due - now);
    return [first];
  }

  // Note an attempt, before it is made; returns the bytes, or null if there is nothing to send.
  //
  // The next moment is drawn now: an attempt that fails, or that nobody finishes, needs nothing
  // more. All others that are due get new moments, too. If they were sent one after the other, it
  // would show that one device has sent them.
  async #attempt(survey, { period, due }, apart, spread) {
    return this.#change(async ({ surveys }) => {
      const found = owedIn(surveys[survey], period);
      if (!found || (apart && found.due !== due)) return null;
      found.attempts += 1;
      const now = this.#now();
      const passed = surveys[survey].owed.filter((each) => each === found || each.due <= now);
      for (const each of passed)
        each.due = await this.#dueAnew(survey, surveys[survey], each, now, spread);
      return found.report;
    });
  }

  async #firstDue(survey, joined, owed, began, spread) {
    const { calendar: periods, grace } = await termsOf(joined);
    const drawn = await this.#drawnFor(survey, owed);
    return firstMoment(began, periods.begin(owed.period + 1), grace, drawn, spread);
  }

  async #dueAnew(survey, joined, owed, now, spread) {
    const { calendar: periods, grace } = await termsOf(joined);
    const drawn = await this.#drawnFor(survey, owed);
    return anotherMoment(now, periods.begin(owed.period + 1), grace, drawn, spread);
  }

  // From 0 to 1.
  async #drawnFor(survey, { period, attempts }) {
    const bytes = await this.#entropy(`due ${survey} ${period} ${attempts}`);
    return parseInt(hex(bytes).slice(0, 12), 16) / 2 ** 48;
  }

  // When the next owed report is due, in milliseconds; null: none is owed.
  async #againAt(survey) {
    const joined = await this.#change(({ surveys }) => own(surveys, survey));
    if (!joined?.terms) return null;
    const moments = (await this.#begun(survey)).map(({ due }) => due);
    return moments.length ? ceil(1000 * min(...moments)) : null;
  }

  // A report is never sent after its period's end and the survey's grace. The app learns of it by
  // `send`.
  #dropLate(survey) {
    return this.#change(async (state) => {
      const joined = joinedIn(state, survey);
      const { calendar: { begin }, grace } = await termsOf(joined);
      const now = this.#now();
      const late = joined.owed.filter(({ period }) => now >= begin(period + 1) + grace);
      for (const { period } of late) drop(joined, period);
    });
  }
}

function joinedIn({ surveys }, survey) {
  const joined = own(surveys, survey);
  if (!joined?.terms) refuse("unknown", `this device has not joined survey ${survey}`, "call send, or join");
  return joined;
}

// Whether its report may still be made.
function requireOpen(joined, survey, { calendar: { last } }, period) {
  if (period < 0) refuse("early", `survey ${survey} has not begun`, "wait");
  if (period > last) refuse("over", `survey ${survey} is over`, "leave it");
  if (isAnswered(joined, period))
    refuse("reported", `survey ${survey}: period ${period} is reported`, "wait for the next one");
}

// What an app is shown of a report that is settled.
function reportOf({ period, report, says, unlisted }) {
  return { period, report, says, unlisted, example: false };
}

const slept = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

// In a browser, where nothing says how long the machine has run: which page this is, and for how
// many seconds it has.
let page;
function pageUptime() {
  page ??= hex(webCrypto.getRandomValues(new Uint8Array(8)));
  return [page, performance.now() / 1000];
}

async function answersTo(answering, asked, terms, values, joined, key) {
  const [places, unlisted] = placesOf(terms, values, joined.stays);
  const [answers, says, memo] = [{}, {}, {}];
  for (const of of asked) {
    for (const question of of.questions) {
      const { name, states } = question;
      let cell = await answering.cell(of, question, places, key);
      if (!of.fresh && of.cap < states) cell = held(joined.cells, name, of.cap, cell);
      const answer = await answering.answer(of, question, cell, key);
      answers[name] = answer.digits;
      says[name] = answer.says;
      if (!of.fresh) memo[name] = answer.memo;
    }
  }
  return { answers, says, memo, unlisted };
}

async function reportText(terms, { settled }, period, answers, key) {
  const { id: survey, fingerprint, calendar: { flags }, horizon, units } = terms;
  const draws = await drawsWith(await derived(key, "token", survey, fingerprint));
  const [first, second] = await draws.longs(2);
  const gap = settled === null ? horizon : min(horizon, period - settled);
  return JSON.stringify({
    survey,
    fingerprint,
    period: digits(period, 8),
    token: digits(first || second | 1n, 16), // not zero
    ...(units ? { flags: digits(flags(period, settled, units), 2) } : { gap: digits(gap, 4) }),
    answers,
  });
}

// The elements of a set: of any iterable but a text, whose letters are no values.
function elementsOf(given) {
  const isSet = typeof given === "object" && given !== null && Symbol.iterator in given;
  return isSet ? [...given] : [given];
}

const warned = new Set(); // surveys

// A name that is misspelt is the programmer's fault: the report is made all the same, or a device
// would be marked.
function warnOfMissing({ id, attributes }, values) {
  if (!isRecord(values) || warned.has(id)) return;
  const asked = attributes.map(({ name }) => name);
  const missing = asked.filter((name) => !has(values, name));
  const others = Object.keys(values).some((name) => !asked.includes(name));
  if (missing.length === 0 || !others) return;
  warned.add(id);
  // What was given instead is not printed: it may be a value.
  const asksFor = missing.join(", ");
  console.warn(`hearsay: survey ${id} asks for ${asksFor}, not given by the app. Misspelt?`);
}

// A missing position is the last one.
function placesOf({ attributes }, values, stays) {
  const [places, unlisted] = [{}, []];
  for (const attribute of attributes) {
    const { name, grid, several, other } = attribute;
    const last = own(stays, name) ?? null;
    const given = isRecord(values) ? own(values, name) : undefined;
    if (several > 1) {
      const found = elementsOf(given).map((each) => placeOf(attribute, each, null));
      if (found.includes(null)) unlisted.push(name);
      places[name] = [...new Set(found.map((each) => each ?? attribute.places.get(other)))].filter(Number.isInteger);
      continue;
    }
    places[name] = placeOf(attribute, given, last);
    if (places[name] === null) unlisted.push(name);
    if (grid) places[name] = stays[name] = places[name] ?? last;
  }
  return [places, unlisted];
}

// The cell whose memo is reported. At the cap it is the last one for good, whatever the value.
function held(cells, name, cap, cell) {
  const used = (cells[name] = own(cells, name) ?? []);
  if (used.length >= cap) return used.at(-1);
  if (!used.includes(cell)) used.push(cell);
  return cell;
}

// For tests.
export const internals = { calendar, readTerms, sampleId, tupleId, written };
