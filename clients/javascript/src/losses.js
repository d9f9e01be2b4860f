// What terms reveal, computed from the probabilities that their tables follow from (docs/device-protocol.md, "Losses").
//
// Every figure is exact or too large, never too small, up to the 2^-64 to which tables are exact.

import { costOf, costOfBoth } from "./areas.js";
import { encodingOf } from "./encodings.js";
import { refuse } from "./errors.js";
import { byDistance } from "./tables.js";

const ROUNDING = 2 ** -62; // what two cuts may add to or take from a probability
const KEPT = { p: 1, q: 0 }; // a second round that changes nothing: the memo itself is sent

// What a question about places tells is counted for two places so far apart, in metres: any two on the map would be told
// apart, and nearness is what its noise protects.
const NEAR = 500;
const MOST_CELLS = 400; // of which a whole channel of two rounds is gone through

// { report, life }: of one report, and of all memos that a device may ever have; `life` is null where reports add up.
// `withinBudgets` says whether all of it is what the declared budgets allow.
export function lossesOf(terms) {
  const { questions } = terms;
  const one = questions.map((question) => lossOf(question, 1));
  const ever = questions.map((question) => lossOf(question, Infinity));
  const over = terms.solution === "spl" ? (all) => all.reduce((a, b) => a + b, 0) : (all) => Math.max(...all);
  const report = over(one.map(({ whole }) => whole));
  const lives = questions.map((question, i) => lossOfValues(question, ever[i], memosOf(question, terms.memoCap)));
  const life = terms.longitudinal ? over(lives) : null;
  return {
    report,
    life,
    get withinBudgets() {
      return withinBudgets(terms, one, ever, over);
    },
  };
}

function withinBudgets(terms, one, ever, over) {
  const { eps, epsInf, eps1, questions, guarantee } = terms;
  if (!questions.every(placeFits)) return false;
  const others = questions.map(({ grid }) => !grid);
  if (!others.includes(true)) return true;
  const fits = (all, budget) => {
    const losses = all.filter((_, i) => others[i]);
    const units = losses.map(({ unit }) => unit);
    if (guarantee === "attribute") return Math.max(...attributeLosses(questions, losses)) <= slightlyMore(budget);
    const most = guarantee === "published" ? Math.log1p(questions.length * Math.expm1(budget)) : budget;
    return over(units) <= slightlyMore(most);
  };
  if (eps !== undefined) return fits(one, eps);
  return fits(ever, epsInf) && fits(one, eps1 ?? epsInf);
}

// Figures are computed in double precision.
const slightlyMore = (budget) => budget * (1 + 1e-9) + 1e-12;

// How many memos of a question a device can ever have.
function memosOf({ k, encoding }, cap) {
  const states =
    encoding.kind === "hashed"
      ? Math.min(encoding.g, k)
      : encoding.kind === "buckets"
        ? Math.min(encoding.d + 1, k)
        : k;
  return Math.min(states, cap ?? Infinity);
}

// After t linked answers from one memo: `whole` between any two values, `unit` between neighbours of an ordered domain
// (otherwise the same), and what the figures of fakes need.
function lossOf(question, t) {
  const { first, second, grid, geo, geoInf } = question;
  if (grid) {
    const rate = declaredRate(grid, t === 1 ? (geo ?? geoInf) : (geoInf ?? geo)); // which `placeFits` verifies
    return { whole: (rate * NEAR) / grid.cell, unit: rate };
  }
  if (first.ends) return matrixLoss(first, t === 1 ? second : null);
  const found = isBits(question) ? bitLoss(question, t) : symbolLoss(question, t);
  return { ...found, unit: found.whole };
}

const declaredRate = (grid, { level, radius }) => (level * grid.cell) / radius;

// Budgets of places are by distance: what a cell side costs must be what the declared level and radius say. A second
// round may cost more than one report, because the memo hides some of it: then all of the channel is gone through.
function placeFits(question) {
  const { grid, inside, first, second, geo, geoInf } = question;
  if (!grid) return true;
  const allowed = (reach) => slightlyMore(declaredRate(grid, reach));
  const cost = (round) => (round.masses ? costOf(grid, inside, round) : round.rate);
  if (cost(first) > allowed(geoInf ?? geo)) return false;
  if (!second || (!second.masses && second.rate <= allowed(geo))) return true;
  if (inside.length > MOST_CELLS) return false;
  return costOfBoth(grid, inside, ...encodingOf(question).rounds.map(({ chances }) => chances)) <= allowed(geo);
}

const isBits = ({ encoding }) => encoding.kind === "unary" || encoding.kind === "buckets";

const then = (one, other) => ({
  p: one.p * (other.p - other.q) + other.q,
  q: one.q * (other.p - other.q) + other.q,
});

function symbolLoss({ k, encoding, first, second }, t) {
  const symbols = encoding.g ?? k;
  const drawn = second ? normalised(second, symbols) : KEPT;
  const memo = { p: 1, q: (drawn.q / drawn.p) ** t };
  const value = then(normalised(first, symbols), memo);
  return { whole: Math.log(value.p / value.q), value, memo };
}

// A table draws shares of the sum of what it is given.
function normalised({ p, q }, symbols) {
  const total = p + (symbols - 1) * q;
  return { p: p / total, q: q / total };
}

function bitLoss({ encoding, first, second }, t) {
  const drawn = second ?? KEPT;
  const ones = then(first, { p: 1, q: (drawn.q / drawn.p) ** t });
  const zeros = then(first, { p: ((1 - drawn.p) / (1 - drawn.q)) ** t, q: 1 });
  const [up, down] = [ones.p / ones.q, zeros.p / zeros.q];
  const single = encoding.d === 1;
  return {
    whole: single ? Math.max(Math.log(up), -Math.log(down)) : Math.log(up / down),
    pair: Math.log(up / down),
    up,
    down,
  };
}

// Of an ordered domain: neighbours' losses add up to a bound for any two values, which geometric noise attains.
function matrixLoss(first, second) {
  const k = first.ends.length;
  const matrix = second ? product(rowsOf(first), rowsOf(second)) : rowsOf(first);
  let [up, down, unit] = [0, 0, 0];
  for (let i = 0; i + 1 < k; i++) {
    const [rising, falling] = [steepest(matrix[i + 1], matrix[i]), steepest(matrix[i], matrix[i + 1])];
    up += rising;
    down += falling;
    unit = Math.max(unit, rising, falling);
  }
  return { whole: Math.max(up, down), unit };
}

function rowsOf({ ends, inside }) {
  return ends.map((_, i) => {
    const row = Float64Array.from(byDistance(i, ends, inside));
    const total = row.reduce((a, b) => a + b, 0);
    return row.map((each) => each / total);
  });
}

function product(one, other) {
  const k = one.length;
  return one.map((row) => {
    const out = new Float64Array(k);
    for (let j = 0; j < k; j++) {
      const [share, from] = [row[j], other[j]];
      if (share) for (let y = 0; y < k; y++) out[y] += share * from[y];
    }
    return out;
  });
}

// The largest log-ratio of two rows, apart from what never occurs: tables are exact to `ROUNDING`.
function steepest(row, other) {
  let largest = 0;
  for (let y = 0; y < row.length; y++) {
    if (row[y] > ROUNDING) largest = Math.max(largest, Math.log((row[y] - ROUNDING) / (other[y] + ROUNDING)));
  }
  return largest;
}

// All memos of `count` cells, between histories that are the same up to renaming the cells (PROTOCOLS 3 and 5).
function lossOfValues({ k, encoding, first }, ever, count) {
  if (first.ends) {
    const places = Array.from({ length: 2 * k }, (_, i) => i >> 1);
    const sum = (some) => some.reduce((a, b) => a + b, 0);
    return ever.unit * (sum(places.slice(-count)) - sum(places.slice(0, count)));
  }
  if (encoding.kind === "buckets" && encoding.d < k && count > encoding.d) return encoding.d * ever.pair;
  return count * ever.whole;
}

// For each attribute the loss where only it differs, if the other ones are fake (PROTOCOLS 4).
function attributeLosses(questions, losses) {
  const ends = questions.map((question, i) => fakeExtremes(question, losses[i]));
  return questions.map((_, i) => {
    const rest = ends.reduce((sum, { low }, j) => (j === i ? sum : sum + low), 0);
    const { high } = ends[i];
    return Math.log((high + rest) / (high * Math.exp(-losses[i].whole) + rest));
  });
}

// The largest and the smallest ratio of an answer's chance if it is true to that if it is fake.
function fakeExtremes(question, loss) {
  const { fakes, fakeShares } = question;
  if (!isBits(question)) {
    const flip = fakes === "noisy" ? loss.value : loss.memo;
    const chance = (share) => share * (flip.p - flip.q) + flip.q;
    const total = fakeShares.reduce((a, b) => a + b, 0);
    const [rare, common] = [Math.min(...fakeShares) / total, Math.max(...fakeShares) / total];
    return { high: loss.value.p / chance(rare), low: loss.value.q / chance(common) };
  }
  const { up, down } = loss;
  if (fakes === "zero") return { high: up, low: down };
  const rare = Math.min(...fakeShares) / fakeShares.reduce((a, b) => a + b, 0);
  return { high: 1 / (rare + ((1 - rare) * down) / up), low: 1 / (rare + ((1 - rare) * up) / down) };
}

export function requireWithinBudgets(losses) {
  if (!losses.withinBudgets) refuse("losses", "these terms reveal more than the budgets that they declare");
}
