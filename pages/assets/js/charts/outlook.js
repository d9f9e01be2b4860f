// Forecasts of any series: those of a file, or of a survey as it was asked for.

import { column } from "../state/tables.js";
import { label, number, wall, whole } from "../state/words.js";
import { framed, textPart } from "../parts/frame.js";
import { drawForecast, forecastColumns, forecastKey, forecastRows } from "./forecasts.js";

// The times of a series for a timeline: each period ends where the next one begins. Rows without times are numbered.
function timesOf(begins) {
  const at = begins.map((begin) => (typeof begin === "number" ? begin : wall(begin.replace(" ", "T"))));
  return at.map((x0, place) => [x0, at[place + 1] ?? x0 + (x0 - (at[place - 1] ?? x0 - 1))]);
}

function prepared(series) {
  const begins = [...series.begins, ...series.ahead.map((row) => row.time)], times = timesOf(begins), odd = new Set(series.unexpected);
  const name = (begin) => () => (typeof begin === "number" ? `row ${begin + 1}` : String(begin).slice(0, 16).replace("T", " "));
  return {
    name: series.name,
    past: series.values.map((value, at) => ({ begin: begins[at], when: name(begins[at]), x0: times[at][0], x1: times[at][1], value, low: null, high: null, state: "final", odd: odd.has(at) })),
    ahead: series.ahead.map((row, step) => ({
      begin: row.time, when: name(row.time), x0: times[series.values.length + step][0], x1: times[series.values.length + step][1], mean: row.mean,
      truth_low: row.truth_low_95, truth_high: row.truth_high_95, publication_low: row.publication_low_95, publication_high: row.publication_high_95,
    })),
  };
}

function seriesChart(series, at) {
  const made = prepared(series);
  return {
    id: `series-${at}`, shown: () => true, title: () => series.name,
    hint: () => `${series.known.toLocaleString("en-GB")} values; seasons: ${series.seasons.join(" and ") || "none"}. ${whole(series.unexpected.length)} publications left the 99 % interval of their forecast; about ${whole(series.known / 100)} of ${whole(series.known)} would if all were as usual.`,
    key: forecastKey,
    table: () => ({ name: series.name, columns: forecastColumns(), rows: forecastRows(made) }),
    draw: (box) => drawForecast(box, made, { linear: typeof series.begins[0] === "number" }),
  };
}

function backtestChart(context) {
  const rows = context.document.record.series.flatMap((series) => series.backtest.map((scored) => [series, scored, scored.truth ?? scored.publication])).filter((row) => row[2]);
  return {
    id: "backtest", plain: true, shown: () => rows.length > 0, title: () => "Backtest",
    hint: () => "The last periods forecast from what came before, and scored against the truth where it is known, otherwise against publications.",
    table: () => ({
      name: "backtest", columns: [column("series", "series"), column("method", "method"), column("ahead", "ahead", String), column("mae", "MAE", number), column("rmse", "RMSE", number), column("mase", "MASE", number), column("crps", "CRPS", number), column("coverage_80", "in 80 %", coverage), column("coverage_95", "in 95 %", coverage), column("interval_score_95", "interval score", number)],
      rows: rows.map(([series, scored, found]) => [series.name, scored.method, scored.step, found.mae, found.rmse, found.mase, found.crps, found.coverage_80, found.coverage_95, found.interval_score_95]),
    }),
  };
}

function coverage(value) {
  return `${Math.round(100 * value)} %`;
}

export function outlookSections(context) {
  const { record } = context.document;
  const parts = record.series.map((series, at) => framed(seriesChart(series, at), context));
  return [
    { id: "series", title: "Series", parts: [textPart("remarks", "Remarks", record.remarks.map((remark) => ["hint", "", label(remark, 400)])), ...parts] },
    { id: "scores", title: "Backtest", parts: [framed(backtestChart(context), context)] },
  ];
}
