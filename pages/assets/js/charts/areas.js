// Values beside each other: a ranking of areas, chosen values over time in one chart, and changes in one period.

import { valueSeries, rankedValues, periodsOf, windowName } from "../state/series.js";
import { column } from "../state/tables.js";
import { label, number, percent, readable, signed, windowLabel } from "../state/words.js";
import { growingChoice, make } from "../parts/dom.js";
import { sign } from "../parts/frame.js";
import { plotted } from "../parts/plotted.js";
import { timeline } from "../parts/timeline.js";
import { baselineControls, capitalised, changesIn, filterControls, measureChoice, measureOf, shownValues, timed } from "./attribute.js";
import { partOf, whySuppressed, windowControl, windowOf } from "./windows.js";

const LINES = 8;
const FIRST_LINES = 4;
const MOST_BOXES = 40;

export function rankingChart(attribute) {
  return {
    id: `${attribute.name}-ranking`, plain: true,
    shown: ({ survey }) => attribute.role === "area" && rankedValues(survey, attribute).length > 0,
    title: () => `Busiest: ${readable(attribute.name)}`,
    hint: (context) => {
      const window = windowOf(context), part = partOf(window, attribute), ranking = part?.ranking;
      if (!ranking) return whySuppressed(context, window, part);
      return `${windowName(context.survey, window)}. All ${ranking.places.length} places are right with a probability of ${percent(ranking.probability * 100, 0)}.`;
    },
    controls: (context) => [windowControl(context)],
    table: (context) => {
      const places = partOf(windowOf(context), attribute)?.ranking?.places ?? [];
      return {
        name: `${attribute.name} ranking`,
        columns: [column("place", "place", number), column("value", readable(attribute.name)), column(context.words.people, context.words.people, number), column("low", "low", number), column("high", "high", number), column("probability", "place is right", (value) => percent(value * 100, 0))],
        rows: places.map((place) => [place.place, place.value, place.people.value, place.people.low, place.people.high, place.probability]),
      };
    },
  };
}

// The places of the values that are compared: those in the address, or the most frequent ones.
function compared(context, attribute) {
  const ranked = rankedValues(context.survey, attribute), given = context.view[`compare.${attribute.name}`];
  const chosen = (given ?? "").split(",").filter((text) => /^\d+$/.test(text)).map(Number).filter((place) => ranked.includes(place));
  return given == null ? ranked.slice(0, FIRST_LINES) : chosen.slice(0, LINES);
}

export function compareChart(attribute) {
  const id = `${attribute.name}-compare`;
  return {
    id, wide: true,
    shown: ({ survey }) => attribute.role !== "transition" && rankedValues(survey, attribute).length > 1 && periodsOf(survey).length > 1,
    title: () => `${capitalised(attribute.name)}: compared`,
    hint: () => `Up to ${LINES} values in one chart. Bands are intervals of 95 %.`,
    controls: (context) => [measureChoice(context), ...filterControls(context, attribute), boxes(context, attribute)],
    key: (context) => compared(context, attribute).map((place, at) => sign(`stroke s${at}`, label(attribute.values.at(place)))),
    table: (context) => {
      const measure = measureOf(context), show = measure === "share" ? percent : number;
      const columns = [column("value", readable(attribute.name)), column("period", "period"), column("begin", "from"), column("state", "state"), column(measure, measure, show), column("low", "low", show), column("high", "high", show)];
      const rows = compared(context, attribute).flatMap((place) => valueSeries(context.survey, attribute, place, measure).map((point) => [
        attribute.values.at(place), point.period, point.begin, point.state, point.value, point.low, point.high]));
      return { name: `${attribute.name} compared`, columns, rows };
    },
    draw: (box, _, context) => {
      const measure = measureOf(context), show = measure === "share" ? percent : number;
      const lines = compared(context, attribute).map((place, at) => ({
        name: attribute.values.at(place), kind: `s${at}`, joined: true, banded: true,
        points: valueSeries(context.survey, attribute, place, measure).map((point) => {
          const { text, ...made } = timed(point, context.survey, show);
          return { ...made, smoothed: null, truth: null, text: () => `${label(attribute.values.at(place))} ${text()}` };
        }),
      }));
      if (lines.length) timeline(box, { lines }, { height: 300, label: `${capitalised(attribute.name)}: values compared over time`, format: measure === "share" ? (value) => `${value} %` : number });
      else box.replaceChildren(make("p", { class: "hint" }, "Choose values to compare."));
    },
  };
}

function boxes(context, attribute) {
  const chosen = compared(context, attribute), shown = shownValues(context, attribute).slice(0, MOST_BOXES);
  const toggle = (place, on) => {
    const next = on ? [...chosen, place] : chosen.filter((one) => one !== place);
    context.set({ [`compare.${attribute.name}`]: next.slice(-LINES).join(",") || "none" });
  };
  const box = (place) => make("label", { class: "box" }, make("input", { type: "checkbox", checked: chosen.includes(place), onchange: (event) => toggle(place, event.target.checked) }), make("span", {}, label(attribute.values.at(place))));
  return make("fieldset", { class: "boxes" }, make("legend", {}, "Compare"), ...shown.map(box));
}

export function changeNowChart(attribute) {
  const id = `${attribute.name}-change-in`;
  const periodOf = (context) => {
    const finals = periodsOf(context.survey).filter((row) => row.state === "final" && !row.suppressed);
    return finals.find((row) => String(row.period) === context.view.period) ?? finals.at(-1);
  };
  const rowsOf = (context) => {
    const changed = changesIn(context, attribute, periodOf(context));
    const rows = shownValues(context, attribute).map((place) => [attribute.values.at(place), changed(place)]);
    return rows.map(([name, point]) => [name, point.now, point.then, point.value, point.low, point.high]).sort((a, b) => (b[3] ?? -Infinity) - (a[3] ?? -Infinity));
  };
  return {
    id,
    shown: (context) => attribute.role === "area" && periodsOf(context.survey).length > 1 && periodOf(context) != null,
    title: () => `${capitalised(attribute.name)}: change in one period`,
    hint: (context) => {
      const known = rowsOf(context).filter((row) => row[3] != null).length;
      return known ? "Against the median of the baseline, with intervals of 95 %." : "Nothing to compare with: this period is the baseline's own, or the baseline is not precise enough.";
    },
    controls: (context) => [
      growingChoice(context, "period", "Period", periodsOf(context.survey).filter((row) => row.state === "final").map((row) => ({ value: row.period, text: () => windowLabel(row.begin, row.end, context.survey.about.period_seconds) })), periodOf(context).period, (period) => context.set({ period })),
      ...baselineControls(context)],
    table: (context) => ({
      name: `${attribute.name} change in one period`,
      columns: [column("value", readable(attribute.name)), column("now", context.words.people, number), column("baseline", "baseline", number), column("percent", "change", signed), column("low", "low", signed), column("high", "high", signed)],
      rows: rowsOf(context),
    }),
    draw: (box, table) => {
      const rows = table().rows.filter((row) => row[3] != null).slice(0, MOST_BOXES), y = (row) => row[0];
      if (!rows.length) {
        box.replaceChildren();
        return;
      }
      const longest = Math.min(20, Math.max(...rows.map((row) => [...row[0]].length)));
      plotted(box, {
        height: 48 + 24 * rows.length, marginLeft: 16 + 7 * longest, marginRight: 16, marginTop: 6, marginBottom: 36, ariaLabel: `${capitalised(attribute.name)}: change in per cent`,
        x: { label: "change in %", grid: true, tickFormat: (value) => `${value > 0 ? "+" : ""}${value}`, ticks: 5, labelArrow: "none" }, y: { label: null, domain: rows.map(y), tickFormat: (text) => label(text, 20), tickSize: 0 },
        marks: [
          Plot.ruleX([0], { stroke: "var(--soft)" }),
          Plot.ruleY(rows, { x1: (row) => row[4], x2: (row) => row[5], y, stroke: "var(--ink)", strokeWidth: 1.4 }),
          Plot.dot(rows, { x: (row) => row[3], y, r: 4, fill: (row) => (row[4] > 0 || row[5] < 0 ? "var(--accent)" : "var(--paper)"), stroke: "var(--accent)", strokeWidth: 1.6, title: (row) => `${label(row[0], 60)}\n${signed(row[3])} (${signed(row[4])} to ${signed(row[5])})` }),
        ],
      });
    },
  };
}
