// Forecasts: the past, the next periods with two intervals, and what left the 99 % interval of its forecast.

import { cellKey } from "../state/reducer.js";
import { UNKNOWN, entry, product } from "../state/quantities.js";
import { periodsOf, valueSeries } from "../state/series.js";
import { column } from "../state/tables.js";
import { label, number, readable, wall, whole, windowLabel } from "../state/words.js";
import { choice, make } from "../parts/dom.js";
import { sign } from "../parts/frame.js";
import { timeline } from "../parts/timeline.js";

const SHOWN_BEFORE = 6; // times as many past periods as are forecast, at least

// `series`: { name, past: [{ x0, x1, when, value, low, high, state, odd }], ahead: [{ x0, x1, when, mean, truth_low, truth_high,
// publication_low, publication_high }] }.
export function drawForecast(box, series, options = {}) {
  const begin = Math.max(0, series.past.length - Math.max(100, SHOWN_BEFORE * series.ahead.length));
  const past = series.past.slice(begin).map((point) => ({ ...point, text: () => `published ${number(point.value)}${point.odd ? ", outside 99 %" : ""}` }));
  const ahead = series.ahead.map((point) => ({
    ...point, value: point.mean, low: point.truth_low, high: point.truth_high, outerLow: point.publication_low, outerHigh: point.publication_high, state: "final",
    text: () => `forecast ${number(point.mean)}; truth ${number(point.truth_low)} to ${number(point.truth_high)}; publication ${number(point.publication_low)} to ${number(point.publication_high)}`,
  }));
  timeline(box, { lines: [{ name: "published", kind: "past", joined: true, points: past }, { name: "forecast", kind: "ahead", joined: true, banded: true, points: ahead }] },
    { zero: false, label: `Forecast of ${series.name}; the table has all numbers`, format: number, ...options });
}

export function forecastKey() {
  return [sign("stroke past", "published"), sign("stroke ahead", "forecast"), sign("inner", "95 % interval of the truth"), sign("outer", "95 % interval of what will be published"), sign("cross", "left its 99 % interval")];
}

export function forecastColumns() {
  const ends = ["truth_low", "truth_high", "publication_low", "publication_high"];
  return [column("time", "from"), column("kind", "kind"), column("value", "value", number), ...ends.map((end) => column(end, readable(end), number)), column("unexpected", "left its interval")];
}

export function forecastRows(series) {
  return [
    ...series.past.map((point) => [point.begin, "published", point.value, null, null, null, null, point.odd ? "yes" : ""]),
    ...series.ahead.map((point) => [point.begin, "forecast", point.mean, point.truth_low, point.truth_high, point.publication_low, point.publication_high, ""]),
  ];
}

// Everything that the newest forecast is of: { table, place, name }.
function cellsOf({ survey }) {
  return (survey.forecast?.tables ?? []).flatMap((table) => table.names.map((name, place) => ({ table, place, name })));
}

function cellName({ table, name }, words) {
  if (table.kind === "visitors") return words.many;
  return `${readable(table.attribute)}: ${name}${table.kind === "groups" ? " (group)" : ""}`;
}

function cellAt(context) {
  return Math.min(cellsOf(context).length - 1, Math.max(0, Number(context.view.cell ?? 0) || 0));
}

export function forecastChart() {
  const cellOf = (context) => cellsOf(context)[cellAt(context)];
  return {
    id: "forecast",
    shown: ({ survey }) => survey.forecast != null,
    title: (context) => `Forecast of ${label(cellName(cellOf(context), context.words), 60)}`,
    hint: ({ survey: { forecast } }) => `Made from what was published before ${forecast.begins[0].slice(0, 16).replace("T", " ")}, so it tells nobody anything new about anybody.`,
    controls: (context) => [choice("cell", "Of", cellsOf(context).map((cell, at) => [at, label(cellName(cell, context.words), 60)]), cellAt(context), (cell) => context.set({ cell }))],
    key: forecastKey,
    table: (context) => ({ name: "forecast", columns: forecastColumns(), rows: forecastRows(seriesOf(context, cellOf(context))) }),
    draw: (box, _, context) => {
      const series = seriesOf(context, cellOf(context));
      if (series.ahead.length) drawForecast(box, series, { within: [0, Infinity] });
      else box.replaceChildren(make("p", { class: "hint" }, `Nothing is forecast: too few are behind it (minimum ${whole(context.survey.about.minimum)}).`));
    },
  };
}

function seriesOf(context, cell) {
  const { survey, words } = context, { table, place, name } = cell, key = cellKey(table, name), { begins } = survey.forecast;
  const past = observed(survey, cell).map((point) => ({
    ...point, x0: wall(point.begin), x1: wall(point.end), when: () => windowLabel(point.begin, point.end, survey.about.period_seconds), low: null, high: null, nowcast: null, truth: null,
    odd: survey.unexpected.get(point.period)?.has(key) ?? false,
  }));
  const at = (intervals, end, step) => intervals?.[end][step][place] ?? null;
  const ahead = (table.mean ?? []).map((column, step) => ({
    begin: begins[step], x0: wall(begins[step]), x1: wall(begins[step + 1]), when: () => begins[step].slice(0, 16).replace("T", " "), mean: column[place],
    truth_low: at(table.truth_95, "low", step), truth_high: at(table.truth_95, "high", step), publication_low: at(table.publication_95, "low", step), publication_high: at(table.publication_95, "high", step),
  }));
  return { name: cellName(cell, words), past, ahead };
}

function observed(survey, { table, name }) {
  const attribute = survey.about.attributes.find((one) => one.name === table.attribute);
  if (table.kind === "values") return valueSeries(survey, attribute, attribute.values.indexOf(name)).filter((point) => point.state === "final");
  const group = table.kind === "groups" ? Object.keys(attribute.groups).indexOf(name) : null;
  return periodsOf(survey).filter((row) => row.state === "final").map((row) => {
    const people = group == null ? row.visitors : product(entry(row.attributes.get(attribute.name)?.groups?.share, group), row.visitors);
    return { period: row.period, begin: row.begin, end: row.end, state: row.state, ...UNKNOWN, ...people };
  });
}
