// Exact sampling from integers (docs/device-protocol.md, "Tables"). No float is compared.

import { sha256 } from "./noble/hashes/sha2.js";
import { concat, hex, utf8 } from "./bytes.js";
import { fraction, nearest, wholeNumbers } from "./fractions.js";

const SLOTS = 1 << 16;
const WORD = 1n << 64n;

// One distribution, or a few of them (kinds) that are drawn with the same words.
export class Table {
  #owned; // by kind: the slots that each symbol owns
  #cuts; // by kind: where 64 further bits are cut
  #ends; // by kind: the slot at which each symbol's slots end
  #filled;

  constructor(...distributions) {
    const weights = distributions.map((each) => wholeNumbers(each));
    const totals = weights.map(sum);
    const owned = weights.map((each, kind) => each.map((weight) => Number((weight * BigInt(SLOTS)) / totals[kind])));
    this.#filled = Math.min(...owned.map((each) => each.reduce((a, b) => a + b, 0)));
    this.#owned = owned.map((each) => kept(each, this.#filled));
    this.#cuts = weights.map((each, kind) =>
      cuts(each.map((weight, i) => weight * BigInt(SLOTS) - BigInt(this.#owned[kind][i]) * totals[kind])),
    );
    this.#ends = this.#owned.map((each) => {
      let end = 0;
      return each.map((own) => (end += own));
    });
  }

  get digest() {
    return digest(this.#owned.map((each, kind) => [...each.map(BigInt), ...this.#cuts[kind]]));
  }

  // A symbol for each of `count` words; at the place `exempt[0]` from the distribution of kind `exempt[1]`.
  sample(draws, count, exempt = [0, 0]) {
    const words = draws.words(count);
    return Array.from(words, (word, place) => {
      const kind = place === exempt[0] ? exempt[1] : 0;
      if (word < this.#filled) return notBelow(this.#ends[kind], word);
      return notBelow(this.#cuts[kind], draws.further(place));
    });
  }

  one(draws, kind = 0) {
    return this.sample(draws, 1, [0, kind])[0];
  }
}

// One distribution per input symbol, by distance: `ends` in the columns of both ends, `inside` in those between. It is
// sampled by where 64 bits fall among a row's cuts.
export class Rows {
  #size;
  #ends;
  #inside;

  constructor(ends, inside) {
    this.#size = ends.length;
    const whole = wholeNumbers([...ends, ...inside]); // of one scale, which cuts do not depend on
    [this.#ends, this.#inside] = [whole.slice(0, ends.length), whole.slice(ends.length)];
  }

  get digest() {
    return digest(Array.from({ length: this.#size }, (_, i) => this.#cuts(i)));
  }

  one(symbol, draws) {
    return notBelow(this.#cuts(symbol), draws.longs(1)[0]);
  }

  #cuts(symbol) {
    return cuts(byDistance(symbol, this.#ends, this.#inside));
  }
}

// One row of a matrix whose entries depend on the distance from the diagonal, in the outer and in the inner columns.
export function byDistance(row, ends, inside) {
  const last = ends.length - 1;
  return ends.map((_, column) => {
    const distance = Math.abs(row - column);
    return column === 0 || column === last ? ends[distance] : inside[distance];
  });
}

const evenly = new Map();

export function uniform(count) {
  if (!evenly.has(count)) evenly.set(count, new Table(new Array(count).fill(1)));
  return evenly.get(count);
}

// A byte of independent bits, each 1 with probability q; of kind i, bit i - 1 is 1 with probability p instead.
export function eightBits(q, p) {
  const all = [new Array(8).fill(q)];
  if (p !== undefined) for (let bit = 0; bit < 8; bit++) all.push(all[0].map((each, i) => (i === bit ? p : each)));
  return new Table(...all.map(independent));
}

// A hash of integers and of their shape, written as Python writes it.
export function digest(rows) {
  const flat = rows.length > 0 && !Array.isArray(rows[0]);
  const shape = flat ? `(${rows.length},)` : `(${rows.length}, ${rows[0].length})`;
  const hash = sha256.create().update(utf8(shape));
  for (const row of flat ? [rows] : rows) {
    const bytes = new Uint8Array(8 * row.length);
    const view = new DataView(bytes.buffer);
    row.forEach((integer, i) => view.setBigUint64(8 * i, BigInt(integer), true));
    hash.update(bytes);
  }
  return hex(hash.digest());
}

// 64 random bits as a number below `count`: the upper half of their product.
export const below = (count, long) => Number((long * BigInt(count)) >> 64n);

function independent(bits) {
  let found = [[1n, 0]];
  for (const bit of bits) {
    const [one, exponent] = fraction(bit);
    const zero = (1n << BigInt(exponent)) - one;
    if (zero < 0n) throw new RangeError("not a probability");
    const times = (factor) => found.map(([numerator, scale]) => [numerator * factor, scale + exponent]);
    found = [...times(zero), ...times(one)];
  }
  return found.map(([numerator, exponent]) => nearest(numerator, exponent));
}

const sum = (weights) => weights.reduce((a, b) => a + b, 0n);

// How many of its slots each symbol keeps if only the first `filled` of all are used.
function kept(owned, filled) {
  let left = filled;
  return owned.map((own) => {
    const taken = Math.min(own, left);
    left -= taken;
    return taken;
  });
}

// Where [0, 2^64) is cut so that piece i has weights[i] of it.
function cuts(weights) {
  const total = sum(weights);
  if (total === 0n) return new Array(weights.length - 1).fill(0n);
  let running = 0n;
  return weights.slice(0, -1).map((weight) => {
    running += weight;
    const cut = (2n * running * WORD + total) / (2n * total);
    return cut < WORD ? cut : WORD - 1n;
  });
}

// How many of these ascending numbers a number is not below.
export function notBelow(ascending, number) {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle] <= number) low = middle + 1;
    else high = middle;
  }
  return low;
}
