// What the role of an attribute adds: dwell times, and flows.

import { entry, isKnown, product } from "../state/quantities.js";
import { periodsOf, placesOf, rankedValues, windowName, windowsOf } from "../state/series.js";
import { column } from "../state/tables.js";
import { capitalised, number, periodName, short, wall, whole, windowLabel } from "../state/words.js";
import { heat, shadesKey } from "../parts/heat.js";
import { timeline } from "../parts/timeline.js";
import { partOf, windowControls, windowHint, windowOf } from "./windows.js";

const ARROW = ">";
const QUARTERS = ["a quarter stays at most", "half", "three quarters"];

// The mean and the quartiles of each period, with those of the chosen window in words.
export function dwellView(attribute) {
  const points = ({ survey }) => periodsOf(survey).map((row) => ({ row, ...row.attributes.get(attribute.name)?.dwell })).filter((one) => one.mean);
  return {
    see: "dwell", name: "Time spent",
    shown: (context) => points(context).length > 0,
    hint: (context) => windowHint(context, attribute, (part) => {
      const { mean, quartiles, unit } = part.dwell ?? {};
      const stays = (quartiles ?? []).map((time, at) => `${QUARTERS[at]} ${time}`).join(", ");
      const average = mean ? [`${number(mean.value)} ${unit ?? ""} on average (${number(mean.low)} to ${number(mean.high)})`] : [];
      return `: ${[...average, ...(stays ? [stays] : [])].join("; ")}. Below: the mean of each ${periodName(context.survey.about)}, with intervals of 95 %.`;
    }),
    controls: windowControls,
    table: (context) => ({
      name: `${attribute.name} time spent`,
      columns: [column("period", null), column("begin", "from"), column("mean", "mean", number), column("low", "low", number), column("high", "high", number), ...QUARTERS.map((name, at) => column(`quartile_${at + 1}`, name))],
      rows: points(context).map(({ row, mean, quartiles }) => [row.period, row.begin, mean.value, mean.low, mean.high, ...QUARTERS.map((_, at) => quartiles?.[at] ?? null)]),
    }),
    draw: (box, _, context) => timeline(box, {
      lines: [{ name: "mean", kind: "", points: points(context).map(({ row, mean }) => ({
        x0: wall(row.begin), x1: wall(row.end), when: () => windowLabel(row.begin, row.end, context.survey.about.period_seconds), value: mean.value, low: mean.low, high: mean.high, state: row.state,
        text: () => `${number(mean.value)} (${number(mean.low)} to ${number(mean.high)})` })) }],
    }, { within: [0, Infinity], label: `${capitalised(attribute.name)}: mean over time; the table has all numbers`, format: number }),
  };
}

export function flowsView(attribute) {
  return {
    see: "now", name: "Now",
    shown: ({ survey }) => windowsOf(survey).length > 0 && rankedValues(survey, attribute).length > 0,
    hint: (context) => windowHint(context, attribute, () => `: ${context.words.people} who went from a row's place to a column's. Who stayed is on the diagonal.`),
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
        const value = row[2] == null ? null : Math.max(0, row[2]);
        return { row: from.indexOf(row[0]), column: to.indexOf(row[1]), value, text: short(value), title: `${row[0]} to ${row[1]}: ${number(row[2])} (${number(row[3])} to ${number(row[4])})` };
      }), { rows: from, columns: to, columnTitle: "columns: to", rowTitle: "rows: from" }, `Flows of ${context.words.people}, ${windowName(context.survey, windowOf(context))}; the table has all numbers`);
    },
  };
}

function flowRows(context, attribute) {
  const window = windowOf(context), part = partOf(window, attribute);
  if (!part?.values || !isKnown(window.visitors)) return [];
  return placesOf(part).map((place, at) => {
    const ends = attribute.values.at(place).split(ARROW).map((end) => end.trim());
    const people = product(entry(part.values.share, at), window.visitors);
    return ends.length === 2 ? [...ends, people.value, people.low, people.high] : null;
  }).filter(Boolean);
}
