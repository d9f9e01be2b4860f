// Encodings (docs/device-protocol.md, "Answers"): a value becomes a cell, a cell a memo, a memo an answer.
//
//     direct    the value is a symbol                      grr, geometric
//     unary     the value is the one bit set among k       sue, oue
//     hashed    the value is hashed to g symbols           loloha
//     fresh     the same with a new hash in every report   olh
//     plane     the value is a cell of a grid              geo-grid, geo-tight
//     buckets   d of the k bits, the same d for life       dbitflip

import { symbolBytes } from "./bytes.js";
import { Weighing } from "./areas.js";
import { Displacement } from "./places.js";
import { below, digest, eightBits, Rows, Table, uniform } from "./tables.js";

const known = new WeakMap(); // by question, because tables take a while to make

export function encodingOf(question) {
  if (!known.has(question)) known.set(question, made(question));
  return known.get(question);
}

function made(question) {
  const { encoding, k } = question;
  if (encoding.kind === "direct") return new Direct(k, question, shifts(k));
  if (encoding.kind === "unary") return new Unary(k, question);
  if (encoding.kind === "plane") return new Direct(k, question, movesOf(question));
  if (encoding.kind === "hashed") return new Hashed(k, encoding.g, question);
  if (encoding.kind === "fresh") return new Fresh(k, encoding.g, question);
  return new Buckets(k, encoding.d, question);
}

const once = (make) => {
  let made;
  return () => (made ??= make());
};

const isMatrix = (round) => round.ends !== undefined;

// One symbol of k.
class Direct {
  #k;
  #fakes;
  #fakeTable;
  #first;
  #second;

  constructor(k, { first, second, fakes, fakeShares }, noise) {
    this.#k = k;
    this.#fakes = fakes;
    this.#fakeTable = once(() => new Table(fakeShares));
    this.#first = once(() => noise(first, fakes === "bare" ? fakeShares : undefined));
    this.#second = second && once(() => noise(second));
  }

  // Both rounds of noise, as they draw.
  get rounds() {
    return [this.#first(), ...(this.#second ? [this.#second()] : [])];
  }

  get digests() {
    const drawn = this.#fakes === "noisy" ? [this.#fakeTable().digest] : [];
    return { traits: [], first: [this.#first().digest, ...drawn], second: this.#second ? [this.#second().digest] : [] };
  }

  trait() {
    return undefined;
  }

  cell(value) {
    return value;
  }

  memoise(cell, own, draws) {
    if (!own && this.#fakes === "bare") return this.#first().one(draws, 1);
    const value = own ? cell : this.#fakeTable().one(draws.fork(2));
    return this.#perturbed(value, this.#first(), draws);
  }

  perturb(memo, draws) {
    return this.#second ? this.#perturbed(memo, this.#second(), draws) : memo;
  }

  finish(symbol) {
    return symbolBytes(symbol, this.#k);
  }

  supports(symbol) {
    return [symbol];
  }

  #perturbed(symbol, noise, draws) {
    return noise instanceof Table ? (symbol + noise.one(draws)) % this.#k : noise.one(symbol, draws);
  }
}

// Noise is a shift: by 0 with p, by each other amount with q. So one table serves all symbols.
const shifts = (k) => (round, fakeShares) => {
  if (isMatrix(round)) return new Rows(round.ends, round.inside);
  const truth = [round.p, ...new Array(k - 1).fill(round.q)];
  return fakeShares ? new Table(truth, fakeShares) : new Table(truth);
};

// Of places: all cells of a grid are displaced alike, or those inside an area are weighed.
const movesOf = ({ grid, inside }) => (round) =>
  round.masses ? new Weighing(grid, inside, round) : new Displacement(grid.columns, grid.rows, round.rate);

// One bit set among k; bit i is bit i % 8 of byte i / 8, and spare bits are 0.
class Unary {
  #k;
  #bytes;
  #fakes;
  #fakeTable;
  #first;
  #second;
  #ones;

  constructor(k, { first, second, fakes, fakeShares }) {
    this.#k = k;
    this.#bytes = Math.ceil(k / 8);
    this.#fakes = fakes;
    this.#fakeTable = once(() => new Table(fakeShares));
    this.#first = once(() => eightBits(first.q, first.p));
    this.#second = second && once(() => eightBits(second.q));
    this.#ones = second && second.p + second.q !== 1 && once(() => eightBits(second.p));
  }

  get digests() {
    const tables = (made) => made.filter(Boolean).map((each) => each().digest);
    return {
      traits: [],
      first: tables([this.#first, this.#fakes === "noisy" && this.#fakeTable]),
      second: tables([this.#second, this.#ones]),
    };
  }

  trait() {
    return undefined;
  }

  cell(value) {
    return value;
  }

  // Every bit is 1 with probability q, except the cell's own, if there is one, which is 1 with p.
  memoise(cell, own, draws) {
    let there = own && cell < this.#k;
    if (!own && this.#fakes === "noisy") [cell, there] = [this.#fakeTable().one(draws.fork(2)), true];
    const exempt = there ? [cell >> 3, 1 + (cell & 7)] : [0, 0];
    return this.#cleared(this.#first().sample(draws, this.#bytes, exempt));
  }

  perturb(memo, draws) {
    if (!this.#second) return memo;
    let flips = this.#second().sample(draws, this.#bytes);
    if (this.#ones) {
      // Ones are flipped with 1 - p, not with q.
      const stay = this.#ones().sample(draws.fork(1), this.#bytes);
      flips = flips.map((flip, i) => flip ^ (memo[i] & (flip ^ ~stay[i])));
    }
    return this.#cleared(flips).map((flip, i) => flip ^ memo[i]);
  }

  finish(bytes) {
    return Uint8Array.from(bytes);
  }

  supports(bytes) {
    return Array.from({ length: this.#k }, (_, i) => i).filter((i) => (bytes[i >> 3] >> (i & 7)) & 1);
  }

  #cleared(bytes) {
    const used = ((this.#k - 1) % 8) + 1;
    return bytes.map((byte, i) => (i === this.#bytes - 1 ? byte & ((1 << used) - 1) : byte & 0xff));
  }
}

// A value hashed to one of g symbols by a hash kept for life. Hash x maps value i to the inner product of x, written
// as digits of base g, with the i-th point: the i-th row of digits whose first digit other than 0 is 1.
class Hashed {
  #k;
  #g;
  #symbols;
  #digits;

  constructor(k, g, question) {
    this.#k = k;
    this.#g = g;
    this.#symbols = new Direct(g, question, shifts(g));
    this.#digits = digitsOf(g);
  }

  get #family() {
    return this.#g ** this.#digits;
  }

  get digests() {
    const points = this.#points();
    const hashes = Array.from({ length: this.#family }, (_, x) => points.map((point) => this.#product(x, point)));
    return { ...this.#symbols.digests, traits: [uniform(this.#family).digest, digest(hashes)] };
  }

  trait(draws) {
    return uniform(this.#family).one(draws);
  }

  cell(value, hash) {
    return this.#product(hash, this.#points()[value]);
  }

  memoise(cell, own, draws) {
    return this.#symbols.memoise(cell, own, draws);
  }

  perturb(memo, draws) {
    return this.#symbols.perturb(memo, draws);
  }

  finish(symbol, hash) {
    return symbolBytes(hash * this.#g + symbol, this.#family * this.#g);
  }

  supports(symbol, hash) {
    return this.#points().flatMap((point, i) => (this.#product(hash, point) === symbol ? [i] : []));
  }

  #row(number) {
    return Array.from(
      { length: this.#digits },
      (_, i) => Math.floor(number / this.#g ** (this.#digits - 1 - i)) % this.#g,
    );
  }

  #points() {
    const points = [];
    for (let x = 0; points.length < this.#k && x < this.#family; x++) {
      const row = this.#row(x);
      if (row.find((digit) => digit !== 0) === 1) points.push(row);
    }
    return points;
  }

  #product(hash, point) {
    return this.#row(hash).reduce((sum, digit, i) => sum + digit * point[i], 0) % this.#g;
  }
}

// The largest number of digits with g^digits <= 256.
function digitsOf(g) {
  let digits = 1;
  while (g ** (digits + 1) <= 256) digits += 1;
  return digits;
}

// How many values a family of hashes to g symbols can tell apart.
export const largestDomain = (g) => (g ** digitsOf(g) - 1) / (g - 1);

// A value hashed to one of g symbols by a hash that is drawn for the report: hash and value, both as digits of base g,
// multiplied digit by digit and added up modulo g. Nothing is memoised, so there is no second round.
class Fresh {
  #k;
  #g;
  #symbols;
  #digits;

  constructor(k, g, question) {
    this.#k = k;
    this.#g = g;
    this.#symbols = new Direct(g, question, shifts(g));
    this.#digits = freshDigits(k, g);
  }

  get digests() {
    const { first, second } = this.#symbols.digests;
    return { traits: [], first: [uniform(this.#g).digest, ...first], second };
  }

  trait() {
    return undefined;
  }

  cell(value) {
    return value;
  }

  memoise(value, own, draws) {
    const hash = uniform(this.#g).sample(draws.fork(1), this.#digits).reduce((sum, digit) => sum * this.#g + digit, 0);
    return hash * this.#g + this.#symbols.memoise(this.#hashed(hash, value), own, draws);
  }

  perturb(answer) {
    return answer;
  }

  finish(answer) {
    return symbolBytes(answer, this.#g ** (this.#digits + 1));
  }

  supports(answer) {
    const [hash, symbol] = [Math.floor(answer / this.#g), answer % this.#g];
    const supported = [];
    for (let value = 0; value < this.#k; value++) if (this.#hashed(hash, value) === symbol) supported.push(value);
    return supported;
  }

  #hashed(hash, value) {
    let sum = 0;
    for (; value > 0; hash = Math.floor(hash / this.#g), value = Math.floor(value / this.#g)) {
      sum += (hash % this.#g) * (value % this.#g);
    }
    return sum % this.#g;
  }
}

// The fewest digits of base g in which every one of k values can be written.
export function freshDigits(k, g) {
  let digits = 1;
  while (g ** digits < k) digits += 1;
  return digits;
}

// Bits of d of the k values, held for life; the last cell stands for all values that are not held.
class Buckets {
  #k;
  #d;
  #bits;

  constructor(k, d, question) {
    this.#k = k;
    this.#d = d;
    this.#bits = new Unary(d, question);
  }

  get digests() {
    const bounds = Array.from({ length: this.#d }, (_, i) => BigInt(this.#k - this.#d + 1 + i));
    return { ...this.#bits.digests, traits: [digest(bounds)] };
  }

  // Floyd's algorithm: every set of d values is equally likely.
  trait(draws) {
    const held = [];
    draws.longs(this.#d).forEach((long, place) => {
      const last = this.#k - this.#d + place;
      const pick = below(last + 1, long);
      held.push(held.includes(pick) ? last : pick);
    });
    return held.sort((a, b) => a - b);
  }

  cell(value, held) {
    const place = held.indexOf(value);
    return place < 0 ? this.#d : place;
  }

  memoise(cell, own, draws) {
    return this.#bits.memoise(cell, own, draws);
  }

  perturb(memo, draws) {
    return this.#bits.perturb(memo, draws);
  }

  finish(memo, held) {
    const bytes = new Uint8Array(Math.ceil(this.#k / 8));
    for (const value of this.supports(memo, held)) bytes[value >> 3] |= 1 << (value & 7);
    return bytes;
  }

  supports(memo, held) {
    return this.#bits.supports(memo).map((place) => held[place]);
  }
}
