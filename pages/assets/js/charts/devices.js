// Devices (or visitors) over time: new and returning ones of each period, or the different ones of longer windows.

import { isKnown } from "../state/quantities.js";
import { remembered } from "../state/remembered.js";
import { periodsOf } from "../state/series.js";
import { column } from "../state/tables.js";
import { capitalised, lengthName, periodName, readable, wall, whole, windowLabel } from "../state/words.js";
import { choice } from "../parts/dom.js";
import { sign } from "../parts/frame.js";
import { timeline } from "../parts/timeline.js";

const UNIT_NAMES = { day: "a day", week: "a week (from Monday)", month: "a month", year: "a year", ever: "ever so far" };

export function devicesView() {
  return {
    see: "time", name: "Over time",
    shown: (context) => periodsOf(context.survey).length > 0,
    hint: (context) => (lengthOf(context) === 1
      ? `Different ${context.words.many} of each ${periodName(context.survey.about)}.`
      : lengthOf(context) === "ever" ? `Different ${context.words.many} since the beginning, through each ${periodName(context.survey.about)}.`
      : UNIT_NAMES[lengthOf(context)] ? `Different ${context.words.many} of each ${lengthOf(context)}.`
      : `Different ${context.words.many} in every ${lengthName(context.survey.about, lengthOf(context))}, by the ${periodName(context.survey.about)} with which they end.`),
    controls: (context) => {
      const lengths = windowLengths(context.survey);
      if (lengths.length < 2) return [];
      const choices = lengths.map((length) => [length, UNIT_NAMES[length] ?? lengthName(context.survey.about, length)]);
      return [choice("length", "Different ones in", choices, lengthOf(context), (length) => context.set({ length }))];
    },
    key: (context) => {
      if (lengthOf(context) > 1 || lengthOf(context) === "ever") return [];
      const { rows } = devicesTable(context), signs = [];
      if (rows.some((row) => row[7] != null)) signs.push(sign("bar returning", "returning"), sign("bar new", "new"));
      if (rows.some((row) => row[4] != null && row[7] == null)) signs.push(sign("bar unsplit", "not split into new and returning"));
      if (rows.some((row) => isOpen(context, row))) signs.push(sign("bar hatched", "not final yet"));
      if (rows.some((row) => row[9] != null)) signs.push(sign("truth", "truth"));
      return signs;
    },
    table: devicesTable,
    draw: (box, table, context) => timeline(box, parts(table(), context), { label: `${capitalised(context.words.many)} over time; the table has all numbers`, format: whole }),
  };
}

function lengthOf(context) {
  return windowLengths(context.survey).find((length) => `${length}` === `${context.view.length}`) ?? 1;
}

// Whether a row of the table may still grow. All that there ever were grow with each period, and each is final.
function isOpen(context, row) {
  return row[3] === "provisional" || (row[3] === "so far" && lengthOf(context) !== "ever");
}

// The lengths of all windows that are published, in periods; where calendar units are counted, those instead.
export function windowLengths(survey) {
  return remembered(survey, "lengths", () => lengthsIn(survey));
}

function lengthsIn(survey) {
  const grows = [...survey.periods.values()].some((record) => record.windows.some(({ kind }) => / so far$|^ever$/.test(kind)));
  if (survey.about.units?.length) return [1, ...survey.about.units.filter((unit) => unit !== "ever" || grows)];
  const lengths = new Set([1]);
  for (const record of survey.periods.values()) {
    for (const cell of record.triangle) lengths.add(record.period - cell.first + 1);
    for (const window of record.windows) if (window.kind !== "cumulative") lengths.add(window.last - window.first + 1);
  }
  return [...lengths].sort((a, b) => a - b);
}

function devicesTable(context) {
  const { survey, words } = context, length = lengthOf(context);
  const shared = [column("first", null), column("last", null), column("begin", "from"), column("state", "state")];
  const counts = [column(words.many, words.many, whole), column("low", "low", whole), column("high", "high", whole)];
  if (length > 1) return { name: "devices", columns: [...shared, ...counts], rows: windowRows(survey, length) };
  if (length === "ever") return { name: "devices", columns: [...shared, ...counts], rows: unitRows(survey, length).map((row) => row.slice(0, 7)) }; // all are new
  const split = [column("new", "new", whole), column("returning", "returning", whole)];
  if (length !== 1) return { name: "devices", columns: [...shared, ...counts, ...split], rows: unitRows(survey, length) };
  const rows = periodsOf(survey).map((row) => [
    row.period, row.period, row.begin, row.suppressed ? "suppressed" : row.state, row.visitors.value, row.visitors.low, row.visitors.high,
    row.fresh.value, row.returning.value, row.truth]);
  return { name: "devices", columns: [...shared, ...counts, ...split, column("truth", "truth", whole)], rows };
}

function windowRows(survey, length) {
  const begins = new Map(periodsOf(survey).map((row) => [row.period, row]));
  const found = new Map();
  for (const record of survey.periods.values()) {
    for (const cell of record.triangle) if (record.period - cell.first + 1 === length) found.set(record.period, [cell.first, cell.visitors]);
    for (const window of record.windows) if (window.last - window.first + 1 === length) found.set(record.period, [window.first, window.visitors]);
  }
  return [...found].sort(([a], [b]) => a - b).map(([last, [first, visitors]]) => [
    first, last, begins.get(first)?.begin ?? "", visitors ? "final" : "suppressed", visitors?.value ?? null, visitors?.low ?? null, visitors?.high ?? null]);
}

// One row for each unit: as it is when it is over, or so far; of all who ever came, one for each period.
function unitRows(survey, unit) {
  const found = new Map(), windows = [...survey.periods.values()].flatMap((record) => record.windows).sort((a, b) => a.last - b.last);
  const since = Math.min(...windows.map((window) => window.first));
  const fits = unit === "ever" ? (window) => window.first === since : (window) => window.kind === unit || window.kind === `${unit} so far`;
  for (const window of windows.filter(fits)) found.set(unit === "ever" ? window.last : window.first, window);
  return [...found.values()].map(({ first, last, begin, visitors, new: fresh, returning, kind }) => [
    first, last, begin, visitors ? (kind === unit && unit !== "ever" ? "final" : "so far") : "suppressed", visitors?.value ?? null, visitors?.low ?? null, visitors?.high ?? null,
    fresh?.value ?? null, returning?.value ?? null]);
}

function parts(table, context) {
  const { survey, words } = context, noised = survey.about.presence === "noised";
  const rows = new Map(periodsOf(survey).map((row) => [row.period, row])), unit = UNIT_NAMES[lengthOf(context)];
  const points = (value) => table.rows.map((row) => {
    const at = rows.get(row[1]), state = isOpen(context, row) ? "provisional" : "final";
    if (!at) return null;
    const when = () => (row[0] === row[1] || unit ? "" : `${lengthName(survey.about, row[1] - row[0] + 1)} to `) + windowLabel(unit ? row[2] : at.begin, at.end, survey.about.period_seconds);
    return { x0: wall(unit && lengthOf(context) !== "ever" ? row[2] : at.begin), x1: wall(at.end), value: value(row), low: noised ? row[5] : null, high: noised ? row[6] : null, state, when };
  }).filter(Boolean);
  const said = (list, name) => list.map((p) => ({ ...p, text: () => `${name} ${whole(p.value)}` }));
  const truth = { name: "truth", kind: "truth-only", points: said(points((row) => row[9] ?? null), "truth").map((p) => ({ ...p, truth: p.value, value: p.value, low: null, high: null })) };
  const bars = [
    { name: "returning", kind: "returning", points: said(points((row) => row[8] ?? null), "returning") },
    { name: "new", kind: "new", points: said(points((row) => row[7] ?? null), "new") },
    { name: words.many, kind: "unsplit", points: said(points((row) => (row[7] == null ? row[4] : null)), words.many) },
  ];
  const lines = noised ? [{ name: readable(words.many), kind: "bare", points: said(points((row) => row[4]), `${words.many}, with interval`) }] : [];
  if (truth.points.some((p) => p.truth != null)) lines.push(truth);
  return { bars, lines };
}
