// A device that answers hearsay surveys under local differential privacy, and trusts nobody.
//
// docs/device-protocol.md says what it does, byte for byte; clients/vectors.json fixes it. It runs in browsers and in
// Node.js, with WebCrypto and nothing else. From what cryptography is made of to what an app calls, in this order:
//
//     errors, bytes, draws     HMAC-SHA256 and AES-128 on counter blocks
//     tables, places           exact sampling from integers
//     encodings                a value becomes a cell, a cell a memo, a memo an answer
//     calendar, terms          what a gateway says, believed in nothing
//     losses, questions        what terms reveal, and when two surveys ask the same
//     respondent, limits       what this device answers, and what it allows
//     state, gateway           where it is kept, and HTTP
//     Device, Recorder         what an app calls

// ---- errors

// A device refuses. `code` says why, for programs; the message never has a person's value.
export class DeviceError extends Error {
  constructor(code, message, hint = "") {
    super(hint ? `${message} (${hint})` : message);
    this.name = "DeviceError";
    this.code = code;
    this.hint = hint;
  }
}

function refuse(code, message, hint) {
  throw new DeviceError(code, message, hint);
}

// ---- bytes

const DAY = 86400;
const WORD = 1n << 64n;
const range = (count, from = 0) => Array.from({ length: count }, (_, i) => from + i);
const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
const largest = (numbers) => numbers.reduce((most, each) => Math.max(most, each), 0);
const distance = (a, b) => Math.sqrt(a * a + b * b); // Math.hypot is not rounded correctly everywhere
const own = (record, key) => (record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined);
const utf8 = (text) => new TextEncoder().encode(text);
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const unhex = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
const digits = (number, width) => number.toString(16).padStart(width, "0");

function concat(parts) {
  const all = new Uint8Array(sum(parts.map((part) => part.length)));
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  return all;
}

// Texts without ambiguity: of each the length in UTF-8 (4 bytes, little-endian), then its bytes.
function written(texts) {
  return concat(
    texts.flatMap((text) => {
      const [size, bytes] = [new Uint8Array(4), utf8(text)];
      new DataView(size.buffer).setUint32(0, bytes.length, true);
      return [size, bytes];
    }),
  );
}

// The order of UTF-8 bytes, which is that of code points: surrogates come after all other units of UTF-16.
function byBytes(one, other) {
  let i = 0;
  while (i < one.length && one[i] === other[i]) i++;
  if (i === one.length || i === other.length) return one.length - other.length;
  const [a, b] = [one, other].map((text) => text.charCodeAt(i));
  const [first, second] = [a, b].map((unit) => unit >= 0xd800 && unit <= 0xdfff);
  return first === second ? a - b : first - second;
}

async function webCrypto() {
  const found = globalThis.crypto ?? (await import(/* webpackIgnore: true */ "node:crypto")).webcrypto;
  if (!found.subtle) refuse("settings", "this page has no cryptography", "open it by https, or from this machine");
  return found;
}

async function sha256(bytes) {
  return hex(new Uint8Array(await (await webCrypto()).subtle.digest("SHA-256", bytes)));
}

async function hmac(key, message) {
  const { subtle } = await webCrypto();
  const imported = await subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await subtle.sign("HMAC", imported, message));
}

// An AES key for a purpose.
const derived = async (key, ...purpose) => (await hmac(key, written(purpose))).subarray(0, 16);

// The key of the next period, from which this one's cannot be computed.
const nextKey = (key) => hmac(key, utf8("hearsay next"));

// ---- draws

const LANE = 1 << 24; // block numbers of a lane
const [WHOLE, SHARED, FURTHER] = [0, 1, 2];

// The random bits of one AES key and one tweak.
class Draws {
  #key;
  #tweak;
  #lane;

  constructor(key, tweak, lane) {
    [this.#key, this.#tweak, this.#lane] = [key, tweak, lane];
  }

  static async of(key, tweak = 0) {
    const { subtle } = await webCrypto();
    return new Draws(await subtle.importKey("raw", key, "AES-CTR", false, ["encrypt"]), tweak, 0);
  }

  // The same key and tweak, other bits.
  fork(lane) {
    return new Draws(this.#key, this.#tweak, this.#lane + 3 * lane);
  }

  // Numbers of 64 bits, two to a block.
  async longs(count) {
    const view = await this.#blocks(WHOLE, 0, Math.ceil(count / 2));
    return range(count).map((i) => view.getBigUint64(8 * i, true));
  }

  // Numbers of 16 bits, eight to a block.
  async words(count) {
    const view = await this.#blocks(SHARED, 0, Math.ceil(count / 8));
    return range(count).map((i) => view.getUint16(2 * i, true));
  }

  // 64 further bits for the word at a place.
  async further(place) {
    return (await this.#blocks(FURTHER, place, 1)).getBigUint64(0, true);
  }

  // WebCrypto has no single block: it is the keystream of AES-CTR with the block as its counter.
  async #blocks(lane, first, count) {
    const { subtle } = await webCrypto();
    const start = (this.#lane + lane) * LANE + first;
    const found = await Promise.all(
      range(count, start).map((number) => {
        const counter = new DataView(new ArrayBuffer(16));
        counter.setUint32(8, this.#tweak, true);
        counter.setUint32(12, number, true);
        return subtle.encrypt({ name: "AES-CTR", counter: counter.buffer, length: 128 }, this.#key, new Uint8Array(16));
      }),
    );
    return new DataView(concat(found.map((block) => new Uint8Array(block))).buffer);
  }
}

// ---- tables: exact sampling from integers; no float is compared

const SLOTS = 1n << 16n;
const bigSum = (numbers) => numbers.reduce((total, each) => total + each, 0n);
const below = (count, long) => Number((long * BigInt(count)) >> 64n); // 64 random bits as a number below `count`

// [numerator, exponent]: the float is numerator / 2^exponent, exactly.
function fraction(float) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, float);
  const bits = view.getBigUint64(0);
  const exponent = Number(bits >> 52n) & 0x7ff;
  const mantissa = bits & 0xfffffffffffffn;
  return exponent === 0 ? [mantissa, 1074] : [mantissa | 0x10000000000000n, 1075 - exponent];
}

// The same proportions in whole numbers.
function wholeNumbers(floats) {
  const found = floats.map(fraction);
  const scale = largest(found.map(([numerator, exponent]) => (numerator ? exponent : 0)));
  return found.map(([numerator, exponent]) => (numerator ? numerator << BigInt(scale - exponent) : 0n));
}

// The float nearest to numerator / 2^exponent; of two equally near ones that with the even last bit.
function nearest(numerator, exponent) {
  const spare = Math.max(0, numerator.toString(2).length - 53, exponent - 1074);
  let kept = numerator >> BigInt(spare);
  const twice = (numerator - (kept << BigInt(spare))) * 2n;
  const whole = 1n << BigInt(spare);
  if (twice > whole || (twice === whole && kept & 1n && spare > 0)) kept += 1n;
  const half = Math.trunc((exponent - spare) / 2); // in two steps: 2^-1074 times 2^-1 would be 0
  return Number(kept) * 2 ** -half * 2 ** -(exponent - spare - half);
}

// Where [0, 2^64) is cut so that piece i has weights[i] of it; weights are whole numbers.
function cutsOf(weights) {
  const total = bigSum(weights);
  let running = 0n;
  return weights.slice(0, -1).map((weight) => {
    running += weight;
    const cut = total === 0n ? 0n : (2n * running * WORD + total) / (2n * total);
    return cut < WORD ? cut : WORD - 1n;
  });
}

// How many of these ascending numbers a number is not below.
function notBelow(ascending, number) {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle] <= number) low = middle + 1;
    else high = middle;
  }
  return low;
}

function running(numbers) {
  let total = 0;
  return numbers.map((each) => (total += each));
}

// A hash of rows of integers and of their shape. `rowAt` makes a row when it is needed: there may be a million integers.
function digest(rows, width, rowAt, shape = `(${rows}, ${width})`) {
  const head = utf8(shape);
  const view = new DataView(new ArrayBuffer(head.length + 8 * rows * width));
  new Uint8Array(view.buffer).set(head);
  for (let row = 0; row < rows; row++)
    rowAt(row).forEach((each, i) => view.setBigUint64(head.length + 8 * (row * width + i), BigInt(each), true));
  return sha256(view.buffer);
}

// One distribution over symbols, or a few of them (kinds) that are drawn with the same words.
class Table {
  #owned;
  #cuts;
  #ends;
  #filled;

  constructor(...distributions) {
    const weights = distributions.map(wholeNumbers);
    const totals = weights.map(bigSum);
    const owned = weights.map((each, kind) => each.map((weight) => Number((weight * SLOTS) / totals[kind])));
    this.#filled = Math.min(...owned.map(sum)); // the same for all kinds, so that it does not depend on the kind
    this.#owned = owned.map((each) => {
      let left = this.#filled;
      return each.map((slots) => {
        const kept = Math.min(slots, left);
        left -= kept;
        return kept;
      });
    });
    this.#cuts = weights.map((each, kind) =>
      cutsOf(each.map((weight, i) => weight * SLOTS - BigInt(this.#owned[kind][i]) * totals[kind])),
    );
    this.#ends = this.#owned.map(running);
  }

  digest() {
    const width = 2 * this.#owned[0].length - 1;
    return digest(this.#owned.length, width, (kind) => [...this.#owned[kind], ...this.#cuts[kind]]);
  }

  // A symbol for each of `count` words; at the place `exempt[0]` from the distribution of kind `exempt[1]`.
  async sample(draws, count, exempt = [0, 0]) {
    const words = await draws.words(count);
    return Promise.all(
      words.map(async (word, place) => {
        const kind = place === exempt[0] ? exempt[1] : 0;
        if (word < this.#filled) return notBelow(this.#ends[kind], word);
        return notBelow(this.#cuts[kind], await draws.further(place));
      }),
    );
  }

  async one(draws, kind = 0) {
    return (await this.sample(draws, 1, [0, kind]))[0];
  }
}

// One distribution per input symbol, by distance: `ends` in the columns of both ends, `inside` between.
class Rows {
  #ends;
  #inside;

  constructor({ ends, inside }) {
    const whole = wholeNumbers([...ends, ...inside]); // of one scale, which cuts do not depend on
    [this.#ends, this.#inside] = [whole.slice(0, ends.length), whole.slice(ends.length)];
  }

  digest() {
    const size = this.#ends.length;
    return digest(size, size - 1, (symbol) => this.#row(symbol));
  }

  async one(symbol, draws) {
    return notBelow(this.#row(symbol), (await draws.longs(1))[0]);
  }

  #row(symbol) {
    return cutsOf(byDistance(symbol, this.#ends, this.#inside));
  }
}

// A row of a matrix whose entries depend on the distance from the diagonal, in the outer and inner columns.
function byDistance(row, ends, inside) {
  const last = ends.length - 1;
  return ends.map((_, column) => (column === 0 || column === last ? ends : inside)[Math.abs(row - column)]);
}

const made = new Map(); // tables that many terms have

function remembered(name, make) {
  if (!made.has(name)) {
    if (made.size >= 64) made.delete(made.keys().next().value);
    made.set(name, make());
  }
  return made.get(name);
}

const uniform = (count) => remembered(`uniform ${count}`, () => new Table(new Array(count).fill(1)));

// A byte of independent bits, each 1 with probability q; of kind i, bit i - 1 is 1 with probability p instead.
function eightBits(q, p) {
  const kinds = [range(8).map(() => q)];
  if (p !== undefined) for (const bit of range(8)) kinds.push(kinds[0].map((each, i) => (i === bit ? p : each)));
  return remembered(`bits ${q} ${p}`, () => new Table(...kinds.map(independent)));
}

// The distribution of a byte whose bits are 1 with these probabilities, each chance rounded once.
function independent(bits) {
  let [found, scale] = [[1n], 0];
  for (const [one, exponent] of bits.map(fraction)) {
    const zero = (1n << BigInt(exponent)) - one;
    found = [...found.map((rest) => rest * zero), ...found.map((rest) => rest * one)];
    scale += exponent;
  }
  return found.map((chance) => nearest(chance, scale));
}

// ---- places: the law of noise on a grid, and which cell a position is in

const ANYWHERE = 1n << 24n; // of 2^64: the chance of each cell to be reported whatever the truth is
const [LEAST_RATE, MOST_RATE] = [0.05, 20];
const KEPT = 0.75; // cell sides from the middle of its last cell within which a device stays in it
const INVERSE_LN2 = 1.4426950408889634;
const [LN2_HIGH, LN2_LOW] = [0.6931471803691238, 1.9082149292705877e-10];
const COEFFICIENTS = range(17, 1).reduce((found, i) => [...found, found.at(-1) / -i], [1]);
const within = (number, last) => Math.min(Math.max(number, 0), last);

// Square cells in metres, numbered row by row.
class Grid {
  constructor(columns, rows, cell, origin, at, crs) {
    Object.assign(this, { columns, rows, cell, origin, at, crs });
  }

  // The largest distance of two cells, in cell sides.
  get widest() {
    return distance(this.columns - 1, this.rows - 1);
  }

  // The cell of a position: the last one while the device is near its middle; null if it is no position.
  cellOf(given, last) {
    const found = this.#metres(given);
    if (!found.every(Number.isFinite)) return null;
    const [across, up] = found.map((each, i) => (each - this.origin[i]) / this.cell);
    if (last !== null) {
      const [column, row] = [last % this.columns, Math.floor(last / this.columns)];
      if (Math.abs(across - column - 0.5) <= KEPT && Math.abs(up - row - 0.5) <= KEPT) return last;
    }
    return within(Math.floor(up), this.rows - 1) * this.columns + within(Math.floor(across), this.columns - 1);
  }

  // How far apart, in cell sides, the cells of two positions can be that are this many metres apart.
  apart(metres) {
    const far = metres / this.cell;
    if (far >= this.columns + this.rows) return this.widest;
    const beyond = (steps) => Math.max(0, steps - 2 * KEPT);
    const last = Math.floor(far + 2 * KEPT);
    let [most, j] = [0, last];
    for (let i = 0; i <= last; i++) {
      while (distance(beyond(i), beyond(j)) > far) j--;
      most = Math.max(most, distance(i, j));
    }
    return Math.min(this.widest, most);
  }

  #metres(given) {
    const plane = this.#plane();
    const number = (key) => {
      const text = own(given, key);
      return typeof text === "number" || (typeof text === "string" && text.trim()) ? Number(text) : NaN;
    };
    if (Object.hasOwn(given, "latitude") && plane) return mercator(plane, number("latitude"), number("longitude"));
    return [number("x"), number("y")];
  }

  // Latitude and longitude of the point 0, 0, the scale, and what is added to x and y; null where unknown.
  #plane() {
    if (this.at) return [...this.at, 1, 0, 0];
    const zone = /^EPSG:32([67])(0[1-9]|[1-5][0-9]|60)$/.exec(this.crs);
    return zone && [0, 6 * Number(zone[2]) - 183, 0.9996, 5e5, zone[1] === "7" ? 1e7 : 0];
  }
}

// One round of noise on the cells of a grid: all are displaced alike.
class Displacement {
  #grid;
  #cuts;

  constructor(grid, rate) {
    this.#grid = grid;
    const law = folded(grid.columns, grid.rows, rate);
    const [across, up] = [grid.columns, grid.rows].map((size) => range(2 * size - 1, 1 - size).map(Math.abs));
    const flat = up.flatMap((row) => across.map((column) => law[row][column]));
    const [total, share] = [bigSum(flat), WORD - ANYWHERE * BigInt(grid.columns * grid.rows)];
    let before = 0n;
    this.#cuts = flat.map((weight) => ((before += weight) * share) / total);
  }

  digest() {
    return digest(1, this.#cuts.length, () => this.#cuts);
  }

  async one(cell, draws) {
    const { columns, rows } = this.#grid;
    const [word, other] = await draws.longs(2);
    const drawn = notBelow(this.#cuts, word);
    if (drawn === this.#cuts.length) return below(columns * rows, other);
    const [up, across] = [Math.floor(drawn / (2 * columns - 1)), drawn % (2 * columns - 1)];
    const row = within(Math.floor(cell / columns) + up - (rows - 1), rows - 1);
    return row * columns + within((cell % columns) + across - (columns - 1), columns - 1);
  }
}

// Weights by displacement, [row][column]; what is beyond the grid's size is added to the outermost.
function folded(columns, rows, rate) {
  const bound = 1 + (2 * 1.4142135623730951) / rate;
  const bits = 62 - (32 - Math.clz32(Math.floor(bound * bound + 1)));
  const reach = Math.ceil(bits / INVERSE_LN2 / rate) + 1;
  const law = range(rows).map(() => new Array(columns).fill(0n));
  for (let up = 0; up <= reach; up++) {
    const row = law[Math.min(up, rows - 1)];
    for (let across = 0; across <= reach; across++)
      row[Math.min(across, columns - 1)] += weight(rate * Math.sqrt(up * up + across * across), bits);
  }
  return law;
}

// floor(e^-x 2^bits)
function weight(x, bits) {
  const n = Math.floor(x * INVERSE_LN2);
  const rest = x - n * LN2_HIGH - n * LN2_LOW;
  const total = COEFFICIENTS.reduceRight((before, coefficient) => before * rest + coefficient);
  return BigInt(Math.floor(total * 2 ** (bits - n)));
}

const FLATTENING = 1 / 298.257223563;
const N = FLATTENING / (2 - FLATTENING);
const MERIDIAN = (6378137 / (1 + N)) * (1 + N ** 2 / 4 + N ** 4 / 64);
const ECCENTRICITY = Math.sqrt(FLATTENING * (2 - FLATTENING));
const ALPHA = [
  N / 2 - (2 * N ** 2) / 3 + (5 * N ** 3) / 16 + (41 * N ** 4) / 180,
  (13 * N ** 2) / 48 - (3 * N ** 3) / 5 + (557 * N ** 4) / 1440,
  (61 * N ** 3) / 240 - (103 * N ** 4) / 140,
  (49561 * N ** 4) / 161280,
];
const radians = (angle) => (angle * Math.PI) / 180;

// The transverse Mercator projection of WGS 84, by Krüger's series to n^4; not a number at the poles.
function mercator([start, meridian, scale, east, north], latitude, longitude) {
  const { sin, cos, sinh, cosh } = Math;
  const turned = (longitude - meridian + 540) % 360;
  const away = radians((turned < 0 ? turned + 360 : turned) - 180);
  const [t, begin] = [tangent(latitude), Math.atan(tangent(start))];
  if (!Number.isFinite(t)) return [NaN, NaN];
  const [xi, eta] = [Math.atan2(t, cos(away)), Math.atanh(sin(away) / Math.sqrt(1 + t * t))];
  let [up, across] = [xi - begin, eta];
  ALPHA.forEach((alpha, i) => {
    const j = 2 * (i + 1);
    up += alpha * (sin(j * xi) * cosh(j * eta) - sin(j * begin));
    across += alpha * cos(j * xi) * sinh(j * eta);
  });
  return [east + scale * MERIDIAN * across, north + scale * MERIDIAN * up];
}

function tangent(latitude) {
  const sine = Math.sin(radians(latitude));
  return Math.sinh(Math.atanh(sine) - ECCENTRICITY * Math.atanh(ECCENTRICITY * sine));
}

// ---- encodings
//
//     direct    the value is a symbol                      grr, geometric
//     plane     the value is a cell of a grid              geo-grid
//     unary     the value is the one bit set among k       sue, oue
//     hashed    the value is hashed to g symbols           loloha
//     fresh     the same with a new hash in every report   olh
//     buckets   d of the k bits, the same d for life       dbitflip
//
// Round 1 is drawn with values in the question's own order; `toSurvey` puts memo and trait into the survey's, in which
// round 2 is drawn.

// One symbol of k.
class Direct {
  #noise = [];
  #drawn;

  constructor(k, first, second, fakes = null, grid = null) {
    Object.assign(this, { k, rounds: [first, second], fakes, grid });
  }

  async digests() {
    const first = [await this.round(0).digest()];
    if (this.fakes?.kind === "noisy") first.push(await this.drawn().digest());
    return { traits: [], first, second: this.rounds[1] ? [await this.round(1).digest()] : [] };
  }

  // What the device keeps for life and shows.
  async trait() {
    return null;
  }

  cell(value) {
    return value;
  }

  // Round 1. Not `mine`: a fake stands in for the value.
  async memoise(cell, mine, draws) {
    if (!mine && this.fakes.kind === "bare") return this.round(0).one(draws, 1);
    return this.perturbed(mine ? cell : await this.drawn().one(draws.fork(2)), 0, draws);
  }

  toSurvey(memo, trait, order) {
    return [order(memo), trait];
  }

  async perturb(memo, draws) {
    return this.rounds[1] ? this.perturbed(memo, 1, draws) : memo;
  }

  finish(answer) {
    return symbolBytes(answer, this.k);
  }

  supports(answer) {
    return [answer];
  }

  async perturbed(symbol, round, draws) {
    const noise = this.round(round);
    return noise instanceof Table ? (symbol + (await noise.one(draws))) % this.k : noise.one(symbol, draws);
  }

  drawn() {
    return (this.#drawn ??= new Table(this.fakes.shares));
  }

  // A flip is a shift: by 0 with p, by each other amount with q. So one table serves all symbols.
  round(place) {
    const numbers = this.rounds[place];
    const make = () => {
      if (numbers.rate) return new Displacement(this.grid, numbers.rate);
      if (numbers.ends) return new Rows(numbers);
      const truth = [numbers.p, ...new Array(this.k - 1).fill(numbers.q)];
      return place === 0 && this.fakes?.kind === "bare" ? new Table(truth, this.fakes.shares) : new Table(truth);
    };
    return (this.#noise[place] ??= make());
  }
}

// One bit set among k; bit i is bit i % 8 of byte i / 8, and spare bits are 0.
class Unary {
  #drawn;

  constructor(k, first, second, fakes = null) {
    Object.assign(this, { k, first, second, fakes, bytes: Math.ceil(k / 8) });
    if (fakes?.kind === "noisy") this.#drawn = new Table(fakes.shares);
  }

  // Whether ones are flipped with 1 - p, and not with q.
  get uneven() {
    return this.second.p + this.second.q !== 1;
  }

  async digests() {
    const tables = [eightBits(this.first.q, this.first.p), ...(this.#drawn ? [this.#drawn] : [])];
    const second = this.second ? [eightBits(this.second.q)] : [];
    if (this.second && this.uneven) second.push(eightBits(this.second.p));
    const [one, other] = [tables, second].map((each) => Promise.all(each.map((table) => table.digest())));
    return { traits: [], first: await one, second: await other };
  }

  async trait() {
    return null;
  }

  cell(value) {
    return value;
  }

  // Every bit is 1 with probability q, except the cell's own, if there is one, which is 1 with p.
  async memoise(cell, mine, draws) {
    let there = mine && cell < this.k;
    if (!mine && this.#drawn) [cell, there] = [await this.#drawn.one(draws.fork(2)), true];
    const exempt = there ? [cell >> 3, 1 + (cell & 7)] : [0, 0];
    return this.#cleared(await eightBits(this.first.q, this.first.p).sample(draws, this.bytes, exempt));
  }

  toSurvey(memo, trait, order) {
    return [setBits(this.k, this.ones(memo).map(order)), trait];
  }

  async perturb(memo, draws) {
    if (!this.second) return memo;
    let flips = await eightBits(this.second.q).sample(draws, this.bytes);
    if (this.uneven) {
      const stay = await eightBits(this.second.p).sample(draws.fork(1), this.bytes);
      flips = flips.map((flip, i) => flip ^ (memo[i] & (flip ^ ~stay[i])));
    }
    return this.#cleared(flips).map((flip, i) => flip ^ memo[i]);
  }

  finish(answer) {
    return answer;
  }

  supports(answer) {
    return this.ones(answer);
  }

  ones(given) {
    return range(this.k).filter((i) => (given[i >> 3] >> (i & 7)) & 1);
  }

  #cleared(given) {
    const bytes = Uint8Array.from(given);
    bytes[bytes.length - 1] &= (1 << (((this.k - 1) % 8) + 1)) - 1;
    return bytes;
  }
}

// A value hashed to one of g symbols by a hash kept for life. Hash x maps value i to the inner product of x, written as
// digits of base g, with the i-th point: the i-th row of digits whose first digit other than 0 is 1.
class Hashed extends Direct {
  #rows;
  #points;

  constructor(k, g, first, second) {
    super(g, first, second);
    const places = range(mostDigits(g)).reverse();
    this.#rows = range(g ** places.length).map((number) => places.map((i) => Math.floor(number / g ** i) % g));
    this.#points = this.#rows.filter((row) => row.find((digit) => digit) === 1).slice(0, k);
  }

  async digests() {
    const [rows, width] = [this.#rows.length, this.#points.length];
    const hashes = await digest(rows, width, (x) => range(width).map((i) => this.cell(i, x)));
    return { ...(await super.digests()), traits: [await uniform(rows).digest(), hashes] };
  }

  async trait(draws) {
    return uniform(this.#rows.length).one(draws);
  }

  cell(value, trait) {
    return sum(this.#rows[trait].map((digit, i) => digit * this.#points[value][i])) % this.k;
  }

  toSurvey(memo, trait) {
    return [memo, trait];
  }

  finish(answer, trait) {
    return symbolBytes(trait * this.k + answer, this.#rows.length * this.k);
  }

  supports(answer, trait) {
    return range(this.#points.length).filter((i) => this.cell(i, trait) === answer);
  }
}

// A value hashed to one of g symbols by a hash that is drawn for the report; both are digits of base g.
class Fresh extends Direct {
  #values;
  #digits;

  constructor(k, g, first) {
    super(g, first, null);
    [this.#values, this.#digits] = [k, freshDigits(k, g)];
  }

  async digests() {
    const found = await super.digests();
    return { ...found, first: [await uniform(this.k).digest(), ...found.first] };
  }

  async memoise(cell, mine, draws) {
    const drawn = await uniform(this.k).sample(draws.fork(1), this.#digits);
    const hash = drawn.reduce((before, digit) => before * this.k + digit, 0);
    return hash * this.k + (await super.memoise(this.#hashed(hash, cell), mine, draws));
  }

  toSurvey(memo, trait) {
    return [memo, trait];
  }

  finish(answer) {
    return symbolBytes(answer, this.k ** (this.#digits + 1));
  }

  supports(answer) {
    const hash = Math.floor(answer / this.k);
    return range(this.#values).filter((value) => this.#hashed(hash, value) === answer % this.k);
  }

  #hashed(hash, value) {
    let total = 0;
    for (let i = 0; i < this.#digits; i++) {
      total += (hash % this.k) * (value % this.k);
      [hash, value] = [Math.floor(hash / this.k), Math.floor(value / this.k)];
    }
    return total % this.k;
  }
}

// Bits of d of the values, held for life; the last cell stands for all values that are not held.
class Buckets extends Unary {
  #values;

  constructor(k, d, first, second) {
    super(d, first, second);
    this.#values = k;
  }

  async digests() {
    const row = range(this.k, this.#values - this.k + 1);
    return { ...(await super.digests()), traits: [await digest(1, this.k, () => row, `(${this.k},)`)] };
  }

  // Floyd's algorithm: every set of d values is equally likely.
  async trait(draws) {
    const held = [];
    for (const [i, long] of (await draws.longs(this.k)).entries()) {
      const last = this.#values - this.k + i;
      const pick = below(last + 1, long);
      held.push(held.includes(pick) ? last : pick);
    }
    return held.sort((a, b) => a - b);
  }

  cell(value, trait) {
    return trait.includes(value) ? trait.indexOf(value) : this.k;
  }

  toSurvey(memo, trait, order) {
    return [memo, trait.map(order)];
  }

  finish(answer, trait) {
    return setBits(this.#values, this.supports(answer, trait));
  }

  supports(answer, trait) {
    return this.ones(answer).map((place) => trait[place]);
  }
}

// A symbol in the fewest of 1, 2 or 4 bytes that hold 0 .. count - 1, little-endian.
function symbolBytes(symbol, count) {
  const width = count <= 1 << 8 ? 1 : count <= 1 << 16 ? 2 : 4;
  return Uint8Array.from(range(width), (i) => (symbol >>> (8 * i)) & 0xff);
}

function setBits(k, ones) {
  const bytes = new Uint8Array(Math.ceil(k / 8));
  for (const one of ones) bytes[one >> 3] |= 1 << (one & 7);
  return bytes;
}

// The largest number of digits with g^digits <= 256.
const mostDigits = (g) => [8, 7, 6, 5, 4, 3, 2, 1].find((count) => g ** count <= 256);

// The fewest digits of base g in which every one of k values can be written.
const freshDigits = (k, g) => range(63, 1).find((count) => g ** count >= k);

// ---- calendar: when periods begin, and which day, week, month and year they belong to; in seconds since 1970

const LAST_PERIOD = 2 ** 32 - 2;
const UNITS = ["day", "week", "month", "year", "ever"]; // by their bit in the flags of a report
const SHORTER = { day: 1, week: 7, month: 31, year: 366 }; // periods of that many days are never twice in the same unit

class Calendar {
  #since;
  #offset;
  #ends;
  #even;
  #firstDay;

  // `offsets`: since when local time is how many seconds ahead of UTC.
  constructor(start, period, offsets, until) {
    [this.start, this.period] = [start, period];
    const given = offsets ?? [[0, 0]];
    this.#since = given.map(([since], i) => (i === 0 ? -Infinity : since));
    this.#offset = given.map(([, ahead]) => ahead);
    // The latest local time that clocks have shown before the end of each stretch of one offset.
    let latest = -Infinity;
    this.#ends = this.#offset.map((ahead, i) => (latest = Math.max(latest, (this.#since[i + 1] ?? Infinity) + ahead)));
    this.#even = !offsets || period % DAY !== 0;
    this.#firstDay = Math.floor(this.#reached(start) / DAY) * DAY;
    this.last = offsets ? Math.min(LAST_PERIOD, this.of(until) - 1) : LAST_PERIOD;
  }

  begin(period) {
    if (this.#even) return this.start + period * this.period;
    const local = this.#firstDay + period * this.period;
    const stretch = notBelow(this.#ends, local);
    return Math.max(this.#since[stretch], local - this.#offset[stretch]);
  }

  // The period that an instant belongs to; negative before the start.
  of(instant) {
    if (this.#even) return Math.floor((instant - this.start) / this.period);
    return Math.floor((this.#reached(instant) - this.#firstDay) / this.period);
  }

  // One bit for each counted unit in which this is the first report; `before` is the last reported period, or null.
  flags(period, before, counted) {
    const units = (of) => {
      const day = Math.floor(this.#reached(this.begin(of)) / DAY);
      const at = new Date(day * DAY * 1000);
      const year = at.getUTCFullYear();
      return [day, Math.floor((day + 3) / 7), 12 * year + at.getUTCMonth(), year];
    };
    const [now, then] = [units(period), before === null ? null : units(before)];
    const first = then === null ? UNITS.map(() => true) : [...now.map((each, i) => each !== then[i]), false];
    return sum(UNITS.map((unit, bit) => (first[bit] && counted.includes(unit) ? 1 << bit : 0)));
  }

  // The latest local time that clocks have shown until an instant: it does not go back when clocks do.
  #reached(instant) {
    const stretch = notBelow(this.#since, instant) - 1;
    const earlier = stretch > 0 ? this.#ends[stretch - 1] - 1 : -Infinity;
    return Math.max(instant + this.#offset[stretch], earlier);
  }
}

// ---- terms: read from whoever answers, and believed in nothing

const MAX_TERMS_BYTES = 8 << 20;
const MAX_VALUES = 1 << 16;
const [MOST_VALUES, MOST_HASHES] = [1_000_000, 1 << 23]; // of answers with fresh hashes
const FRESH_PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61];
const HASH_PRIMES = FRESH_PRIMES.slice(0, 6);
const [MAX_ORDERED, MAX_ORDERED_TWICE] = [1024, 256];
const MAX_CUTS = 1 << 22; // of all ordered attributes together: more would keep a device busy for minutes
const MAX_QUESTIONS = 64;
const SECONDS = { s: 1, m: 60, h: 3600, d: DAY, w: 7 * DAY };
// A key that is not listed might change what an answer means: such terms are refused.
const RESOLVED = "declared places questions sampled shares version";
const DECLARED =
  "attributes calibration clock crosses devices eps eps_1 eps_inf grace guarantee horizon id memo_cap minimum one_in " +
  "period presence_epsilon solution start time_zone visitors";
const ATTRIBUTE = "geo geo_inf grid mechanism name other parameter prior range share values";
const PARTS = ["traits", "first", "second"];

const notTerms = (what) => refuse("terms", `these are not the terms of a survey: ${what}`, "do not answer it");

function need(condition, what) {
  if (!condition) notTerms(what);
}

const isRecord = (given) => typeof given === "object" && given !== null && !Array.isArray(given);
const has = (record, key) => Object.hasOwn(record, key);
const isNumber = (given) => typeof given === "number" && Number.isFinite(given);
const unique = (list) => new Set(list).size === list.length;

function at(record, key) {
  need(isRecord(record) && has(record, key), `no ${key}`);
  return record[key];
}

const field = (record, key, otherwise) => (has(record, key) ? record[key] : otherwise);

function onlyKeys(record, known, what) {
  const all = isRecord(record) && Object.keys(record).every((key) => known.split(" ").includes(key));
  need(all, `${what} has a key that is not known`);
}

// Text that has UTF-8 bytes: half of a surrogate pair has none.
function textOf(given) {
  need(typeof given === "string" && !/\p{Surrogate}/u.test(given), "text");
  return given;
}

const matching = (pattern, given, what) => pattern.exec(textOf(given)) ?? notTerms(what);

function listOf(given, most, what) {
  need(Array.isArray(given) && given.length > 0 && given.length <= most, what);
  return given;
}

function wholeIn(given, least, most, what) {
  need(Number.isInteger(given) && least <= given && given <= most, what);
  return given;
}

function oneOf(given, known, what) {
  need(known.includes(given), what);
  return given;
}

// JSON.parse keeps the last of two keys with the same name; another reader may keep the first.
function parsed(text) {
  const found = JSON.parse(text);
  const records = [];
  let before;
  for (const [token] of text.matchAll(/"(?:[^"\\]+|\\.)*"|[{}[\],:]/g)) {
    if (token === "{") records.push(new Set());
    else if (token === "[") records.push(null);
    else if (token === "}" || token === "]") records.pop();
    else if (token === ":") {
      const key = JSON.parse(before);
      need(!records.at(-1).has(key), "a key twice");
      records.at(-1).add(key);
    }
    before = token;
  }
  return found;
}

const termsRead = new Map(); // by their fingerprint

// Terms from their bytes. Their tables are not compared yet, nor their losses computed.
async function readTerms(bytes) {
  need(bytes.length <= MAX_TERMS_BYTES, `more than ${MAX_TERMS_BYTES} bytes`);
  const fingerprint = (await sha256(bytes)).slice(0, 32);
  if (!termsRead.has(fingerprint)) {
    try {
      const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
      const terms = { ...understood(parsed(text)), fingerprint, text };
      for (const question of terms.questions) {
        question.order = orderOf(question);
        question.id = await questionId(question);
      }
      if (termsRead.size >= 16) termsRead.delete(termsRead.keys().next().value);
      termsRead.set(fingerprint, terms);
    } catch (error) {
      if (error instanceof DeviceError) throw error;
      notTerms("their form");
    }
  }
  return termsRead.get(fingerprint);
}

function understood(resolved) {
  onlyKeys(resolved, RESOLVED, "the terms");
  const declared = at(resolved, "declared");
  onlyKeys(declared, DECLARED, "declared");
  const solution = oneOf(field(declared, "solution", "smp"), ["smp", "spl", "rs+fd", "rs+rfd"], "solution");
  const hides = solution.startsWith("rs");
  const parts = listOf(declared.attributes, MAX_QUESTIONS, "attributes");
  const attributes = parts.map((part) => attributeOf(part, solution));
  need(unique(attributes.map(({ name }) => name)) && (!hides || parts.length > 1), "attributes");
  const crosses = has(declared, "crosses") ? listOf(declared.crosses, MAX_QUESTIONS, "crosses") : [];
  need(crosses.length === 0 || solution === "smp", "crosses");
  const sources = [...attributes.map((attribute) => [attribute]), ...crosses.map((each) => crossOf(each, attributes))];
  need(unique(sources.map((each) => each.map(({ name }) => name).join("*"))), "crosses");
  const shares = sharesOf([...parts, ...crosses], resolved.shares, solution);
  const asked = listOf(resolved.questions, 2 * MAX_QUESTIONS, "questions");
  need(asked.length === sources.length, "questions");
  const questions = asked.map((each, i) => questionOf(each, sources[i], solution, shares?.[i] ?? 1 / sources.length));
  need(sum(questions.map(({ first, k }) => (first.ends ? k * k : 0))) <= MAX_CUTS, "too many ordered values");
  const isNew = has(declared, "visitors") || attributes.some(({ other }) => other !== null);
  need(resolved.version === (isNew ? 2 : 1), "another version");
  const [longitudinal, budgets] = budgetsOf(declared, attributes, questions);
  const guarantee = oneOf(field(declared, "guarantee", "tuple"), ["tuple", "attribute", "published"], "guarantee");
  need(hides || guarantee === "tuple", "guarantee");
  const calendar = calendarOf(declared);
  const oneIn = wholeIn(field(declared, "one_in", 1), 1, 10_000, "one_in");
  need(oneIn === 1 || !longitudinal, "one_in");
  need(longitudinal || !has(declared, "memo_cap"), "memo_cap");
  const unfit = longitudinal ? ["fresh"] : ["hashed", "buckets"];
  need(!questions.some(({ kind }) => unfit.includes(kind)), "encoding");
  need(!has(declared, "visitors") || !has(declared, "horizon"), "visitors");
  return {
    id: matching(/^[a-z0-9][a-z0-9._-]{0,127}$/, declared.id, "id")[0],
    calendar,
    grace: secondsOf(field(declared, "grace", "0s")),
    horizon: wholeIn(field(declared, "horizon", 1), 1, 65535, "horizon"),
    units: has(declared, "visitors") ? unitsOf(declared.visitors, calendar) : null,
    memoCap: has(declared, "memo_cap") ? wholeIn(declared.memo_cap, 1, MAX_VALUES, "memo_cap") : null,
    oneIn,
    adds: solution === "spl", // losses of attributes that are all answered add up; of a sampled one the largest counts
    hides,
    sampling: solution !== "spl" && attributes.length > 1, // a device draws one question for life
    budgets: guarantee === "tuple" ? budgets : null,
    longitudinal,
    devices: has(declared, "devices") ? wholeIn(declared.devices, 1, 1e10, "devices") : null,
    attributes,
    questions,
    shares,
    digests: { sampled: at(resolved, "sampled"), places: resolved.places ?? null },
  };
}

// Every table, made here, must be the one that whoever made the terms has.
async function verify(terms) {
  if (terms.verified) return;
  for (const { tables, encoding } of terms.questions) {
    const found = await encoding().digests();
    for (const part of PARTS) need(tables[part].join(" ") === found[part].join(" "), `tables of ${part}`);
  }
  const { sampled, places } = terms.digests;
  need(sampled === (terms.sampling ? await sampledTable(terms).digest() : null), "sampled");
  need(places === (terms.oneIn > 1 ? await uniform(terms.oneIn).digest() : null), "places");
  terms.verified = true;
}

// By which a device draws its question, with the questions in this order.
function sampledTable({ questions, shares }, order = range(questions.length)) {
  return new Table(order.map((place) => shares?.[place] ?? 1));
}

// What the app gives a value of, and what stands for a value that is not listed.
function attributeOf(given, solution) {
  onlyKeys(given, ATTRIBUTE, "attribute");
  const span = has(given, "range") ? spanOf(given.range) : null;
  const grid = has(given, "grid") ? gridOf(given.grid) : null;
  const count = span && Math.floor((span[1] - span[0]) / span[2]) + 1;
  let values;
  if (grid) {
    need(!has(given, "values") && !span, "values");
    values = range(grid.rows).flatMap((row) => range(grid.columns).map((column) => `x${column}y${row}`));
  } else if (span && !has(given, "values")) {
    need(MAX_VALUES < count && count <= MOST_VALUES, "range");
    const [first, last, step] = span;
    const starts = range(count).map((i) => first + i * step);
    values = starts.map((start) => (step === 1 ? `${start}` : `${start}-${Math.min(start + step - 1, last)}`));
  } else {
    values = listOf(given.values, MAX_VALUES, "values").map(textOf);
    need(!span || values.length === count, "range");
  }
  const places = new Map(values.map((value, place) => [value, place]));
  need(values.length >= 2 && places.size === values.length, "values");
  need(!has(given, "other") || places.has(given.other), "other");
  const rates = ["geo", "geo_inf"].map((key) => (has(given, key) ? rateOf(given[key], grid) : null));
  const placed = rates.some((rate) => rate !== null);
  need(!placed || solution === "smp", "geo");
  need(has(given, "prior") === (solution === "rs+rfd"), "prior");
  let prior = null;
  if (has(given, "prior")) {
    need(isRecord(given.prior) && Object.keys(given.prior).length === values.length, "prior");
    prior = sumTo1(values.map((value) => at(given.prior, value)), "prior");
  }
  const name = matching(/^[a-z][a-z0-9_]{0,62}$/, given.name, "name")[0];
  return { name, values, places, other: given.other ?? null, span, grid, rates, placed, prior };
}

function spanOf(given) {
  onlyKeys(given, "first last step", "range");
  const first = wholeIn(field(given, "first", 0), -(2 ** 53), 2 ** 53, "range");
  return [first, wholeIn(given.last, first, 2 ** 53, "range"), wholeIn(field(given, "step", 1), 1, 2 ** 53, "range")];
}

function gridOf(given) {
  onlyKeys(given, "at cell columns crs origin rows", "grid");
  const [columns, rows] = ["columns", "rows"].map((key) => wholeIn(given[key], 2, MAX_VALUES / 2, key));
  need(columns * rows <= MAX_VALUES && isNumber(given.cell) && given.cell > 0, "grid");
  const pairs = [given.at, given.origin].filter((pair) => pair !== undefined);
  need(pairs.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(isNumber)), "grid");
  return new Grid(columns, rows, given.cell, field(given, "origin", [0, 0]), given.at ?? null, textOf(field(given, "crs", "local")));
}

// What one cell side may cost.
function rateOf(given, grid) {
  onlyKeys(given, "level radius", "geo");
  need(grid && [given.level, given.radius].every((number) => isNumber(number) && number > 0), "geo");
  return (given.level * grid.cell) / given.radius;
}

function crossOf(cross, attributes) {
  onlyKeys(cross, "mechanism of parameter share", "cross");
  const axes = listOf(cross.of, 2, "crosses").map((name) => attributes.find((each) => each.name === name));
  need(axes.length === 2 && axes.every((axis) => axis && !axis.placed) && axes[0] !== axes[1], "crosses");
  need(axes[0].values.length * axes[1].values.length <= MAX_VALUES, "crosses");
  return axes;
}

// One attribute, or a cross of two, as it is asked.
function questionOf(given, sources, solution, share) {
  onlyKeys(given, "encoding fakes first mechanism second tables", "question");
  let { values } = sources[0];
  if (sources.length === 2) {
    values = values.flatMap((one) => sources[1].values.map((other) => `${one}*${other}`));
    need(unique(values), "crosses");
  }
  const k = values.length;
  const { grid, prior } = sources[0];
  const [kind, parameter] = encodingOf(given.encoding, k, grid);
  need((kind === "plane") === sources[0].placed, "geo");
  need(kind === "fresh" || k <= MAX_VALUES, "values");
  const bits = kind === "unary" || kind === "buckets";
  const ordered = kind === "direct" && has(at(given, "first"), "ends");
  const symbols = bits ? 0 : parameter || k;
  const read = kind === "plane" ? moveOf : ordered ? matrixOf : flipOf;
  const first = read(given.first, symbols);
  const second = at(given, "second") === null ? null : read(given.second, symbols);
  need(!ordered || second === null || k <= MAX_ORDERED_TWICE, "values");
  onlyKeys(given.tables, PARTS.join(" "), "tables");
  const tables = Object.fromEntries(PARTS.map((part) => [part, at(given.tables, part)]));
  need(PARTS.every((part) => Array.isArray(tables[part]) && tables[part].every((each) => typeof each === "string")), "tables");
  let fakes = null;
  if (solution.startsWith("rs")) {
    need((kind === "direct" || kind === "unary") && !ordered, "fakes");
    const kinds = kind === "direct" ? ["bare", "noisy"] : solution === "rs+fd" ? ["zero", "noisy"] : ["noisy"];
    const shares = prior ?? new Array(k).fill(1 / k);
    fakes = { kind: oneOf(given.fakes, kinds, "fakes"), shares, prior: prior !== null };
  }
  need(fakes || at(given, "fakes") === null, "fakes");
  let encoding = null;
  return {
    name: sources.map((source) => source.name).join("*"),
    sources,
    values,
    k,
    kind,
    parameter, // of hashes g, of buckets d, otherwise 0
    first,
    second,
    fakes,
    share, // the chance that a device draws it, where it draws one
    tables,
    bits,
    size: parameter || k, // of a memo: how many symbols there are, or bits
    states: parameter ? Math.min(k, parameter + (kind === "buckets" ? 1 : 0)) : k, // memos that a device can ever have
    losses: new Map(),
    encoding: () => (encoding ??= encodingFor({ kind, k, parameter, first, second, fakes, grid })),
  };
}

function encodingFor({ kind, k, parameter, first, second, fakes, grid }) {
  if (kind === "hashed") return new Hashed(k, parameter, first, second);
  if (kind === "fresh") return new Fresh(k, parameter, first);
  if (kind === "buckets") return new Buckets(k, parameter, first, second);
  return kind === "unary" ? new Unary(k, first, second, fakes) : new Direct(k, first, second, fakes, grid);
}

// Its kind and its parameter.
function encodingOf(given, k, grid) {
  const kind = oneOf(given.kind, ["direct", "unary", "hashed", "fresh", "buckets", "plane"], "encoding");
  const keys = { hashed: "kind g", fresh: "kind g", buckets: "kind d", plane: "kind columns rows" }[kind] ?? "kind";
  onlyKeys(given, keys, "encoding");
  if (kind === "plane") need(grid && given.columns === grid.columns && given.rows === grid.rows, "encoding");
  if (kind === "buckets") return [kind, wholeIn(given.d, 1, k, "buckets")];
  if (kind !== "hashed" && kind !== "fresh") return [kind, 0];
  const g = oneOf(given.g, kind === "hashed" ? HASH_PRIMES : FRESH_PRIMES, "hash");
  if (kind === "hashed") need(k <= (g ** mostDigits(g) - 1) / (g - 1), "hash");
  else need(k <= MOST_VALUES && g ** freshDigits(k, g) <= MOST_HASHES, "hash");
  return [kind, g];
}

// A round that supports its input with p, and anything else with q.
function flipOf(numbers, symbols) {
  onlyKeys(numbers, "p q", "probabilities");
  const { p, q } = numbers;
  need(isNumber(p) && isNumber(q) && 0 < q && q < p && p < 1, "probabilities");
  need(symbols === 0 || Math.abs(p + (symbols - 1) * q - 1) < 1e-9, "probabilities");
  return { p, q };
}

// A round over ordered values: entries by distance, in the columns of both ends and in those between.
function matrixOf(numbers, k) {
  onlyKeys(numbers, "ends inside", "probabilities");
  const { ends, inside } = numbers;
  need(Array.isArray(ends) && Array.isArray(inside), "probabilities");
  need(k <= MAX_ORDERED && ends.length === k && inside.length === (k > 2 ? k - 1 : 0), "values");
  need([...ends, ...inside].every((each) => isNumber(each) && 0 <= each && each < 1), "probabilities");
  need(ends[0] > 0 && (k === 2 || inside[0] > 0), "probabilities");
  return { ends, inside };
}

// A round that displaces the cells of a grid; a cell side costs `rate`.
function moveOf(numbers) {
  onlyKeys(numbers, "rate", "rate");
  need(isNumber(numbers.rate) && LEAST_RATE <= numbers.rate && numbers.rate <= MOST_RATE, "rate");
  return { rate: numbers.rate };
}

// Whether the survey has memos, and its budgets; null where all attributes are places, which have their own.
function budgetsOf(declared, attributes, questions) {
  const given = ["eps", "eps_inf", "eps_1"].filter((key) => has(declared, key));
  const most = 20 * attributes.length;
  need(given.every((key) => isNumber(declared[key]) && 0 < declared[key] && declared[key] <= most), "budgets");
  const placed = attributes.filter((attribute) => attribute.placed);
  let rounds;
  if (placed.length === attributes.length) {
    need(given.length === 0, "budgets");
    rounds = placed[0].rates.map((rate) => rate !== null);
  } else {
    need(["eps", "eps_inf", "eps_inf eps_1"].includes(given.join(" ")), "budgets");
    rounds = [!given.includes("eps_inf") || given.includes("eps_1"), given.includes("eps_inf")];
  }
  need(placed.every(({ rates }) => rates.every((rate, i) => (rate !== null) === rounds[i])), "budgets");
  need(questions.every(({ second }) => (second !== null) === (rounds[0] && rounds[1])), "rounds");
  const ever = declared.eps ?? declared.eps_inf;
  return [rounds[1], given.length ? [declared.eps_1 ?? ever, ever] : null];
}

// The share of each question; those that are named are as declared.
function sharesOf(parts, shares, solution) {
  if (!parts.some((part) => has(part, "share"))) {
    need(shares == null, "shares");
    return null;
  }
  need(solution === "smp" && Array.isArray(shares) && shares.length === parts.length && parts.length > 1, "shares");
  need(parts.every((part, i) => !has(part, "share") || part.share === shares[i]), "shares");
  return sumTo1(shares, "shares");
}

function sumTo1(shares, what) {
  need(shares.every((share) => isNumber(share) && 1e-6 <= share && share < 1), what);
  need(Math.abs(sum(shares) - 1) < 1e-9, what);
  return shares;
}

function unitsOf(given, calendar) {
  onlyKeys(given, "units", "visitors");
  const units = listOf(given.units, UNITS.length, "visitors").map((unit) => oneOf(unit, UNITS, "visitors"));
  need(unique(units), "visitors");
  need(units.every((unit) => unit === "ever" || calendar.period < SHORTER[unit] * DAY), "visitors");
  return units;
}

function calendarOf(declared) {
  const [text] = matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/, declared.start, "start");
  const start = Date.parse(text) / 1000;
  need(Number.isFinite(start) && new Date(start * 1000).toISOString().startsWith(text.slice(0, 19)), "start");
  const period = secondsOf(declared.period);
  need(0 < period && period <= 366 * DAY, "period");
  if (!has(declared, "time_zone")) return new Calendar(start, period);
  const zone = declared.time_zone;
  onlyKeys(zone, "name offsets until", "time_zone");
  const offsets = listOf(zone.offsets, 500, "time_zone");
  need(offsets.every((pair) => Array.isArray(pair) && pair.length === 2), "time_zone");
  const moments = [...offsets.map(([since]) => since), zone.until];
  for (const moment of moments) wholeIn(moment, -(2 ** 36), 2 ** 36, "time_zone");
  for (const [, ahead] of offsets) wholeIn(ahead, 1 - DAY, DAY - 1, "time_zone");
  need(moments.every((moment, i) => i === 0 || moments[i - 1] < moment), "time_zone");
  const calendar = new Calendar(start, period, offsets, zone.until);
  need(calendar.begin(0) === start && calendar.last > 0, "time_zone");
  return calendar;
}

function secondsOf(given) {
  const [, count, unit] = matching(/^(\d{1,9})([smhdw])$/, given, "a duration");
  return Number(count) * SECONDS[unit];
}

// ---- losses: what terms reveal; every figure is exact or too large, never too small

const ROUNDING = 2 ** -62; // what two cuts may add to or take from a probability
const NEAR = 500; // metres: what a question about places tells is counted for two positions this far apart
const [HARMLESS_BITS, SPARE_BITS] = [1, 10];
const SENT = { p: 1, q: 0 }; // a second round that changes nothing: the memo itself is sent

const then = (one, other) => ({
  p: one.p * (other.p - other.q) + other.q,
  q: one.q * (other.p - other.q) + other.q,
});

// After t linked answers from one memo: 1, or infinity for all that there can ever be. `whole` between any two values,
// `unit` between neighbours of an ordered domain, or for a cell side.
function loss(question, t) {
  if (!question.losses.has(t)) question.losses.set(t, computedLoss(question, t));
  return question.losses.get(t);
}

function computedLoss(question, t) {
  const { first, second } = question;
  if (first.ends) return matrixLoss(first, t === 1 ? second : null);
  if (first.rate) {
    const rate = t === 1 && second ? Math.min(first.rate, second.rate) : first.rate;
    return { whole: rate * question.sources[0].grid.apart(NEAR), unit: rate };
  }
  const drawn = second ? normalised(question, second) : SENT;
  const ones = then(normalised(question, first), { p: 1, q: (drawn.q / drawn.p) ** t });
  let whole = Math.log(ones.p / ones.q);
  if (question.bits) {
    const zeros = then(first, { p: ((1 - drawn.p) / (1 - drawn.q)) ** t, q: 1 });
    const contradicted = -Math.log(zeros.p / zeros.q);
    whole = question.size === 1 ? Math.max(whole, contradicted) : whole + contradicted;
  }
  return { whole, unit: whole };
}

// All memos of `count` cells, between histories that are the same up to renaming the cells.
function cost(question, count) {
  const ever = loss(question, Infinity);
  const { first, k, parameter } = question;
  if (first.ends) {
    const places = range(2 * k).map((place) => place >> 1); // each value once in either history
    return ever.unit * (sum(places.slice(places.length - count)) - sum(places.slice(0, count)));
  }
  if (question.kind === "buckets" && parameter < k)
    return Math.min(count, parameter) * Math.log((first.p * (1 - first.q)) / (first.q * (1 - first.p)));
  return count * ever.whole;
}

// What one more answer tells whoever knows that it is the same device's, whatever its history.
function link(question) {
  const { second } = question;
  if (second === null) return Infinity;
  if (second.ends) return matrixLoss(second, null).whole;
  if (second.rate) return second.rate * question.sources[0].grid.widest;
  const { p, q } = normalised(question, second);
  return question.bits ? question.size * Math.max(Math.log(p / q), Math.log((1 - q) / (1 - p))) : Math.log(p / q);
}

const overQuestions = (terms, losses) => (terms.adds ? sum(losses) : largest(losses));

// One report, between any two histories.
function reportLoss(terms) {
  return overQuestions(terms, terms.questions.map((question) => loss(question, 1).whole));
}

// Refuse terms whose numbers reveal more than the budgets that they declare.
function requireWithinBudgets(terms) {
  const flips = terms.questions.filter(({ first }) => !first.rate);
  const fits = (t, budget) => overQuestions(terms, flips.map((each) => loss(each, t).unit)) <= budget * (1 + 1e-9);
  const near = ({ first, sources: [{ rates }] }) => !first.rate || first.rate <= (rates[1] ?? rates[0]) * (1 + 1e-9);
  const [one, ever] = terms.budgets ?? [Infinity, Infinity];
  if (!(fits(1, one) && fits(Infinity, ever) && terms.questions.every(near)))
    refuse("losses", `survey ${terms.id}: its numbers reveal more than it declares`, "do not answer it");
}

// What two answers to a question that two surveys share have in common, in bits; never too few.
function sharedBits(one, other) {
  const [m, a, b] = [one.size, one.second, other.second];
  let traits = 0;
  if (one.kind === "hashed") traits = mostDigits(one.parameter) * Math.log2(one.parameter);
  if (one.kind === "buckets") // sets of d among k
    traits = sum(range(one.parameter).map((i) => Math.log2((one.k - i) / (i + 1))));
  if (one.fakes || !(one.first.p && a?.p && b?.p)) return traits + (one.bits ? m : Math.log2(m)); // as the memo has
  if (!one.bits) {
    const apart = a.q * b.q + (a.q * (b.p - b.q) + b.q * (a.p - a.q)) / m;
    const same = apart + ((a.p - a.q) * (b.p - b.q)) / m;
    return traits + m * same * Math.log2(m * m * same) + m * (m - 1) * apart * Math.log2(m * m * apart);
  }
  const ones = one.first.q + (one.first.p - one.first.q) / one.k;
  const chance = (p, said) => (said ? p : 1 - p);
  const bits = [[0, 0], [0, 1], [1, 0], [1, 1]].map(([x, y]) => {
    const both = ones * chance(a.p, x) * chance(b.p, y) + (1 - ones) * chance(a.q, x) * chance(b.q, y);
    const alone = chance(ones * a.p + (1 - ones) * a.q, x) * chance(ones * b.p + (1 - ones) * b.q, y);
    return both * Math.log2(both / alone);
  });
  return traits + m * sum(bits);
}

// A table draws shares of the sum of what it is given.
function normalised(question, { p, q }) {
  const total = question.bits ? 1 : p + (question.size - 1) * q;
  return { p: p / total, q: q / total };
}

// Neighbours' losses add up to a bound for any two values, which geometric noise attains.
function matrixLoss(first, second) {
  let matrix = rowsOf(first);
  if (second) {
    const other = rowsOf(second);
    matrix = matrix.map((row) => {
      const product = new Array(row.length).fill(0);
      row.forEach((share, i) => other[i].forEach((each, column) => (product[column] += share * each)));
      return product;
    });
  }
  const pairs = matrix.slice(1).map((row, i) => [matrix[i], row]);
  const rising = pairs.map(([row, next]) => steepest(next, row));
  const falling = pairs.map(([row, next]) => steepest(row, next));
  return { whole: Math.max(sum(rising), sum(falling)), unit: Math.max(largest(rising), largest(falling)) };
}

function rowsOf({ ends, inside }) {
  const rows = range(ends.length).map((row) => byDistance(row, ends, inside));
  return rows.map((row) => {
    const total = sum(row);
    return row.map((each) => each / total);
  });
}

// The largest log-ratio of two rows, apart from what never occurs.
function steepest(row, other) {
  const ratios = row.map((one, i) => (one > 2 * ROUNDING ? (one - ROUNDING) / (other[i] + ROUNDING) : 0));
  return Math.log(Math.max(1, largest(ratios)));
}

// ---- questions: one memo per question, however many surveys ask it

// A double as 16 hexadecimal digits: its IEEE 754 bits, big-endian.
function bitsOf(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  return digits(view.getBigUint64(0), 16);
}

// Its values in the question's own order, each by its place in the survey's; null: as listed. By their UTF-8 bytes where
// the mechanism knows no order; as listed where a hash, a prior or a grid does; of ordered values as listed or reversed,
// whichever is smaller.
function orderOf({ kind, fakes, first, values, k }) {
  if (["hashed", "fresh", "plane"].includes(kind) || fakes?.prior) return null;
  const listed = range(k);
  if (!first.ends) return listed.sort((a, b) => byBytes(values[a], values[b]));
  const reversed = [...values].reverse();
  const at = values.findIndex((value, i) => value !== reversed[i]);
  return at < 0 || byBytes(values[at], reversed[at]) < 0 ? null : listed.reverse();
}

// 64 hexadecimal digits, the same in every survey that asks the same about the same value of the app.
function questionId({ kind, parameter, k, fakes, tables, sources, values, order }) {
  const texts = ["question", kind, `${parameter}`, `${k}`, fakes?.kind ?? "", tables.traits.join(" ")];
  texts.push(tables.first.join(" "), `${sources.length}`);
  for (const { name, other, grid } of sources) texts.push(name, other ?? "", grid ? numbersOf(grid) : "");
  return sha256(written(texts.concat(order ? order.map((place) => values[place]) : values)));
}

// All numbers of a grid.
function numbersOf({ crs, at: middle, origin, cell, columns, rows }) {
  return [crs, ...[...(middle ?? []), ...origin, cell].map(bitsOf), columns, rows].join(" ");
}

// Of rs+fd and rs+rfd: the question is the whole tuple of attributes.
const tupleId = ({ questions }) => sha256(written(["tuple", ...questions.map(({ id }) => id).sort()]));

// What the sampled question and the turn are keyed by: the sorted questions of a survey, and their shares.
function sampleId({ questions, shares, oneIn }, what) {
  const listed = questions.map(({ id, share }) => `${id} ${shares ? bitsOf(share) : ""}`).sort();
  return sha256(written([what, ...(what === "turn" ? [`${oneIn}`] : []), ...listed]));
}

// ---- respondent: what a device answers under its terms

// What is charged together: a question, or the tuple of all attributes among which one is true.
class Asked {
  // `cap`: the most memos of one attribute that the survey can bring about.
  constructor(id, questions, fresh, cap) {
    Object.assign(this, { id, questions, fresh, cap });
  }

  // All its reports about values that stay as they are; with fresh noise, one of them.
  get constant() {
    return largest(this.questions.map((question) => loss(question, this.fresh ? 1 : Infinity).whole));
  }

  // Memos of this many cells of each attribute, or of all that there are.
  cost(answers, cap = this.cap) {
    return largest(this.questions.map((question) => cost(question, Math.min(answers, cap, question.states))));
  }

  // The same, where several surveys have brought them about.
  sharedCost(cells) {
    return this.cost(cells, Infinity);
  }

  // As the ledger has it.
  line(answers = 0, first = null) {
    const tells = this.fresh || this.cap === 1 ? this.constant : sum(this.questions.map(link));
    return {
      reads: [...new Set(this.questions.flatMap(({ sources }) => sources.map(({ name }) => name)))].sort(),
      fresh: this.fresh,
      cap: this.cap,
      constant: this.constant,
      link: Math.min(tells, 1e300),
      reserved: 0,
      answers,
      first,
    };
  }
}

// The answering side of one survey. `key` gives the AES key of an id and a purpose. `listed`: the survey was joined by
// version 0.1, which knew no questions and no other order than the survey's.
class Respondent {
  #terms;
  #key;
  #listed;

  constructor(terms, key, listed) {
    [this.#terms, this.#key, this.#listed] = [terms, key, listed];
  }

  // What this device answers: the question that it drew, or all of them.
  async asked() {
    const { questions, hides, sampling, id } = this.#terms;
    if (hides) return [this.#asking(this.#listed ? id : await tupleId(this.#terms), questions)];
    const drawn = sampling ? [questions[await this.sampled()]] : questions;
    return drawn.map((question) => this.#asking(this.#id(question), [question]));
  }

  // Draw all keys that are not drawn yet: then what a report will say does not depend on when it is made.
  async drawKeys() {
    await this.answersIn(0);
    for (const { id } of await this.asked()) for (const purpose of ["memo", "unlisted"]) await this.#key(id, purpose);
  }

  // The question that alone is about the truth, by its place in the survey.
  async sampled() {
    const { questions } = this.#terms;
    const order = range(questions.length);
    if (!this.#listed) order.sort((a, b) => (questions[a].id < questions[b].id ? -1 : 1));
    return order[await sampledTable(this.#terms, order).one(await this.#drawn("sampled"))];
  }

  // Whether the device answers in a period, or reports nothing but its presence.
  async answersIn(period) {
    const { oneIn } = this.#terms;
    return oneIn === 1 || (await uniform(oneIn).one(await this.#drawn("turn"))) === period % oneIn;
  }

  // What is memoised for the values of the question's attributes; null: not listed.
  async cell(asked, question, places) {
    let value = 0;
    for (const [axis, source] of question.sources.entries()) {
      const place = places.get(source.name) ?? (await this.#unlisted(asked, question, axis));
      value = value * source.values.length + place;
    }
    const order = this.#order(question);
    return question.encoding().cell(order ? order.indexOf(value) : value, await this.trait(asked, question));
  }

  // The answer of a cell in hexadecimal digits, and the values that it and the memo behind it speak for.
  async answer(asked, question, cell, periodKey) {
    const { id, fingerprint, hides, questions } = this.#terms;
    const encoding = question.encoding();
    const order = this.#order(question);
    const mine = !hides || question === questions[await this.sampled()];
    const noise = async (what) => Draws.of(await derived(periodKey, what, id, fingerprint, question.name), cell);
    const first = asked.fresh ? await noise("once") : await this.#draws(asked, question, "memo", cell);
    const held = await this.trait(asked, question);
    const drawn = await encoding.memoise(cell, mine, first);
    const [memo, trait] = encoding.toSurvey(drawn, held, (place) => (order ? order[place] : place));
    const answer = await encoding.perturb(memo, await noise("report"));
    const values = (said) =>
      question.k > MAX_VALUES ? [] : encoding.supports(said, trait).map((place) => question.values[place]);
    return { digits: hex(encoding.finish(answer, trait)), says: values(answer), memo: values(memo) };
  }

  async trait(asked, question) {
    return question.parameter ? question.encoding().trait(await this.#draws(asked, question, "trait", 0)) : null;
  }

  // What stands for all values that are not listed: the survey's `other`, or one drawn for life.
  async #unlisted(asked, question, axis) {
    const { other, places, values } = question.sources[axis];
    if (other !== null) return places.get(other);
    const [long] = await (await this.#draws(asked, question, "unlisted", axis)).longs(1);
    const drawn = below(values.length, long);
    if (question.sources.length === 1) return this.#order(question)?.[drawn] ?? drawn;
    return range(values.length).sort((a, b) => byBytes(values[a], values[b]))[drawn];
  }

  #asking(id, questions) {
    const { longitudinal, memoCap } = this.#terms;
    const states = largest(questions.map((question) => question.states));
    return new Asked(id, questions, !longitudinal, Math.min(states, memoCap ?? states));
  }

  async #draws(asked, question, purpose, tweak) {
    const which = asked.questions.length > 1 ? [this.#id(question)] : []; // of a tuple: the attribute
    return Draws.of(await this.#key(asked.id, purpose, ...which), tweak);
  }

  async #drawn(what) {
    return Draws.of(await this.#key(this.#listed ? `${this.#terms.id} ${what}` : await sampleId(this.#terms, what), what));
  }

  #order(question) {
    return this.#listed ? null : question.order;
  }

  #id(question) {
    return this.#listed ? `${this.#terms.id} ${question.name}` : question.id;
  }
}

// The place of a value in the survey's list; null if it is not listed. Never an error.
function placeOf({ grid, places, span }, given, last) {
  if (grid && isRecord(given)) return grid.cellOf(given, last);
  if (typeof given === "boolean") given = String(given);
  let number = typeof given === "number" || typeof given === "bigint" ? Number(given) : NaN;
  if (Number.isInteger(number) && Math.abs(number) <= 2 ** 53) given = String(number + 0); // never "-0"
  if (typeof given === "string" && places.has(given)) return places.get(given);
  if (typeof given === "string" && /^-?[0-9]{1,15}$/.test(given)) number = Number(given);
  if (!span || Number.isNaN(number)) return null;
  const [low, high, step] = span;
  return Math.floor((Math.floor(Math.min(Math.max(number, low), high)) - low) / step);
}

// The place of each value, or null; and whose values are not listed. A missing position is the last one.
function placesOf({ attributes }, values, stays) {
  const [places, unlisted] = [new Map(), []];
  for (const attribute of attributes) {
    const { name, grid } = attribute;
    const last = own(stays, name) ?? null;
    let place = placeOf(attribute, isRecord(values) ? own(values, name) : undefined, last);
    if (place === null) unlisted.push(name);
    if (grid) place = stays[name] = place ?? last;
    places.set(name, place);
  }
  return [places, unlisted];
}

// The cell whose memo is reported. At the cap it is the last one for good, whatever the value.
function heldCell(cells, cap, cell) {
  if (cells.length >= cap) return cells.at(-1);
  if (!cells.includes(cell)) cells.push(cell);
  return cell;
}

// ---- limits: what a device may reveal, whatever surveys ask; nothing here knows a value

// The limits of a device that is given none, as largest log-ratios, and which surveys it answers at all.
export const LIMITS = Object.freeze({ report: 1.1, value: 3, year: 12, week: 10, ratio: 0.8, shortest: 3600, horizon: 31 });
const [YEAR, WEEK] = [365, 7]; // days
const MOST_OF_YEAR = 0.75; // of the limit `year`, for one survey
const SLACK = 1 + 1e-9;

function checkedLimits(given) {
  for (const [name, limit] of Object.entries(given)) {
    const least = name === "shortest" ? 60 : 0;
    if (!Object.hasOwn(LIMITS, name) || !(isNumber(limit) && limit > 0 && limit >= least))
      refuse("settings", `limits: ${name} is ${limit}`, `give a finite number above ${least}`);
  }
  return { ...LIMITS, ...given };
}

// Refuse terms whose reports would tell more than the limits allow, however few they are.
function checkTerms(limits, terms) {
  // What one report tells of the memo: above 0.8, whoever links reports sees when a value changed.
  const asked = terms.longitudinal ? terms.questions : [];
  const ratio = largest(asked.map((question) => loss(question, 1).whole / loss(question, Infinity).whole));
  for (const [name, given, fits] of [
    ["shortest", terms.calendar.period, terms.calendar.period >= limits.shortest],
    ["horizon", terms.horizon, terms.horizon <= limits.horizon],
    ["ratio", ratio.toPrecision(3), ratio <= limits.ratio * SLACK],
  ])
    if (!fits)
      refuse("rules", `survey ${terms.id}: ${name} is ${given}, and the limit is ${limits[name]}`,
        `do not answer it; the app can change ${name} of its limits`); // prettier-ignore
  requireWithin(limits, "report", terms.id, reportLoss(terms), "one report may reveal");
}

// Refuse what would exceed a limit: the document is as it would be afterwards.
function checkCharges(limits, survey, document) {
  const names = Object.keys(document.surveys);
  requireWithin(limits, "year", survey, committed(document, survey), "its charges of a year are", MOST_OF_YEAR);
  const total = sum(names.map((name) => committed(document, name)));
  requireWithin(limits, "year", survey, total, "with those of other surveys, the charges of a year are");
  for (const name of readBy([document.surveys[survey]]))
    requireWithin(limits, "value", survey, toldAbout(document, name), `what is told about ${name} in a year is`);
  if (document.surveys[survey].credential)
    requireWithin(limits, "week", survey, linkedInWeek(document), "the reports of a week, linked by a credential, tell");
}

function requireWithin(limits, name, survey, spent, what, share = 1) {
  const limit = limits[name] * share;
  if (!(spent <= limit * SLACK))
    refuse("limit", `survey ${survey}: ${what} ${spent.toPrecision(4)}, more than ${limit}, the limit of a ${name}`,
      "do not answer it; or raise the limit, if the person agrees"); // prettier-ignore
}

// The names of the values that surveys read.
const readBy = (surveys) =>
  [...new Set(surveys.flatMap(({ asked }) => Object.values(asked).flatMap(({ reads }) => reads)))].sort();

// The lines of all surveys about a question, with the name of the survey.
function linesAbout(document, question) {
  const lines = Object.entries(document.surveys).map(([name, { asked }]) => [name, own(asked, question)]);
  return lines.filter(([, line]) => line !== undefined);
}

// Note one more answer and what it costs. Surveys that share a question have the same memos of it.
function charge(document, survey, asked) {
  const shared = linesAbout(document, asked.id).filter(([, line]) => !line.fresh);
  const before = sum(shared.map(([, { answers, cap }]) => Math.min(answers, cap)));
  const after = sum(shared.map(([name, { answers, cap }]) => Math.min(answers + (name === survey ? 1 : 0), cap)));
  const line = document.surveys[survey].asked[asked.id];
  const amount = asked.fresh ? asked.constant : asked.sharedCost(after) - asked.sharedCost(before);
  line.answers += 1;
  line.first ??= document.day;
  document.charges = [...recentCharges(document), [document.day, survey, asked.id, amount]];
}

// Those of the last year.
const recentCharges = ({ charges, day }) => charges.filter(([at]) => at > day - YEAR);

function spent(document, survey, question = null) {
  const charges = recentCharges(document).filter(([, name, id]) => name === survey && (question ?? id) === id);
  return sum(charges.map(([, , , amount]) => amount));
}

const answersIn = (days, { calendar, oneIn }) => Math.ceil((days * DAY) / (calendar.period * oneIn));

// What a survey is charged in a year for what it asks this device.
function reserved(terms, asked) {
  const answers = answersIn(YEAR, terms);
  return asked.fresh ? answers * asked.constant : asked.cost(answers);
}

// What a survey was charged in the last year, or has reserved, whichever is more.
function committed(document, survey) {
  const lines = Object.values(document.surveys[survey].asked);
  return Math.max(spent(document, survey), sum(lines.map((line) => line.reserved)));
}

// All reports about a value of the app that stays as it is, of questions first charged in the last year.
function toldAbout(document, name) {
  let total = 0;
  const constants = new Map();
  for (const [survey, { asked }] of Object.entries(document.surveys)) {
    for (const [question, line] of Object.entries(asked).filter(([, { reads }]) => reads.includes(name))) {
      if (line.fresh) {
        total += Math.max(line.reserved, spent(document, survey, question));
        continue;
      }
      const lines = linesAbout(document, question).map(([, each]) => each);
      const firsts = lines.filter(({ fresh, first }) => !fresh && first !== null).map(({ first }) => first);
      if (firsts.length ? Math.min(...firsts) > document.day - YEAR : line.reserved) constants.set(question, line.constant);
    }
  }
  return total + sum([...constants.values()]);
}

// What the reports of the last seven days tell whoever can link them by a credential.
function linkedInWeek({ surveys, charges, day }) {
  let total = 0;
  for (const [survey, { asked }] of Object.entries(surveys).filter(([, { credential }]) => credential)) {
    for (const [question, line] of Object.entries(asked)) {
      const answers = charges.filter(([at, name, id]) => at > day - WEEK && name === survey && id === question).length;
      const held = line.cap === 1 && !line.fresh; // then all answers tell together what one does
      total += line.link * (held ? Math.min(1, answers) : answers);
    }
  }
  return total;
}

// How often the right one of two equally likely answers is guessed.
const chance = (told) => 1 / (1 + Math.exp(-told));

// ---- state: one JSON document; every change is durable before anything is sent
//
//     { format: 3, day: last day, keys: { id: key }, kept: { id and purpose: key of version 0.1 },
//       surveys: { id: ... }, charges: [[day, survey, question, amount], ...] }
//
// It has no list of memos: that would be a list of true values. Cells are stored only where a cap needs them.

const FORMAT = 3;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// By an id and a purpose: the AES key. The key of an id is drawn at its first use.
function keyOf(document, entropy) {
  return async (id, ...purpose) => {
    const kept = own(document.kept, [id, ...purpose].join(" "));
    if (kept !== undefined) return unhex(kept);
    if (!has(document.keys, id)) document.keys[id] = hex(await entropy(id));
    return derived(unhex(document.keys[id]), ...purpose);
  };
}

// The document of a stored text; null: of a new device.
async function opened(text, where, entropy, day) {
  const empty = { format: FORMAT, day, keys: {}, kept: {}, surveys: {}, charges: [] };
  if (text === null) return empty;
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    refuse("state", `${where} cannot be used as the state of a device`, "name another one");
  }
  if (found?.format === 1) return moved(found, empty, entropy);
  if (found?.format !== FORMAT) refuse("state", `${where} is of another release of hearsay`, "use that release, or a new one");
  return found;
}

// The document of version 0.1, which has one secret for life. Memos stay what they are: the keys that they were drawn
// with are kept, and the secret is not.
async function moved(old, document, entropy) {
  const keep = async (id, purpose, ...texts) => {
    document.kept[`${id} ${purpose}`] = hex(await derived(unhex(old.secret), ...texts));
  };
  for (const [survey, { fingerprint, terms: text, answers, settled = null, delivered = null, ...rest }] of Object.entries(old.surveys)) {
    let terms;
    try {
      terms = await readTerms(utf8(text));
    } catch (error) {
      if (error instanceof DeviceError) continue; // terms that this version does not answer
      throw error;
    }
    await keep(`${survey} sampled`, "sampled", "sampled", survey, fingerprint);
    await keep(`${survey} turn`, "turn", "place", survey, fingerprint);
    for (const { name } of terms.questions)
      for (const purpose of ["memo", "trait"]) {
        await keep(`${survey} ${name}`, purpose, purpose, survey, fingerprint, name);
        await keep(survey, `${purpose} ${survey} ${name}`, purpose, survey, fingerprint, name);
      }
    const respondent = new Respondent(terms, keyOf(document, entropy), true);
    await respondent.drawKeys();
    const asked = await respondent.asked();
    const begin = settled === null ? 0 : settled + 1;
    const first = answers ? document.day : null;
    document.surveys[survey] = {
      fingerprint,
      terms: text,
      listed: true,
      credential: null,
      key: hex(await entropy(`period ${survey} ${begin}`)),
      key_period: begin,
      settled,
      attempted: delivered,
      cells: rest.cells,
      stays: rest.stays ?? {},
      asked: Object.fromEntries(asked.map((each) => [each.id, each.line(answers, first)])),
      owed: [rest.owed ?? []].flat().map(({ period, text: report, says }) => ({
        ...{ period, report, says, unlisted: [], not_before: 0, attempted: true, refused: false },
      })),
    };
    for (const each of answers ? asked : [])
      document.charges.push([document.day, survey, each.id, each.fresh ? answers * each.constant : each.cost(answers)]);
  }
  return document;
}

// In a browser: a record of an IndexedDB database. A browser may forget it, unless the page asks for persistent storage
// (navigator.storage.persist()); then this is another device.
class Database {
  constructor(name) {
    this.where = name;
  }

  // Between all pages and workers of an origin; a page that is closed lets go.
  locked(run) {
    return navigator.locks.request(`hearsay-device ${this.where}`, run);
  }

  async read() {
    const found = await this.#transaction("readonly", (store) => store.get("state"));
    return found?.text ?? null;
  }

  async write(text) {
    await this.#transaction("readwrite", (store) => store.put({ text }, "state"));
  }

  async #transaction(mode, ask) {
    const opening = indexedDB.open(this.where, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("state");
    const base = await answered(opening, "success");
    try {
      const transaction = base.transaction("state", mode, { durability: "strict" });
      const request = ask(transaction.objectStore("state"));
      await answered(transaction, "complete");
      return request.result;
    } finally {
      base.close();
    }
  }
}

function answered(request, event) {
  return new Promise((resolve, reject) => {
    request[`on${event}`] = () => resolve(request.result);
    request.onerror = request.onabort = () => reject(request.error);
  }).catch((error) => refuse("state", `the browser's database fails: ${error?.name}`, "is storage allowed here?"));
}

// In Node.js: a file.
class File {
  #file;

  constructor(path) {
    this.where = String(path);
  }

  async locked(run) {
    this.#file ??= new (await import("./file.js")).File(this.where, refuse);
    try {
      return await this.#file.locked(run);
    } catch (error) {
      if (!error?.syscall || error instanceof DeviceError) throw error;
      return refuse("state", `${this.where} cannot be used: ${error.code}`, "name a file that can be written");
    }
  }

  read() {
    return this.#file.read();
  }

  write(text) {
    return this.#file.write(text);
  }
}

// ---- gateway: HTTP to anybody, bounded in time and size, no redirects, nothing in the clear

const MAX_ANSWER_BYTES = 64 << 10;
const LATER = "the same report will be sent again";
const UNTRUSTED = /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY|DECRYPT)|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE/;

class Gateway {
  #headers;
  #timeout;

  constructor(address, timeout, bearer) {
    let url;
    try {
      url = new URL(address);
    } catch {
      url = { protocol: "" };
    }
    if (!/^https?:$/.test(url.protocol) || url.username || url.password)
      refuse("address", `${address} is no address of a gateway`, "write it like https://collect.example");
    this.address = (url.origin + url.pathname).replace(/\/+$/, "");
    this.loopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
    if (url.protocol === "http:" && !this.loopback)
      refuse("address", `${this.address} would carry answers in the clear`, "write https; http is for this machine");
    if (bearer !== undefined && !/^[\x21-\x7e]+$/.test(bearer))
      refuse("settings", "the bearer has characters that no credential has", "give it as it was handed out");
    this.#headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
    this.#timeout = timeout;
  }

  // The terms of a survey, as the gateway has them; nothing about them is believed yet.
  async terms(survey) {
    const { status, body } = await this.#request(`/v1/surveys/${encodeURIComponent(survey)}`, {}, MAX_TERMS_BYTES);
    if (status === 404) refuse("gateway", `${this.address} has no survey ${survey}`, "look at its id, and at the address");
    if (status !== 200) this.#refuse(status, "the terms were not given");
    return body;
  }

  // "counted", "repeat", "late" or "too-far-ahead"; anything else is an error.
  async post(report) {
    const headers = { "content-type": "application/vnd.hearsay.report+json" };
    const { status, body } = await this.#request("/v1/reports", { method: "POST", body: report, headers }, MAX_ANSWER_BYTES);
    if ([200, 201, 202].includes(status)) return "counted";
    const refused = status >= 400 && status < 500;
    const reason = (refused && /"reason"\s*:\s*"([a-z-]{1,40})"/.exec(new TextDecoder().decode(body))?.[1]) || "";
    if (["repeat", "late", "too-far-ahead"].includes(reason)) return reason;
    return this.#refuse(status, `the report was not taken${reason && `: ${reason}`}`);
  }

  #refuse(status, what) {
    if (status === 401 || status === 403)
      refuse("credential", `${this.address}: credential refused (status ${status})`,
        "give the `bearer` that the collector has given this device"); // prettier-ignore
    refuse("gateway", `${this.address}: ${what} (${status ? `status ${status}` : "a redirect"})`, LATER);
  }

  async #request(path, init, most) {
    const signal = AbortSignal.timeout(this.#timeout);
    const headers = { ...init.headers, ...this.#headers };
    const rules = { redirect: "manual", credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store" };
    let answer;
    try {
      answer = await fetch(this.address + path, { ...rules, ...init, headers, signal });
      return { status: answer.status, body: await this.#bounded(answer, most) };
    } catch (error) {
      if (error instanceof DeviceError) throw error;
      const [at, why] = [this.address, error.cause?.code ?? ""];
      if (signal.aborted) refuse("timeout", `${at} took longer than ${this.#timeout / 1000} s`, LATER);
      if (UNTRUSTED.test(why))
        refuse("certificate", `${at}: its certificate is not trusted: ${why}`,
          "name the authority's file in NODE_EXTRA_CA_CERTS, or correct the address"); // prettier-ignore
      if (why === "ECONNREFUSED") refuse("unreachable", `${at}: connection refused`, `is it running there? ${LATER}`);
      if (why === "ENOTFOUND" || why === "EAI_AGAIN")
        refuse("unreachable", `${at}: no such host`, `look at the address, and at the network; ${LATER}`);
      if (!answer && !error.cause)
        refuse("unreachable", `${at} cannot be reached from this page: a browser does not say why`,
          `is it running, is its certificate trusted, and does it allow this origin? ${LATER}`); // prettier-ignore
      return refuse("gateway", `${at} did not answer properly (${why || error.name})`, LATER);
    }
  }

  async #bounded(answer, most) {
    const [parts, reader] = [[], answer.body?.getReader()];
    for (let size = 0; reader; ) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      if ((size += value.length) > most) {
        reader.cancel().catch(() => {});
        refuse("gateway", `${this.address} sent more than ${most} bytes`, LATER);
      }
    }
    return concat(parts);
  }
}

// ---- device
//
// The order is always: settle (the report of a period is made and stored), then send. Whatever happens in between, the
// same bytes are sent again, or none. Whether, when and how often it sends is never a function of a value.

const LONGEST_DELAY = 2; // seconds between settling and sending, so that how long settling took does not show
const notPinned = (id) => refuse("pin", `survey ${id}: its terms are not those that were pinned`, "do not answer it");
const systemEntropy = async () => (await webCrypto()).getRandomValues(new Uint8Array(32));
const termsOf = (joined) => readTerms(utf8(joined.terms));
const reportOf = ({ period, report, says, unlisted }) => ({ period, report, says, unlisted });

export class Device {
  #storage;
  #limits;
  #now;
  #wait;
  #entropy;

  // `path`: a file in Node.js, the name of a database in a browser. `now` (milliseconds since 1970), `wait`, `entropy` and
  // `storage` are for tests.
  constructor(path, { limits = {}, now = Date.now, wait, entropy = systemEntropy, storage } = {}) {
    this.#limits = checkedLimits(limits);
    this.#storage = storage ?? (typeof indexedDB === "undefined" ? new File(path) : new Database(path));
    [this.#now, this.#entropy] = [() => now() / 1000, entropy];
    this.#wait = wait ?? ((seconds) => pause(1000 * seconds));
  }

  // Report this period through a gateway. Call it by the clock, not by the event.
  async send(url, survey, values, { pin, bearer, timeout = 20_000, trustFirstUse = false } = {}) {
    const gateway = new Gateway(url, timeout, bearer);
    const credential = bearer !== undefined;
    const joined = await this.#change(({ surveys }) => {
      const { terms, fingerprint } = own(surveys, survey) ?? {};
      if (terms && pin !== undefined && pin !== fingerprint) notPinned(survey);
      return Boolean(terms);
    });
    if (!joined) {
      const bytes = await gateway.terms(survey);
      if ((await readTerms(bytes)).id !== survey)
        refuse("terms", `${gateway.address} answered with another survey`, "do not answer it");
      await this.join(bytes, { pin, trustFirstUse: trustFirstUse || gateway.loopback, credential });
    }
    const dropped = await this.#dropLate(survey);
    let [failed, report] = [null, null];
    try {
      report = await this.#change((document) => this.#settle(document, survey, values, credential));
    } catch (error) {
      if (!(error instanceof DeviceError)) throw error;
      failed = error; // what is owed is sent all the same
    }
    const { delivered, late, copied } = await this.#sendOwed(gateway, survey);
    if (failed && failed.code !== "reported") throw failed;
    const period = report?.period ?? (await this.#change(({ surveys }) => surveys[survey].settled));
    const status = delivered.includes(period) ? "reported" : "already reported";
    return { period, status, unlisted: report?.unlisted ?? [], dropped: [...dropped, ...late], copied };
  }

  // Verify the terms of a survey and keep them; returns its id. For programs that have the terms already.
  async join(terms, { pin, trustFirstUse = false, credential = null } = {}) {
    const read = await readTerms(typeof terms === "string" ? utf8(terms) : terms);
    if (pin === undefined && !trustFirstUse)
      refuse("pin", `survey ${read.id}: there is no fingerprint to compare its terms with`,
        `give the pin ${read.fingerprint}, if these are the terms that you mean`); // prettier-ignore
    if (pin !== undefined && pin !== read.fingerprint) notPinned(read.id);
    requireWithinBudgets(read);
    await verify(read);
    checkTerms(this.#limits, read);
    await this.#change((document) => this.#join(document, read, pin !== undefined, credential));
    return read.id;
  }

  // What the report of this period says: the one that is settled, or the one that these values would make; then with the
  // values that the memo behind it speaks for. Nothing is stored or sent.
  async preview(survey, values) {
    return this.#change((document) => this.#settle(structuredClone(document), survey, values, null));
  }

  // Make the report of this period and store it. Settled again, it is the first one, whatever the values.
  async settle(survey, values) {
    await this.#dropLate(survey);
    return reportOf(await this.#change((document) => this.#settle(document, survey, values, null)));
  }

  // The reports that are settled, not delivered, and still taken; oldest first.
  async owed(survey) {
    await this.#dropLate(survey);
    return this.#change((document) => joinedIn(document, survey).owed.map(reportOf));
  }

  // Record that a settled report has arrived; for programs that send it themselves.
  async confirm(survey, period) {
    await this.#change((document) => forget(joinedIn(document, survey), period, true));
  }

  // Answer a survey no more: erase its terms, owed reports and period key, and free what it had reserved.
  async leave(survey) {
    await this.#change((document) => {
      const joined = joinedIn(document, survey);
      Object.assign(joined, { terms: null, key: null, owed: [] });
      for (const line of Object.values(joined.asked)) line.reserved = 0;
    });
  }

  // Go back to the last period whose report was sent and not refused as too early, with a new period key.
  async forgetClock(survey) {
    await this.#change(async (document) => {
      const joined = joinedIn(document, survey);
      const sent = joined.owed.filter(({ attempted, refused }) => attempted && !refused).map(({ period }) => period);
      const last = Math.max(joined.attempted ?? -1, ...sent);
      joined.owed = joined.owed.filter(({ period }) => period <= last);
      const key = await this.#periodKey(survey, last + 1);
      Object.assign(joined, { settled: last < 0 ? null : last, key, key_period: last + 1 });
    });
  }

  // What its reports may tell, for the person whose device it is.
  async explain() {
    return this.#change(async (document) => {
      this.#passDays(document);
      const { surveys } = document;
      const [report, asking, charges] = [{}, new Map(), recentCharges(document)];
      for (const [survey, joined] of Object.entries(surveys))
        if (joined.terms !== null) report[survey] = chance(reportLoss(await termsOf(joined)));
      for (const survey of Object.keys(surveys).sort())
        for (const id of Object.keys(surveys[survey].asked)) asking.set(id, [...(asking.get(id) ?? []), survey]);
      const names = readBy(Object.values(surveys));
      return {
        report,
        value: Object.fromEntries(names.map((name) => [name, chance(toldAbout(document, name))])),
        year: {
          answers: charges.length,
          charged: sum(charges.map(([, , , amount]) => amount)),
          committed: sum(Object.keys(surveys).map((survey) => committed(document, survey))),
          limit: this.#limits.year,
        },
        week: "whoever knows which reports are yours can see that and when your answer changed",
        shared: [...asking.values()].filter((each) => each.length > 1),
      };
    });
  }

  // For tests of an app: which of its possible values a survey does not list, by attribute. An attribute for which the app
  // gives no values has undefined among them.
  async check(terms, possible) {
    const { attributes } = await readTerms(typeof terms === "string" ? utf8(terms) : terms);
    const unlisted = attributes.map((attribute) => {
      const given = own(possible, attribute.name) ?? [undefined];
      return [attribute.name, given.filter((value) => placeOf(attribute, value, null) === null)];
    });
    return Object.fromEntries(unlisted.filter(([, values]) => values.length > 0));
  }

  // Change the stored document: all of it or nothing. Other processes wait.
  #change(run) {
    return this.#storage.locked(async () => {
      const text = await this.#storage.read();
      const document = await opened(text, this.#storage.where, this.#entropy, this.#day);
      const result = await run(document);
      const changed = JSON.stringify(document);
      if (changed !== text) await this.#storage.write(changed);
      return result;
    });
  }

  async #join(document, terms, pinned, credential) {
    const before = own(document.surveys, terms.id) ?? { settled: null, attempted: null, listed: false, asked: {} };
    if ((before.fingerprint ?? terms.fingerprint) !== terms.fingerprint)
      refuse("changed", `the terms of survey ${terms.id} have changed`, "do not answer it");
    if (before.terms) return;
    const period = Math.max(0, this.#period(terms), (before.settled ?? -1) + 1);
    const joined = (document.surveys[terms.id] = {
      ...{ cells: {}, stays: {}, ...before, owed: [], fingerprint: terms.fingerprint, terms: terms.text, credential },
      ...{ key: await this.#periodKey(terms.id, period), key_period: period },
    });
    const respondent = await this.#respondent(document, joined);
    await respondent.drawKeys();
    const asked = await respondent.asked();
    for (const each of asked) {
      if (!has(joined.asked, each.id)) joined.asked[each.id] = each.line();
      joined.asked[each.id].reserved = pinned ? reserved(terms, each) : 0;
    }
    await this.#refuseLinked(document, terms.id);
    this.#passDays(document);
    // What comes next must fit: one answer, and with a credential those of a week.
    const trial = structuredClone(document);
    const more = credential ? answersIn(WEEK, terms) - 1 : 0;
    for (const each of asked) {
      charge(trial, terms.id, each);
      trial.charges.push(...range(more).map(() => [trial.day, terms.id, each.id, 0]));
    }
    checkCharges(this.#limits, terms.id, trial);
  }

  async #settle(document, survey, values, credential) {
    const joined = joinedIn(document, survey);
    const terms = await termsOf(joined);
    if ((credential && !joined.credential) || (credential !== null && joined.credential === null)) {
      joined.credential = credential;
      await this.#refuseLinked(document, survey);
    }
    const [period, settled] = [this.#period(terms), joined.settled];
    if (period < 0) refuse("early", `survey ${survey} has not begun`, "wait");
    if (period > terms.calendar.last) refuse("over", `survey ${survey} is over`, "leave it");
    if (settled !== null && period <= settled) {
      const owed = joined.owed.find((each) => each.period === period);
      return owed ? reportOf(owed) : refuse("reported", `survey ${survey}: period ${period} is reported`, "wait for the next one");
    }
    checkTerms(this.#limits, terms);
    const respondent = await this.#respondent(document, joined);
    const asked = (await respondent.answersIn(period)) ? await respondent.asked() : [];
    this.#passDays(document);
    for (const each of asked) charge(document, survey, each);
    checkCharges(this.#limits, survey, document);
    const [places, unlisted] = placesOf(terms, values, joined.stays);
    let key = unhex(joined.key);
    for (let at = joined.key_period; at < period; at++) key = await nextKey(key);
    const [answers, says, memo] = [{}, {}, {}];
    for (const each of asked) {
      for (const question of each.questions) {
        const { name } = question;
        let cell = await respondent.cell(each, question, places);
        if (!each.fresh && each.cap < question.states) {
          if (!has(joined.cells, name)) joined.cells[name] = [];
          cell = heldCell(joined.cells[name], each.cap, cell);
        }
        const answer = await respondent.answer(each, question, cell, key);
        [answers[name], says[name]] = [answer.digits, answer.says];
        if (!each.fresh) memo[name] = answer.memo;
      }
    }
    const { id, fingerprint, calendar, horizon, units } = terms;
    const [first, second] = await (await Draws.of(await derived(key, "token", id, fingerprint))).longs(2);
    const gap = settled === null ? horizon : Math.min(horizon, period - settled);
    const report = JSON.stringify({
      survey,
      fingerprint,
      period: digits(period, 8),
      token: digits(first || second | 1n, 16), // not zero, and the same for every attempt
      ...(units ? { flags: digits(calendar.flags(period, settled, units), 2) } : { gap: digits(gap, 4) }),
      answers,
    });
    const drawn = new DataView((await this.#entropy(`delay ${survey} ${period}`)).slice(0, 8).buffer).getBigUint64(0, true);
    const not_before = this.#now() + LONGEST_DELAY * (Number(drawn) / 2 ** 64);
    const owed = { period, report, says, unlisted, not_before, attempted: false, refused: false };
    joined.owed.push(owed);
    Object.assign(joined, { settled: period, key: hex(await nextKey(key)), key_period: period + 1 });
    return { ...reportOf(owed), memo };
  }

  // Send what is owed, oldest first: the periods that were delivered, those that are late, and whether a copy is in use.
  async #sendOwed(gateway, survey) {
    const [delivered, late] = [[], []];
    let copied = false;
    const waiting = await this.#change(async (document) => {
      const joined = joinedIn(document, survey);
      const begun = this.#period(await termsOf(joined)); // of a period that has not begun, the clock was ahead
      return joined.owed.filter((each) => each.period <= begun);
    });
    for (const { period, not_before } of waiting) {
      await this.#wait(Math.min(LONGEST_DELAY, Math.max(0, not_before - this.#now())));
      late.push(...(await this.#dropLate(survey)));
      const owed = await this.#change(({ surveys }) => {
        const found = surveys[survey].owed.find((each) => each.period === period);
        const again = found?.attempted;
        return found && { again, ...Object.assign(found, { attempted: true, refused: false }) };
      });
      if (!owed) continue; // late by now, or another process has delivered it
      const outcome = await gateway.post(owed.report);
      await this.#change(({ surveys }) => {
        const found = surveys[survey].owed.find((each) => each.period === period);
        if (outcome === "too-far-ahead" && found) found.refused = true;
        else if (outcome !== "late" && outcome !== "too-far-ahead") forget(surveys[survey], period, true);
      });
      if (outcome === "too-far-ahead")
        refuse("ahead", `${gateway.address}: period ${period} of survey ${survey} has not begun there`,
          "look at this machine's clock; if it was wrong, set it and call forgetClock"); // prettier-ignore
      if (outcome === "late")
        refuse("late", `${gateway.address}: period ${period} of survey ${survey} is closed there, but not by this machine's clock`,
          "look at the clock; it is sent again until then"); // prettier-ignore
      copied ||= outcome === "repeat" && !owed.again;
      delivered.push(period);
    }
    return { delivered, late, copied };
  }

  // A report is never sent after its period's end and the survey's grace; returns what was dropped.
  #dropLate(survey) {
    return this.#change(async (document) => {
      const joined = joinedIn(document, survey);
      const { calendar, grace } = await termsOf(joined);
      const late = joined.owed.map(({ period }) => period).filter((p) => this.#now() >= calendar.begin(p + 1) + grace);
      for (const period of late) forget(joined, period, false);
      return late;
    });
  }

  // Surveys that share a question can be linked like two periods of one.
  async #refuseLinked(document, survey) {
    const joined = document.surveys[survey];
    const terms = await termsOf(joined);
    const mine = (await (await this.#respondent(document, joined)).asked()).filter(({ fresh }) => !fresh);
    for (const [name, other] of Object.entries(document.surveys)) {
      if (name === survey || other.terms === null) continue;
      const theirs = await termsOf(other);
      const crowd = terms.devices && theirs.devices ? Math.log2(Math.min(terms.devices, theirs.devices)) - SPARE_BITS : 0;
      for (const each of await (await this.#respondent(document, other)).asked()) {
        const same = mine.find(({ id }) => id === each.id);
        if (each.fresh || !same) continue;
        const bits = commonBits(same, each) + Math.max(drawnBits(terms, same), drawnBits(theirs, each));
        const credentials = new Set([joined.credential, other.credential].filter((known) => known !== null));
        if (credentials.size < 2 && bits <= Math.max(HARMLESS_BITS, crowd)) continue;
        const why = credentials.size > 1 ? "one of them has a credential" : `${bits.toPrecision(2)} bits are the same`;
        refuse("linked", `survey ${survey} asks what ${name} asks, and would link reports: ${why}`,
          "do not answer it, or leave the other one"); // prettier-ignore
      }
    }
  }

  async #respondent(document, joined) {
    return new Respondent(await termsOf(joined), keyOf(document, this.#entropy), joined.listed);
  }

  async #periodKey(survey, period) {
    return hex(await this.#entropy(`period ${survey} ${period}`));
  }

  #period({ calendar }) {
    return calendar.of(Math.floor(this.#now()));
  }

  get #day() {
    return Math.floor(this.#now() / DAY);
  }

  // A device's days never go back.
  #passDays(document) {
    document.day = Math.max(document.day, this.#day);
  }
}

function joinedIn({ surveys }, survey) {
  const joined = own(surveys, survey);
  if (!joined?.terms) refuse("unknown", `this device has not joined survey ${survey}`, "call send, or join with its terms");
  return joined;
}

// A report was delivered, or is of no use any more.
function forget(joined, period, sent) {
  for (const owed of joined.owed)
    if (owed.period === period && (sent || (owed.attempted && !owed.refused)))
      joined.attempted = Math.max(period, joined.attempted ?? -1);
  joined.owed = joined.owed.filter((owed) => owed.period !== period);
}

// Bits that answers to a question have in common.
function commonBits(one, other) {
  return sum(one.questions.map((each) => sharedBits(each, other.questions.find(({ id }) => id === each.id))));
}

// That a device answers this question, where it drew one and shows it.
function drawnBits({ sampling, hides }, { questions: [{ share }] }) {
  return sampling && !hides ? -Math.log2(share) : 0;
}

// ---- recorder

const RULES = ["first", "last", "most frequent", "longest", "count"];

// Many events of a period become the one value of its report: the `first` or the `last` value, the `most frequent` one, the
// one with the `longest` time, or how many events there were (`count`), by `buckets`: from how many events on a value is the
// report's. Of several it is the one that came first. If nothing happened it is null, which is a value like any other.
export class Recorder {
  #rule;
  #buckets;
  #weights;
  #last;
  #events;

  constructor(rule, { buckets, state } = {}) {
    if (!RULES.includes(rule)) refuse("settings", `a recorder cannot record the ${rule}`, `write one of ${RULES.join(", ")}`);
    if ((rule === "count") !== (buckets !== undefined))
      refuse("settings", "buckets belong to the rule count", "give both, or none of them");
    if (buckets && Math.min(...Object.values(buckets)) !== 0)
      refuse("settings", "no bucket begins with 0 events", "name what stands for nothing happening");
    [this.#rule, this.#buckets] = [rule, Object.entries(buckets ?? {}).sort(([, a], [, b]) => b - a)];
    this.clear();
    if (state) [this.#weights, this.#last, this.#events] = [new Map(state.weights), state.last, state.events];
  }

  // What it has, as JSON can write it: keep it, if the app may be restarted within a period.
  get state() {
    return { weights: [...this.#weights], last: this.#last, events: this.#events };
  }

  // An event; `seconds` is how long it lasted, for the rule `longest`.
  add(value = "", seconds = 0) {
    this.#events += 1;
    if (this.#rule === "count") return;
    const name = String(value);
    const weight = this.#rule === "longest" ? seconds : 1;
    if (this.#rule !== "first" || this.#last === null) this.#weights.set(name, (this.#weights.get(name) ?? 0) + weight);
    if (this.#rule === "last") this.#weights = new Map([[name, 1]]);
    this.#last = name;
  }

  // What `send` is to be given.
  get value() {
    if (this.#rule === "count") return this.#buckets.find(([, least]) => least <= this.#events)[0];
    let [found, most] = [null, -Infinity];
    for (const [name, weight] of this.#weights) if (weight > most) [found, most] = [name, weight];
    return found;
  }

  clear() {
    [this.#weights, this.#last, this.#events] = [new Map(), null, 0];
  }
}

// What tests look at.
export const internals = { Calendar, Respondent, keyOf, nextKey, orderOf, questionId, readTerms, sampleId, tupleId, verify, written };
