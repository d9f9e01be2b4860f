// What the role of an attribute adds: dwell times, amounts, and flows.

import { entry, isKnown, product } from "../state/quantities.js";
import { periodsOf, placesOf, rankedValues, windowName, windowsOf } from "../state/series.js";
import { column } from "../state/tables.js";
import { capitalised, number, periodName, short, wall, whole, windowLabel } from "../state/words.js";
import { heat, shadesKey } from "../parts/heat.js";
import { timeline } from "../parts/timeline.js";
import { everybodyOf, partOf, windowControls, windowHint, windowOf } from "./windows.js";

const ARROW = ">";
const QUARTERS = ["a quarter stays at most", "half", "three quarters"];

// The mean of each period, with that of the chosen window in words, and what else there is to say of one: `more` gives
// names and texts for the hint, `columns` a name and a number each for the table.
function meanView(attribute, { key, name, more, columns }) {
  const points = ({ survey }) => periodsOf(survey).map((row) => ({ row, ...row.attributes.get(attribute.name)?.[key] })).filter((one) => one.mean);
  return {
    see: key, name,
    shown: (context) => points(context).length > 0,
    hint: (context) => windowHint(context, attribute, (part) => {
      const { mean, unit } = part[key] ?? {};
      const average = mean ? [`${number(mean.value)} ${unit ?? ""} on average (${number(mean.low)} to ${number(mean.high)})`] : [];
      return `: ${[...average, ...more(part[key] ?? {})].join("; ")}. Below: the mean of each ${periodName(context.survey.about)}, with intervals of 95 %.`;
    }),
    controls: windowControls,
    table: (context) => {
      const found = points(context), named = columns(found[0] ?? {}).map(([name, title]) => column(name, title));
      return {
        name: `${attribute.name} ${name.toLowerCase()}`,
        columns: [column("period", null), column("begin", "from"), column("mean", "mean", number), column("low", "low", number), column("high", "high", number), ...named],
        rows: found.map((one) => [one.row.period, one.row.begin, one.mean.value, one.mean.low, one.mean.high, ...columns(one).map((entry) => entry[2])]),
      };
    },
    draw: (box, _, context) => timeline(box, {
      lines: [{ name: "mean", kind: "", points: points(context).map(({ row, mean }) => ({
        x0: wall(row.begin), x1: wall(row.end), when: () => windowLabel(row.begin, row.end, context.survey.about.period_seconds), value: mean.value, low: mean.low, high: mean.high, state: row.state,
        text: () => `${number(mean.value)} (${number(mean.low)} to ${number(mean.high)})` })) }],
    }, { within: key === "dwell" ? [0, Infinity] : [-Infinity, Infinity], label: `${capitalised(attribute.name)}: mean over time; the table has all numbers`, format: number }),
  };
}

export const dwellView = (attribute) => meanView(attribute, {
  key: "dwell", name: "Time spent",
  more: ({ quartiles }) => quartiles ? [quartiles.map((time, at) => `${QUARTERS[at]} ${time}`).join(", ")] : [],
  columns: ({ quartiles }) => QUARTERS.map((name, at) => [`quartile_${at + 1}`, name, quartiles?.[at] ?? null]),
});

export const amountView = (attribute) => meanView(attribute, {
  key: "amount", name: "Mean and sum",
  more: ({ sum, quantiles = [] }) => [
    ...(sum ? [`${number(sum.value)} in all (${number(sum.low)} to ${number(sum.high)})`] : []),
    ...quantiles.map(({ at, value, low, high }) => `${number(100 * at)} % have at most ${number(value)} (${number(low)} to ${number(high)})`),
  ],
  columns: ({ sum, quantiles = [] }) => [
    ["sum", "sum", sum?.value ?? null], ["sum_low", "low", sum?.low ?? null], ["sum_high", "high", sum?.high ?? null],
    ...quantiles.map(({ at, value }) => [`quantile_${at}`, `${number(100 * at)} % have at most`, value]),
  ],
});

// Flows of the chosen window, as a table of origins and destinations.
export function flowsView(attribute) {
  return {
    see: "now", name: "Now",
    shown: ({ survey }) => windowsOf(survey).length > 0 && rankedValues(survey, attribute).length > 0,
    hint: (context) => windowHint(context, attribute, () => `: ${context.words.people} who went from a row's place to a column's. Who stayed is on the diagonal. Cells within their noise are empty; the table has them.`),
    controls: windowControls,
    key: (context) => shadesKey(Math.max(0, ...flowRows(context, attribute).map((row) => row[2] ?? 0)), whole),
    table: (context) => ({
      name: `${attribute.name} flows`,
      columns: [column("from", "from"), column("to", "to"), column(context.words.people, context.words.people, number), column("low", "low", number), column("high", "high", number)],
      rows: flowRows(context, attribute),
    }),
    draw: (box, table, context) => {
      const { rows } = table(), places = (at) => [...new Set(rows.map((row) => row[at]))].sort(), from = places(0), to = places(1);
      if (!rows.length) return box.replaceChildren();
      heat(box, rows.map((row) => {
        const value = isClear(row) ? row[2] : null;
        return { row: from.indexOf(row[0]), column: to.indexOf(row[1]), value, text: value == null ? "" : short(value), title: `${row[0]} to ${row[1]}: ${number(row[2])} (${number(row[3])} to ${number(row[4])})` };
      }), { rows: from, columns: to, columnTitle: "columns: to", rowTitle: "rows: from" }, `Flows of ${context.words.people}, ${windowName(context.survey, windowOf(context))}; the table has all numbers`);
    },
  };
}

// Row and column sums of the flows.
export function tripsView(attribute) {
  const tripsOf = (context) => partOf(windowOf(context), attribute)?.trips;
  const quantity = (name, title) => [column(name, title, number), column(`${name}_low`, "low", number), column(`${name}_high`, "high", number)];
  return {
    see: "trips", name: "In and out", plain: true,
    shown: (context) => windowsOf(context.survey).some((window) => partOf(window, attribute)?.trips),
    hint: (context) => windowHint(context, attribute, () => `: ${context.words.people} by where they came from and where they went, also those who stayed.`),
    controls: windowControls,
    table: (context) => {
      const trips = tripsOf(context), window = windowOf(context), visitors = everybodyOf(window, partOf(window, attribute));
      const places = trips ? [...new Set(attribute.values.flatMap((value) => flowEnds(value) ?? []))] : [];
      return {
        name: `${attribute.name} trips`,
        columns: [column("area", "area"), ...quantity("began", "from here"), ...quantity("ended", "to here")],
        rows: isKnown(visitors) ? places.map((place, at) => [place, ...[trips.began, trips.ended].flatMap((shares) => {
          const people = product(entry(shares, at), visitors);
          return [people.value, people.low, people.high];
        })]) : [],
      };
    },
  };
}

export function flowEnds(value) {
  const ends = value.split(ARROW).map((end) => end.trim());
  return ends.length === 2 ? ends : null;
}

// Whether a flow is more than its noise.
export const isClear = ([, , , low]) => low > 0;

export function flowRows(context, attribute) {
  const window = windowOf(context), part = partOf(window, attribute);
  const everybody = everybodyOf(window, part);
  if (!part?.values || !isKnown(everybody)) return [];
  return placesOf(part).map((place, at) => {
    const ends = flowEnds(attribute.values.at(place)), people = product(entry(part.values.share, at), everybody);
    return ends ? [...ends, people.value, people.low, people.high] : null;
  }).filter(Boolean);
}
