// Pairs of two attributes in one window: a table of shaded cells, of values or of groups.

import { entry, isKnown, product } from "../state/quantities.js";
import { placeIn, rankedValues, windowsOf } from "../state/series.js";
import { column } from "../state/tables.js";
import { capitalised, number, percent, percentShare, readable, short, whole } from "../state/words.js";
import { choice } from "../parts/dom.js";
import { heat, shadesKey } from "../parts/heat.js";
import { measureChoice, measureOf } from "./attribute.js";
import { everybodyOf, partOf, windowControls, windowHint, windowOf } from "./windows.js";

// The place of each fit in a row of the table; its interval follows it.
const FIT_AT = { estimate: 5, adjusted: 8, consistent: 11 };
const FITS = [["estimate", "estimates"], ["adjusted", "estimates that agree with both attributes"], ["consistent", "best fit: none below 0, all add up"]];

// Of which values or groups a table can be, with the place of its first pair in the columns.
export function resolutions({ axes: [first, second] }) {
  const [rows, columns] = [first, second].map((axis) => ({ values: axis.values, groups: axis.groups ?? [] }));
  const found = [{ key: "values", text: "values", rows: rows.values, columns: columns.values, groups: false, from: 0 }];
  let from = 0;
  const add = (key, text, ours, theirs) => {
    if (ours.length && theirs.length) found.push({ key, text, rows: ours, columns: theirs, groups: true, from });
    from += ours.length * theirs.length;
  };
  add("rows", `groups of ${readable(first.name)}`, rows.groups, columns.values);
  add("columns", `groups of ${readable(second.name)}`, rows.values, columns.groups);
  add("both", "groups of both", rows.groups, columns.groups);
  return found;
}

function resolutionOf(context, attribute) {
  const found = resolutions(attribute);
  return found.find((one) => one.key === context.view[`pairs.${attribute.name}`]) ?? found[0];
}

function fitOf(context, attribute) {
  const wanted = resolutionOf(context, attribute).groups ? "estimate" : context.view.fit;
  return FITS.some(([key]) => key === wanted) ? wanted : "estimate";
}

export function pairsView(attribute) {
  const [first, second] = attribute.axes;
  return {
    see: "now", name: "Now",
    shown: ({ survey }) => windowsOf(survey).length > 0 && rankedValues(survey, attribute).length > 0,
    hint: (context) => windowHint(context, attribute, (part) => {
      const cut = part.places ? ` The ${whole(part.places.length)} most frequent of ${whole(attribute.values.length)} pairs are shown.` : "";
      return `, from ${whole(part.n)} answers about pairs. The table has the interval of 95 % of every pair.${cut}`;
    }),
    controls: (context) => {
      const found = resolutions(attribute), name = `pairs.${attribute.name}`;
      const of = found.length > 1 ? [choice(name, "Of", found.map((one) => [one.key, one.text]), resolutionOf(context, attribute).key, (key) => context.set({ [name]: key }))] : [];
      const fit = resolutionOf(context, attribute).groups ? [] : [choice("fit", "Shades", FITS, fitOf(context, attribute), (fit) => context.set({ fit }))];
      return [...windowControls(context), measureChoice(context), ...of, ...fit];
    },
    key: (context) => {
      const share = measureOf(context) === "share", most = Math.max(0, ...shaded(context, attribute, pairRows(context, attribute)).map((value) => value ?? 0));
      return shadesKey(most, share ? (value) => percent(value) : whole);
    },
    table: (context) => ({
      name: `${attribute.name} pairs`,
      columns: [
        column(first.name, readable(first.name)), column(second.name, readable(second.name)), column(context.words.people, context.words.people, number), column("low", "low", number), column("high", "high", number),
        column("share", "share", percentShare), column("share_low", "share, low", percentShare), column("share_high", "share, high", percentShare),
        column("adjusted", "agreeing with both", percentShare), column("adjusted_low", "agreeing, low", percentShare), column("adjusted_high", "agreeing, high", percentShare),
        column("consistent", "best fit", percentShare), column("consistent_low", "best fit, low", percentShare), column("consistent_high", "best fit, high", percentShare), column("truth", "truth", whole),
      ],
      rows: pairRows(context, attribute),
    }),
    draw: (box, table, context) => {
      const { rows, columns } = resolutionOf(context, attribute), listed = table().rows, values = shaded(context, attribute, listed);
      if (!listed.length) return box.replaceChildren();
      const share = measureOf(context) === "share";
      heat(box, listed.map((row, at) => {
        const { value, low, high } = fitText(context, attribute, row);
        return {
          row: rows.indexOf(row[0]), column: columns.indexOf(row[1]), value: values[at] == null ? null : Math.max(0, values[at]),
          text: values[at] == null ? "" : share ? percent(Math.max(0, values[at]), 0) : short(Math.max(0, values[at])), title: `${row[0]}, ${row[1]}: ${value}${low ? ` (${low} to ${high})` : ""}`,
        };
      }), { rows, columns, rowTitle: `rows: ${readable(first.name)}`, columnTitle: `columns: ${readable(second.name)}` }, `${capitalised(first.name)} by ${readable(second.name)}; the table has all numbers`);
    },
  };
}

// What the cells show: people or per cent, of the chosen fit.
function shaded(context, attribute, rows) {
  const share = measureOf(context) === "share", at = FIT_AT[fitOf(context, attribute)];
  const window = windowOf(context), visitors = everybodyOf(window, partOf(window, attribute)).value;
  return rows.map((row) => (row[at] == null ? null : row[at] * (share ? 100 : visitors)));
}

// The number and the interval of the chosen fit, as text.
function fitText(context, attribute, row) {
  const at = FIT_AT[fitOf(context, attribute)], share = { value: row[at], low: row[at + 1], high: row[at + 2], error: null };
  const found = measureOf(context) === "share" ? { value: 100 * share.value, low: share.low && 100 * share.low, high: share.high && 100 * share.high } : product(share, everybodyOf(windowOf(context), partOf(windowOf(context), attribute)));
  const text = measureOf(context) === "share" ? percent : number;
  return { value: text(found.value), low: found.low == null ? null : text(found.low), high: found.high == null ? null : text(found.high) };
}

function pairRows(context, attribute) {
  const window = windowOf(context), part = partOf(window, attribute), { rows, columns, groups, from } = resolutionOf(context, attribute);
  const shares = groups ? part?.groups : part?.values, everybody = everybodyOf(window, part);
  if (!shares || !isKnown(everybody)) return [];
  return rows.flatMap((row, i) => columns.map((name, j) => {
    const pair = from + i * columns.length + j, at = groups ? pair : placeIn(part, pair);
    if (at < 0) return null;
    const share = entry(shares.share, at), people = product(share, everybody);
    const fits = ["adjusted", "adjusted_low", "adjusted_high", "consistent", "consistent_low", "consistent_high", "truth"].map((figure) => shares[figure]?.[at] ?? null);
    return [row, name, people.value, people.low, people.high, share.value, share.low, share.high, ...fits];
  })).filter(Boolean);
}
