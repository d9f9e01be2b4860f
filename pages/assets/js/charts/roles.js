// What the role of an attribute adds: dwell times, flows, and groups of values.

import { entry, isKnown, product } from "../state/quantities.js";
import { periodsOf, placesOf, rankedValues, windowName, windowsOf } from "../state/series.js";
import { column } from "../state/tables.js";
import { number, readable, short, wall, whole, windowLabel } from "../state/words.js";
import { make } from "../parts/dom.js";
import { heat, shadesKey } from "../parts/heat.js";
import { timeline } from "../parts/timeline.js";
import { capitalised, percentShare } from "./attribute.js";
import { bars, partOf, whySuppressed, windowControl, windowOf } from "./windows.js";

const ARROW = ">";
const QUARTERS = ["a quarter stays at most", "half stays at most", "three quarters stay at most"];

export function dwellCharts(attribute) {
  return [dwellTable(attribute), dwellOverTime(attribute)];
}

function dwellTable(attribute) {
  return {
    id: `${attribute.name}-dwell`, plain: true,
    shown: ({ survey }) => windowsOf(survey).length > 0,
    title: () => `${capitalised(attribute.name)}: time spent`,
    hint: (context) => {
      const window = windowOf(context), part = partOf(window, attribute);
      return part?.dwell ? `${windowName(context.survey, window)}. Intervals of 95 %.` : whySuppressed(context, window, part);
    },
    controls: (context) => [windowControl(context)],
    table: (context) => {
      const dwell = partOf(windowOf(context), attribute)?.dwell, rows = [];
      if (dwell?.mean) rows.push([`mean${dwell.unit ? ` in ${dwell.unit}` : ""}`, number(dwell.mean.value), number(dwell.mean.low), number(dwell.mean.high)]);
      if (dwell?.quartiles) QUARTERS.forEach((name, at) => rows.push([name, dwell.quartiles[at], dwell.low?.[at] ?? null, dwell.high?.[at] ?? null]));
      return { name: `${attribute.name} dwell`, columns: [column("figure", "figure"), column("value", "time"), column("low", "low"), column("high", "high")], rows };
    },
  };
}

function dwellOverTime(attribute) {
  const points = ({ survey }) => periodsOf(survey).map((row) => ({ row, mean: row.attributes.get(attribute.name)?.dwell?.mean ?? null, unit: row.attributes.get(attribute.name)?.dwell?.unit ?? "" }));
  return {
    id: `${attribute.name}-dwell-over-time`,
    shown: (context) => points(context).filter((one) => one.mean).length > 1,
    title: () => `${capitalised(attribute.name)}: mean over time`,
    hint: (context) => `The mean ${points(context).find((one) => one.unit)?.unit ?? ""} of each period, with intervals of 95 %.`,
    table: (context) => ({
      name: `${attribute.name} mean`,
      columns: [column("period", "period"), column("begin", "from"), column("mean", "mean", number), column("low", "low", number), column("high", "high", number)],
      rows: points(context).map(({ row, mean }) => [row.period, row.begin, mean?.value ?? null, mean?.low ?? null, mean?.high ?? null]),
    }),
    draw: (box, _, context) => timeline(box, {
      lines: [{ name: "mean", kind: "", points: points(context).map(({ row, mean }) => ({
        x0: wall(row.begin), x1: wall(row.end), when: () => windowLabel(row.begin, row.end, context.survey.about.period_seconds), value: mean?.value ?? null, low: mean?.low ?? null, high: mean?.high ?? null, state: row.state,
        text: () => `${number(mean.value)} (${number(mean.low)} to ${number(mean.high)})` })) }],
    }, { height: 240, label: `${capitalised(attribute.name)}: mean over time`, format: number }),
  };
}

export function flowsChart(attribute) {
  return {
    id: `${attribute.name}-flows`, wide: true,
    shown: ({ survey }) => windowsOf(survey).length > 0 && rankedValues(survey, attribute).length > 0,
    title: () => `${capitalised(attribute.name)}: from and to`,
    hint: (context) => {
      const window = windowOf(context), part = partOf(window, attribute);
      return part?.values ? `${capitalised(context.words.people)} who went from a row's place to a column's, ${windowName(context.survey, window)}. Who stayed is on the diagonal.` : whySuppressed(context, window, part);
    },
    controls: (context) => [windowControl(context)],
    key: (context) => shadesKey(Math.max(0, ...flowRows(context, attribute).map((row) => row[2] ?? 0)), whole),
    table: (context) => ({
      name: `${attribute.name} flows`,
      columns: [column("from", "from"), column("to", "to"), column(context.words.people, context.words.people, number), column("low", "low", number), column("high", "high", number)],
      rows: flowRows(context, attribute),
    }),
    draw: (box, table, context) => {
      const { rows } = table(), places = (at) => [...new Set(rows.map((row) => row[at]))].sort(), from = places(0), to = places(1);
      if (!rows.length) {
        box.replaceChildren();
        return;
      }
      heat(box, rows.map((row) => ({
        row: from.indexOf(row[0]), column: to.indexOf(row[1]), value: row[2] == null ? null : Math.max(0, row[2]), text: short(row[2]), title: `${row[0]} to ${row[1]}: ${number(row[2])} (${number(row[3])} to ${number(row[4])})`,
      })), { rows: from, columns: to, columnTitle: "columns: to", rowTitle: "rows: from" }, `Flows of ${context.words.people}; the table below has all numbers`);
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

export function groupsChart(attribute) {
  const names = Object.keys(attribute.groups);
  return {
    id: `${attribute.name}-groups`,
    shown: ({ survey }) => names.length > 0 && windowsOf(survey).length > 0,
    title: () => `${capitalised(attribute.name)}: groups of values`,
    hint: (context) => (partOf(windowOf(context), attribute)?.groups ? `Sums of values, each with an interval of its own, ${windowName(context.survey, windowOf(context))}.` : whySuppressed(context, windowOf(context), partOf(windowOf(context), attribute))),
    controls: (context) => [windowControl(context)],
    table: (context) => {
      const window = windowOf(context), shares = partOf(window, attribute)?.groups?.share;
      const columns = [column("group", "group"), column(context.words.people, context.words.people, number), column("low", "low", number), column("high", "high", number), column("share", "share", percentShare)];
      const rows = shares && isKnown(window.visitors) ? names.map((name, at) => {
        const share = entry(shares, at), people = product(share, window.visitors);
        return [name, people.value, people.low, people.high, share.value];
      }) : [];
      return { name: `${attribute.name} groups`, columns, rows };
    },
    draw: (box, table, context) => {
      if (table().rows.length) bars(box, table().rows.map((row) => [...row, row[1]]), `${readable(attribute.name)}: groups`, context.words.people);
      else box.replaceChildren(make("span", {}));
    },
  };
}
