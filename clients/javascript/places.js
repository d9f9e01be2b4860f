// Places on a grid (docs/device-protocol.md, "Plane"): the law of noise, and which cell a position is in. It is loaded
// when terms have a grid.

const { abs, atan, atan2, atanh, ceil, clz32, cos, cosh, floor, max, min, sin, sinh, sqrt, PI } = Math;
const WORD = 1n << 64n;
const ANYWHERE = 1n << 24n; // of 2^64: the chance of each cell to be reported whatever the truth is
const KEPT = 0.75; // cell sides from the middle of its last cell within which a device stays in it
const INVERSE_LN2 = 1.4426950408889634;
const COEFFICIENTS = [1];
for (let i = 1; i <= 17; i++) COEFFICIENTS.push(COEFFICIENTS.at(-1) / -i);
const within = (number, last) => min(max(number, 0), last);

export function onGrids({ below, bigSum, digest, distance, notBelow, own, range }) {
  // The cell of a position: the last one while the device is near its middle; null if it is no position.
  function cellOf(grid, given, last) {
    const { columns, rows, cell, origin } = grid;
    const metres = metresOf(grid, given);
    if (!metres.every(Number.isFinite)) return null;
    const [across, up] = metres.map((each, i) => within((each - origin[i]) / cell, i ? rows : columns));
    const near = (at, middle) => abs(at - middle - 0.5) <= KEPT;
    if (last !== null && near(across, last % columns) && near(up, floor(last / columns))) return last;
    return within(floor(up), rows - 1) * columns + within(floor(across), columns - 1);
  }

  // How far apart, in cell sides, the cells of two positions can be that are this many metres apart.
  function sidesApart({ columns, rows, cell }, metres) {
    const beyond = (steps) => max(0, steps - 2 * KEPT);
    let most = 0;
    for (const i of range(columns))
      for (const j of range(rows))
        if (distance(beyond(i), beyond(j)) <= metres / cell) most = max(most, distance(i, j));
    return most;
  }

  // What a cell side may cost; in version 1 distances were those between the middles of cells.
  function rateOf({ grid, geos: [once, ever], version }) {
    const { level, radius } = ever ?? once;
    return version === 1 ? (level * grid.cell) / radius : level / sidesApart(grid, radius);
  }

  function metresOf({ at, crs }, given) {
    const number = (key) => {
      const text = own(given, key);
      return typeof text === "number" || (typeof text === "string" && text.trim()) ? Number(text) : NaN;
    };
    // Latitude and longitude of the point 0, 0, the scale, and what is added to x and y.
    const zone = /^EPSG:32([67])(0[1-9]|[1-5][0-9]|60)$/.exec(crs);
    const plane = at ? [...at, 1, 0, 0] : zone && [0, 6 * zone[2] - 183, 0.9996, 5e5, zone[1] === "7" ? 1e7 : 0];
    if (!plane || own(given, "latitude") === undefined) return [number("x"), number("y")];
    return mercator(plane, number("latitude"), number("longitude"));
  }

  function displacement({ columns, rows }, rate) {
    const law = folded(columns, rows, rate);
    const [across, up] = [columns, rows].map((size) => range(2 * size - 1, 1 - size).map(abs));
    const flat = up.flatMap((row) => across.map((column) => law[row][column]));
    const [total, share] = [bigSum(flat), WORD - ANYWHERE * BigInt(columns * rows)];
    let running = 0n;
    const cuts = flat.map((weight) => ((running += weight) * share) / total);
    return {
      digest: () => digest(1, cuts.length, () => cuts),
      async from(cell, draws) {
        const [word, other] = await draws.longs(2);
        const drawn = notBelow(cuts, word);
        if (drawn === cuts.length) return below(columns * rows, other);
        const row = floor(cell / columns) + floor(drawn / across.length) - (rows - 1);
        const column = (cell % columns) + (drawn % across.length) - (columns - 1);
        return within(row, rows - 1) * columns + within(column, columns - 1);
      },
    };
  }

  function folded(columns, rows, rate) {
    const bound = 1 + (2 * 1.4142135623730951) / rate;
    const bits = 30 + clz32(bound * bound + 1);
    const steps = range(ceil(bits / INVERSE_LN2 / rate) + 2);
    const law = range(rows).map(() => new Array(columns).fill(0n));
    for (const up of steps)
      for (const across of steps)
        law[min(up, rows - 1)][min(across, columns - 1)] += weightOf(rate * distance(up, across), bits);
    return law;
  }

  return { cellOf, sidesApart, rateOf, displacement };
}

// floor(e^-x 2^bits)
function weightOf(x, bits) {
  const n = floor(x * INVERSE_LN2);
  const rest = x - n * 0.6931471803691238 - n * 1.9082149292705877e-10;
  const total = COEFFICIENTS.reduceRight((before, coefficient) => before * rest + coefficient);
  return BigInt(floor(total * 2 ** (bits - n)));
}

const [MERIDIAN, ECCENTRICITY] = [6367449.145823415, 0.08181919084262149]; // of WGS 84
const ALPHA = [0.0008377318206303529, 7.608527714248998e-7, 1.1976380015605232e-9, 2.4433761945220637e-12];
const radians = (angle) => (angle * PI) / 180;

// The transverse Mercator projection of WGS 84, by Krüger's series to n^4; not a number at the poles.
function mercator([start, meridian, scale, east, north], latitude, longitude) {
  const away = radians(((((longitude - meridian + 540) % 360) + 360) % 360) - 180);
  const [t, begin] = [tangent(latitude), atan(tangent(start))];
  const [xi, eta] = [atan2(t, cos(away)), atanh(sin(away) / sqrt(1 + t * t))];
  let [up, across] = [xi - begin, eta];
  ALPHA.forEach((alpha, i) => {
    const j = 2 * (i + 1);
    up += alpha * (sin(j * xi) * cosh(j * eta) - sin(j * begin));
    across += alpha * cos(j * xi) * sinh(j * eta);
  });
  return Number.isFinite(t) ? [east + scale * MERIDIAN * across, north + scale * MERIDIAN * up] : [NaN, NaN];
}

function tangent(latitude) {
  const sine = sin(radians(latitude));
  return sinh(atanh(sine) - ECCENTRICITY * atanh(ECCENTRICITY * sine));
}
