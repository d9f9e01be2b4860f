// Places inside an area (docs/device-protocol.md, "Places"): which cells are inside, noise that weighs them, and what
// rounds of noise on places reveal.

import { ANYWHERE, WORD, weight } from "./places.js";
import { digest, notBelow } from "./tables.js";

const UNIT = 2 ** 30; // a mass of 1
const BITS = 52;
const RUN = /^x(0|[1-9][0-9]{0,4})(?:-([1-9][0-9]{0,4}))?y(0|[1-9][0-9]{0,4})$/;

// The numbers row * columns + column of the cells inside, ascending; undefined if the runs name no cells of the grid.
export function insideOf({ columns, rows, inside }) {
  if (inside === undefined) return Array.from({ length: columns * rows }, (_, i) => i);
  const found = [];
  for (const run of inside) {
    const match = RUN.exec(run);
    if (match === null) return undefined;
    const [first, row] = [Number(match[1]), Number(match[3])];
    const last = match[2] === undefined ? first : Number(match[2]);
    if (first > last || last >= columns || row >= rows) return undefined;
    for (let column = first; column <= last; column++) found.push(row * columns + column);
  }
  return new Set(found).size === found.length ? found.sort((a, b) => a - b) : undefined;
}

// The place among the cells inside of the one that is nearest to a cell, the first of several.
export function nearestInside(number, { columns, inside: some }, inside) {
  if (some === undefined) return number;
  let [best, least] = [0, Infinity];
  inside.forEach((cell, place) => {
    const square = squareOf(number, cell, columns);
    if (square < least) [best, least] = [place, square];
  });
  return best;
}

function squareOf(one, other, columns) {
  const [up, across] = [Math.floor(one / columns) - Math.floor(other / columns), (one % columns) - (other % columns)];
  return up * up + across * across;
}

// One round of noise on cells that are weighed: a mass for each cell, and weights that fall by `slope` over a cell side.
export class Weighing {
  #cuts;

  constructor({ columns }, inside, { slope, masses }) {
    const whole = masses.map(BigInt);
    const share = WORD - ANYWHERE * BigInt(inside.length);
    const known = new Map();
    const fall = (square) => {
      if (!known.has(square)) known.set(square, weight(slope * Math.sqrt(square), BITS));
      return known.get(square);
    };
    this.#cuts = inside.map((cell) => {
      let total = 0n;
      const running = inside.map((other, j) => (total += fall(squareOf(cell, other, columns)) * whole[j]));
      return running.slice(0, -1).map((each, j) => (each * share) / total + ANYWHERE * BigInt(j + 1));
    });
  }

  get digest() {
    return digest(this.#cuts);
  }

  one(cell, draws) {
    return notBelow(this.#cuts[cell], draws.longs(1)[0]);
  }

  // The chance of each cell, by the true one.
  get chances() {
    return this.#cuts.map((row) => Float64Array.from([...row, WORD], (end, j) => Number(end - (j ? row[j - 1] : 0n)) / 2 ** 64));
  }
}

// What a cell side of distance costs in one round that weighs: its slope, and how the sums of weights differ.
export function costOf({ columns }, inside, { slope, masses }) {
  const sums = inside.map((cell) =>
    Math.log(inside.reduce((sum, other, j) => sum + (Math.exp(-slope * Math.sqrt(squareOf(cell, other, columns))) * masses[j]) / UNIT, 0)),
  );
  return slope + steepest(columns, inside, (i, j) => Math.abs(sums[i] - sums[j]));
}

// The same in one report of two rounds, by going through all pairs of cells and all reports.
export function costOfBoth({ columns }, inside, first, second) {
  const both = first.map((row) => {
    const found = new Float64Array(row.length);
    row.forEach((chance, memo) => second[memo].forEach((each, j) => (found[j] += chance * each)));
    return found.map(Math.log);
  });
  return steepest(columns, inside, (i, j) => {
    let most = -Infinity;
    for (let report = 0; report < both.length; report++) most = Math.max(most, both[i][report] - both[j][report]);
    return most;
  });
}

// The largest difference of two cells, by their distance.
function steepest(columns, inside, difference) {
  let most = 0;
  for (let i = 0; i < inside.length; i++)
    for (let j = 0; j < inside.length; j++)
      if (i !== j) most = Math.max(most, difference(i, j) / Math.sqrt(squareOf(inside[i], inside[j], columns)));
  return most;
}
