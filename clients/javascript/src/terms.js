// The terms of a survey (docs/device-protocol.md, "Terms"), read from whoever answers and believed in nothing.

import { sha256 } from "@noble/hashes/sha2.js";
import { hex } from "./bytes.js";
import { calendarOf } from "./calendar.js";
import { encodingOf, freshDigits, largestDomain } from "./encodings.js";
import { DeviceError, refuse } from "./errors.js";
import { insideOf } from "./areas.js";
import { LEAST_RATE, MOST_RATE } from "./places.js";
import { lossesOf, requireWithinBudgets } from "./losses.js";
import { Table, uniform } from "./tables.js";

export const MAX_TERMS_BYTES = 8 << 20;
const MAX_VALUES = 1 << 16;
const MOST_VALUES = 1_000_000; // of answers with fresh hashes
const MOST_HASHES = 1 << 23;
const FRESH_PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61];
const MAX_ORDERED = 1024;
const MAX_ONE_IN = 10_000;
const MAX_CUTS = 1 << 22; // of all ordered attributes together: more would keep a device busy for minutes
const SECONDS = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 };
const RESOLVED = ["declared", "places", "questions", "sampled", "shares", "version"];
// A key that is not listed might change what an answer means: such terms are refused.
const DECLARED = [
  "attributes",
  "calibration",
  "clock",
  "crosses",
  "devices",
  "eps",
  "eps_1",
  "eps_inf",
  "grace",
  "guarantee",
  "horizon",
  "id",
  "memo_cap",
  "minimum",
  "one_in",
  "period",
  "presence_epsilon",
  "solution",
  "start",
  "time_zone",
];
const ZONE = ["name", "offsets", "until"];
const MAX_OFFSETS = 500;
const ATTRIBUTE = ["geo", "geo_inf", "grid", "mechanism", "name", "parameter", "prior", "range", "share", "values"];
const CROSS = ["mechanism", "of", "parameter", "share"];
const GRID = ["at", "cell", "columns", "crs", "inside", "origin", "rows"];
const MAX_WEIGHED = 400; // cells
const MAX_QUESTIONS = 64; // of attributes, and of crosses
const QUESTION = ["encoding", "fakes", "first", "mechanism", "second", "tables"];

// Terms from their bytes: checked, their losses computed, every table made and compared with its digest.
export function verifyTerms(bytes) {
  const terms = readTerms(bytes);
  requireWithinBudgets(terms.losses);
  try {
    checkTables(terms);
  } catch (error) {
    if (error instanceof DeviceError) throw error;
    refuse("terms", `not the terms of a survey: ${error.message}`);
  }
  return terms;
}

// The same without making all tables: for terms that were verified before.
export function readTerms(bytes) {
  if (bytes.length > MAX_TERMS_BYTES) refuse("terms", `terms of more than ${MAX_TERMS_BYTES} bytes`);
  let resolved;
  try {
    resolved = JSON.parse(textOf(bytes));
  } catch {
    refuse("terms", "the terms are not JSON");
  }
  const fingerprint = hex(sha256(bytes)).slice(0, 32);
  try {
    const terms = { ...understood(resolved), fingerprint, digests: { sampled: resolved.sampled, places: resolved.places } };
    return { ...terms, losses: lossesOf(terms) };
  } catch (error) {
    if (error instanceof DeviceError) throw error;
    return refuse("terms", `not the terms of a survey: ${error.message}`);
  }
}

// With a mark of the byte order, if there is one: the text must give the same bytes again.
export const textOf = (bytes) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);

function understood(resolved) {
  keys(resolved, RESOLVED, "the terms");
  need(resolved.version === 1, "another version of terms");
  const { declared } = resolved;
  keys(declared, DECLARED, "declared");
  need(/^[a-z0-9][a-z0-9._-]{0,127}$/.test(text(declared.id)), "id");
  const solution = oneOf(declared.solution ?? "smp", ["smp", "spl", "rs+fd", "rs+rfd"], "solution");
  const attributes = list(declared.attributes, MAX_QUESTIONS, "attributes");
  const hides = solution.startsWith("rs");
  need(!hides || attributes.length > 1, "solution");
  const crosses = declared.crosses === undefined ? [] : list(declared.crosses, MAX_QUESTIONS, "crosses");
  need(crosses.length === 0 || solution === "smp", "crosses");
  const count = attributes.length + crosses.length;
  need(list(resolved.questions, 2 * MAX_QUESTIONS, "questions").length === count, "questions");
  const questions = attributes.map((attribute, i) => question(attribute, resolved.questions[i], solution));
  for (const cross of crosses) questions.push(crossed(cross, questions, resolved.questions[questions.length]));
  need(new Set(questions.map(({ name }) => name)).size === questions.length, "attributes");
  const cuts = questions.reduce((sum, { k, first }) => sum + (first.ends ? k * k : 0), 0);
  need(cuts <= MAX_CUTS, "more ordered values than a device computes tables for");
  const terms = {
    id: declared.id,
    calendar: calendar(declared),
    grace: seconds(declared.grace ?? "0s"),
    horizon: whole(declared.horizon ?? 1, 1, 65535, "horizon"),
    memoCap: declared.memo_cap === undefined ? undefined : whole(declared.memo_cap, 1, MAX_VALUES, "memo_cap"),
    oneIn: whole(declared.one_in ?? 1, 1, MAX_ONE_IN, "one_in"),
    solution,
    guarantee: oneOf(
      declared.guarantee ?? "tuple",
      hides ? ["tuple", "attribute", "published"] : ["tuple"],
      "guarantee",
    ),
    sampling: solution !== "spl" && attributes.length > 1,
    discloses: solution === "smp" && attributes.length > 1,
    sampled: drawn([...attributes, ...crosses], resolved.shares, solution),
    questions,
    ...budgets(declared, questions),
  };
  need(terms.oneIn === 1 || !terms.longitudinal, "one_in");
  need(!terms.longitudinal || questions.every(({ encoding }) => encoding.kind !== "fresh"), "a fresh hash with memos");
  return terms;
}

function budgets({ eps, eps_inf: epsInf, eps_1: eps1 }, questions) {
  for (const budget of [eps, epsInf, eps1]) need(budget === undefined || budget > 0, "a budget");
  const places = questions.filter(({ grid }) => grid);
  const longitudinal = places.length === questions.length ? places[0].geoInf !== undefined : eps === undefined;
  const given = places.length === questions.length || (longitudinal ? epsInf !== undefined : epsInf === undefined);
  need(given && (longitudinal || eps1 === undefined), "budgets");
  for (const { geoInf } of places) need((geoInf !== undefined) === longitudinal, "budgets");
  const rounds = longitudinal && (eps1 !== undefined || places.some(({ geo }) => geo !== undefined));
  for (const { second } of questions) need((second !== null) === rounds, "rounds");
  return { eps, epsInf, eps1, longitudinal };
}

// By which a device draws its question: evenly, or by the shares. Those that are named are as declared.
function drawn(parts, shares, solution) {
  if (parts.every(({ share }) => share === undefined)) {
    need(shares === undefined, "shares");
    return uniform(parts.length);
  }
  need(solution === "smp" && list(shares, 2 * MAX_QUESTIONS, "shares").length === parts.length, "shares");
  need(
    shares.every((share, i) => share >= 1e-6 && share < 1 && share === (parts[i].share ?? share)),
    "shares",
  );
  need(Math.abs(shares.reduce((a, b) => a + b, 0) - 1) < 1e-9, "shares");
  return new Table(shares);
}

function question(attribute, asked, solution) {
  keys(attribute, ATTRIBUTE, "attribute");
  need(/^[a-z][a-z0-9_]{0,62}$/.test(text(attribute.name)), "name");
  const place = placeTerms(attribute, asked, solution);
  return questionOf(attribute.name, place?.values ?? valuesOf(attribute), attribute.prior, asked, solution, place);
}

// A question about pairs: their values are those of two attributes, the first of which changes last.
function crossed(cross, questions, asked) {
  keys(cross, CROSS, "cross");
  need(list(cross.of, 2, "of").length === 2 && cross.of[0] !== cross.of[1], "of");
  const axes = cross.of.map((name) => questions.find((one) => one.name === name && one.axes === undefined));
  need(axes.every((axis) => axis !== undefined) && axes[0].k * axes[1].k <= MAX_VALUES, "crosses");
  const [first, second] = axes;
  const values = first.values.flatMap((one) => second.values.map((other) => `${one}*${other}`));
  return { ...questionOf(cross.of.join("*"), values, undefined, asked, "smp"), axes: cross.of };
}

function questionOf(name, values, prior, asked, solution, place) {
  keys(asked, QUESTION, "question");
  const k = values.length;
  need(k >= 2 && new Set(values).size === k, "values");
  const encoding = encodingTerms(asked.encoding, k, place);
  need(encoding.kind === "fresh" || k <= MAX_VALUES, "values");
  const symbols = encoding.g ?? k;
  const ordered = encoding.kind === "direct" && asked.first?.ends !== undefined;
  const bits = encoding.kind === "unary" || encoding.kind === "buckets";
  const round = (given) => (encoding.kind === "plane" ? moved(given, k, place.asked) : ordered ? matrix(given, k) : flip(given, bits, symbols));
  const fakes = oneOf(asked.fakes, solution.startsWith("rs") ? ["zero", "bare", "noisy"] : [null], "fakes");
  if (fakes !== null) {
    need(!ordered && ["direct", "unary"].includes(encoding.kind) && fakes !== (bits ? "bare" : "zero"), "fakes");
    need(solution === "rs+fd" || fakes !== "zero", "fakes");
  }
  return {
    name,
    mechanism: text(asked.mechanism),
    values,
    k,
    encoding,
    fakes,
    fakeShares: fakes === null || fakes === "zero" ? undefined : shares(prior, values, solution),
    first: round(asked.first),
    second: asked.second === null ? null : round(asked.second),
    tables: asked.tables,
    ...(encoding.kind === "plane" ? place.asked : {}),
  };
}

// The values as listed; those of a range with more than MAX_VALUES are not, and are named by its numbers.
function valuesOf({ values, range }) {
  if (values !== undefined || range === undefined) return list(values, MOST_VALUES, "values").map(text);
  const limit = Number.MAX_SAFE_INTEGER;
  const first = whole(range.first ?? 0, -limit, limit, "range");
  const [last, step] = [whole(range.last, first, limit, "range"), whole(range.step ?? 1, 1, limit, "range")];
  const count = Math.floor((last - first) / step) + 1;
  need(count > MAX_VALUES && count <= MOST_VALUES, "range");
  return Array.from({ length: count }, (_, i) => {
    const begin = first + i * step;
    return step === 1 ? `${begin}` : `${begin}-${Math.min(begin + step - 1, last)}`;
  });
}

// A grid: the names of its cells, and, where places are protected by distance, what is needed to answer.
function placeTerms({ grid, geo, geo_inf: geoInf, values, range }, { encoding }, solution) {
  if (grid === undefined) {
    need(geo === undefined && geoInf === undefined && encoding.kind !== "plane", "grid");
    return undefined;
  }
  keys(grid, GRID, "grid");
  need(values === undefined && range === undefined, "values");
  const [columns, rows] = [whole(grid.columns, 2, MAX_VALUES, "columns"), whole(grid.rows, 2, MAX_VALUES, "rows")];
  need(columns * rows <= MAX_VALUES && positive(grid.cell), "grid");
  need(grid.inside === undefined || list(grid.inside, MAX_VALUES, "inside").every((run) => typeof run === "string"), "inside");
  const inside = insideOf(grid);
  need(inside !== undefined, "inside");
  const pair = (given) => Array.isArray(given) && given.length === 2 && given.every(Number.isFinite);
  need((grid.at === undefined || pair(grid.at)) && (grid.origin === undefined || pair(grid.origin)), "grid");
  const names = inside.map((i) => `x${i % columns}y${Math.floor(i / columns)}`);
  const reaches = [geo, geoInf].filter((reach) => reach !== undefined);
  for (const reach of reaches) need(positive(reach.level) && positive(reach.radius), "geo");
  need(reaches.length > 0 === (encoding.kind === "plane"), "geo");
  need(reaches.length === 0 || solution === "smp", "solution");
  const full = { origin: [0, 0], ...grid };
  return { values: names, asked: { grid: full, inside, geo, geoInf } };
}

const positive = (value) => typeof value === "number" && Number.isFinite(value) && value > 0;

// A round that moves a cell: over its whole grid, by what one cell side of distance costs, or inside an area, by what
// weights fall by over a cell side, and by the mass of each cell.
function moved({ rate, slope, masses }, k, { grid }) {
  if (masses !== undefined) {
    need(k <= MAX_WEIGHED && positive(slope) && slope >= LEAST_RATE / 2 && slope <= MOST_RATE, "slope");
    need(list(masses, k, "masses").length === k && masses.some((mass) => mass > 0), "masses");
    for (const mass of masses) whole(mass, 0, 2 ** 40, "masses");
    return { slope, masses };
  }
  need(grid.inside === undefined, "inside");
  need(positive(rate) && rate >= LEAST_RATE && rate <= MOST_RATE, "rate");
  return { rate };
}

function encodingTerms(encoding, k, place) {
  const { kind, g, d } = encoding;
  if (kind === "fresh") {
    need(FRESH_PRIMES.includes(g) && g ** freshDigits(k, g) <= MOST_HASHES, "hash");
    return { kind, g };
  }
  if (kind === "plane") {
    need(place !== undefined, "encoding");
    const { columns, rows } = place.asked.grid;
    need(encoding.columns === columns && encoding.rows === rows, "encoding");
    return { kind, columns, rows };
  }
  if (kind === "hashed") {
    need([2, 3, 5, 7, 11, 13].includes(g) && k <= largestDomain(g), "hash");
    return { kind, g };
  }
  return kind === "buckets"
    ? { kind, d: whole(d, 1, k, "buckets") }
    : { kind: oneOf(kind, ["direct", "unary"], "encoding") };
}

// The distribution of fake values: the prior, or all alike.
function shares(prior, values, solution) {
  if (solution === "rs+fd") return new Array(values.length).fill(1 / values.length);
  const given = values.map((value) => (Object.hasOwn(prior, value) ? prior[value] : 0));
  need(
    given.every((share) => share >= 1e-6 && share < 1),
    "prior",
  );
  need(Math.abs(given.reduce((a, b) => a + b, 0) - 1) < 1e-9, "prior");
  return given;
}

// A round that supports its input with p and anything else with q.
function flip({ p, q }, bits, symbols) {
  need(typeof p === "number" && typeof q === "number" && 0 < q && q < p && p < 1, "probabilities");
  need(bits || Math.abs(p + (symbols - 1) * q - 1) < 1e-9, "probabilities");
  return { p, q };
}

// A round over an ordered domain, by distance.
function matrix({ ends, inside }, k) {
  need(k <= MAX_ORDERED, "values");
  need(list(ends, k, "ends").length === k && Array.isArray(inside) && inside.length === (k > 2 ? k - 1 : 0), "ends");
  const good = (each) => typeof each === "number" && 0 <= each && each < 1;
  need([...ends, ...inside].every(good) && ends[0] > 0 && (k === 2 || inside[0] > 0), "probabilities");
  return { ends, inside };
}

// Every table, made here, must be the one that whoever made the terms has.
function checkTables(terms) {
  for (const asked of terms.questions) {
    const made = encodingOf(asked).digests;
    for (const part of ["traits", "first", "second"]) {
      const given = asked.tables[part];
      need(Array.isArray(given) && given.length === made[part].length, "tables");
      need(
        made[part].every((digest, i) => digest === given[i]),
        `tables of ${part}`,
      );
    }
  }
  const { digests, sampling, sampled, oneIn } = terms;
  need(digests.sampled === (sampling ? sampled.digest : null), "sampled");
  need(digests.places === (oneIn > 1 ? uniform(oneIn).digest : undefined), "places");
}

function need(condition, what) {
  if (!condition) refuse("terms", `not the terms of a survey: ${what}`);
}

function keys(record, known, what) {
  need(typeof record === "object" && record !== null && !Array.isArray(record), what);
  for (const key of Object.keys(record)) need(known.includes(key), `${what} has a key that this device does not know`);
}

function text(value) {
  need(typeof value === "string", "text");
  return value;
}

function list(value, most, what) {
  need(Array.isArray(value) && value.length > 0 && value.length <= most, what);
  return value;
}

function whole(value, least, most, what) {
  need(Number.isInteger(value) && least <= value && value <= most, what);
  return value;
}

function oneOf(value, known, what) {
  need(known.includes(value), what);
  return value;
}

// When periods begin. What a zone's rules are is in the terms: no device has to know them.
function calendar(declared) {
  const [start, period] = [moment(declared.start), seconds(declared.period)];
  need(period > 0, "period");
  if (declared.time_zone === undefined) return calendarOf(start, period);
  keys(declared.time_zone, ZONE, "time_zone");
  const { name, offsets, until } = declared.time_zone;
  need(text(name).length > 0, "time_zone");
  const changes = list(offsets, MAX_OFFSETS, "time_zone").map(([since, offset, ...more]) => {
    need(more.length === 0, "time_zone");
    return { since: whole(since, -(2 ** 36), 2 ** 36, "time_zone"), offset: whole(offset, -86399, 86399, "time_zone") };
  });
  const moments = [...changes.map(({ since }) => since), whole(until, -(2 ** 36), 2 ** 36, "time_zone")];
  need(
    moments.every((at, i) => i === 0 || at > moments[i - 1]),
    "time_zone",
  );
  const made = calendarOf(start, period, changes, until);
  need(made.begin(0) === start && made.last > 0, "time_zone");
  return made;
}

function moment(value) {
  need(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/.test(text(value)), "start");
  const found = Date.parse(value);
  need(Number.isFinite(found), "start");
  return found;
}

function seconds(value) {
  const found = /^(\d{1,9})([smhdw])$/.exec(text(value));
  need(found !== null, "a duration");
  return Number(found[1]) * SECONDS[found[2]];
}
