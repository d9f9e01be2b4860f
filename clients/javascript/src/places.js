// Places on a grid (docs/device-protocol.md, "Places"): the displacement law, its table, and where a position is.
//
// The same basic operations in the same order give the same integers as in every other library.

import { below, digest, notBelow } from "./tables.js";

export const WORD = 1n << 64n;
export const ANYWHERE = 1n << 24n; // of 2^64: the chance of each cell to be reported whatever the truth is
const BITS = 62;
const INVERSE_LN2 = 1.4426950408889634;
const [LN2_HIGH, LN2_LOW] = [0.6931471803691238, 1.9082149292705877e-10];
const COEFFICIENTS = [1];
for (let i = 1; i < 18; i++) COEFFICIENTS.push(COEFFICIENTS[i - 1] / -i);

export const [LEAST_RATE, MOST_RATE] = [0.05, 20];

// Two to the power of a whole number, by steps that are exact.
const powers = new Map([[0, 1]]);
function power(n) {
  if (!powers.has(n)) powers.set(n, n > 0 ? power(n - 1) * 2 : power(n + 1) / 2);
  return powers.get(n);
}

// floor(e^-x 2^bits).
export function weight(x, bits) {
  const n = Math.floor(x * INVERSE_LN2);
  const rest = x - n * LN2_HIGH - n * LN2_LOW;
  let total = COEFFICIENTS[17];
  for (let i = 16; i >= 0; i--) total = total * rest + COEFFICIENTS[i];
  return BigInt(Math.floor(total * power(bits - n)));
}

// The quadrant of the law with columns and rows that are folded at the ends of the grid: [row][column].
function folded(columns, rows, rate) {
  const bound = 1 + (2 * 1.4142135623730951) / rate;
  const bits = BITS - Math.floor(bound * bound + 1).toString(2).length;
  const reach = Math.ceil(bits / INVERSE_LN2 / rate) + 1;
  const quadrant = Array.from({ length: rows }, () => new Array(columns).fill(0n));
  for (let up = 0; up <= reach; up++) {
    const row = quadrant[Math.min(up, rows - 1)];
    for (let across = 0; across <= reach; across++)
      row[Math.min(across, columns - 1)] += weight(rate * Math.sqrt(up * up + across * across), bits);
  }
  return quadrant;
}

// One round of noise on cells.
export class Displacement {
  #columns;
  #rows;
  #cuts;

  constructor(columns, rows, rate) {
    [this.#columns, this.#rows] = [columns, rows];
    const quadrant = folded(columns, rows, rate);
    const flat = [];
    for (let up = 1 - rows; up < rows; up++)
      for (let across = 1 - columns; across < columns; across++) flat.push(quadrant[Math.abs(up)][Math.abs(across)]);
    const total = flat.reduce((a, b) => a + b, 0n);
    const share = WORD - ANYWHERE * BigInt(columns * rows);
    let running = 0n;
    this.#cuts = flat.map((each) => ((running += each) * share) / total);
  }

  get digest() {
    return digest([this.#cuts]);
  }

  one(cell, draws) {
    const [columns, rows] = [this.#columns, this.#rows];
    const [word, other] = draws.longs(2);
    const drawn = notBelow(this.#cuts, word);
    return drawn === this.#cuts.length ? below(columns * rows, other) : this.#moved(cell, drawn);
  }

  // The chance of each cell, by the true one.
  get chances() {
    const size = this.#columns * this.#rows;
    return Array.from({ length: size }, (_, cell) => {
      const row = new Float64Array(size).fill(Number(ANYWHERE) / 2 ** 64);
      this.#cuts.forEach((end, i) => (row[this.#moved(cell, i)] += Number(end - (i ? this.#cuts[i - 1] : 0n)) / 2 ** 64));
      return row;
    });
  }

  #moved(cell, displacement) {
    const [columns, rows] = [this.#columns, this.#rows];
    const [up, across] = [Math.floor(displacement / (2 * columns - 1)), displacement % (2 * columns - 1)];
    const row = clamped(Math.floor(cell / columns) + up - (rows - 1), rows);
    return row * columns + clamped((cell % columns) + across - (columns - 1), columns);
  }
}

const clamped = (place, size) => Math.min(Math.max(place, 0), size - 1);

// The cell of a position in metres: the last one, until the position is more than half a cell outside of it; otherwise
// the one that it is in, or the nearest. Cells are numbers row * columns + column.
export function settled({ origin, cell, columns, rows }, { x, y }, last) {
  const [across, up] = [(x - origin[0]) / cell, (y - origin[1]) / cell];
  if (last !== undefined) {
    const [row, column] = [Math.floor(last / columns), last % columns];
    if (Math.abs(across - column - 0.5) <= 1 && Math.abs(up - row - 0.5) <= 1) return last;
  }
  return clamped(Math.floor(up), rows) * columns + clamped(Math.floor(across), columns);
}

// The plane that latitude and longitude are projected to: around `at`, or a UTM zone; undefined for other systems.
export function planeOf({ crs, at }) {
  if (at) return { latitude: at[0], longitude: at[1], scale: 1, east: 0, north: 0 };
  const zone = /^EPSG:32([67])(0[1-9]|[1-5][0-9]|60)$/.exec(crs);
  if (!zone) return undefined;
  return { latitude: 0, longitude: 6 * zone[2] - 183, scale: 0.9996, east: 5e5, north: zone[1] === "7" ? 1e7 : 0 };
}

const FLATTENING = 1 / 298.257223563;
const N = FLATTENING / (2 - FLATTENING);
const MERIDIAN = (6378137 / (1 + N)) * (1 + N ** 2 / 4 + N ** 4 / 64);
const E = Math.sqrt(FLATTENING * (2 - FLATTENING));
const ALPHA = [
  N / 2 - (2 * N ** 2) / 3 + (5 * N ** 3) / 16 + (41 * N ** 4) / 180,
  (13 * N ** 2) / 48 - (3 * N ** 3) / 5 + (557 * N ** 4) / 1440,
  (61 * N ** 3) / 240 - (103 * N ** 4) / 140,
  (49561 * N ** 4) / 161280,
];

const radians = (degrees) => (degrees * Math.PI) / 180;
const tangent = (latitude) => {
  const sine = Math.sin(radians(latitude));
  return Math.sinh(Math.atanh(sine) - E * Math.atanh(E * sine));
};

// Metres east and north, by the transverse Mercator projection of WGS 84.
export function metres({ latitude: from, longitude: meridian, scale, east, north }, { latitude, longitude }) {
  const away = radians(((((longitude - meridian + 540) % 360) + 360) % 360) - 180);
  const t = tangent(latitude);
  const [xi, eta] = [Math.atan2(t, Math.cos(away)), Math.atanh(Math.sin(away) / Math.sqrt(1 + t * t))];
  let [up, across] = [xi, eta];
  let start = Math.atan(tangent(from));
  const origin = start;
  ALPHA.forEach((alpha, i) => {
    const j = 2 * (i + 1);
    up += alpha * Math.sin(j * xi) * Math.cosh(j * eta);
    across += alpha * Math.cos(j * xi) * Math.sinh(j * eta);
    start += alpha * Math.sin(j * origin);
  });
  return { x: east + scale * MERIDIAN * across, y: north + scale * MERIDIAN * (up - start) };
}
