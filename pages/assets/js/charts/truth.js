// Truth against estimates, where devices are simulated and the truth is known.

import { periodsOf, rankedValues, valueSeries } from "../state/series.js";
import { column } from "../state/tables.js";
import { label, number, periodName, readable, whole, windowLabel } from "../state/words.js";
import { sign } from "../parts/frame.js";
import { plotted } from "../parts/plotted.js";

const MOST_POINTS = 2000;

function truthRows({ survey }) {
  const rows = [];
  for (const attribute of survey.about.attributes) {
    for (const place of rankedValues(survey, attribute)) {
      for (const point of valueSeries(survey, attribute, place)) {
        if (point.truth != null && point.value != null) rows.push([attribute.name, attribute.values.at(place), point.period, point.begin, point.truth, point.value, point.low, point.high, point.end]);
        if (rows.length >= MOST_POINTS) return rows;
      }
    }
  }
  return rows;
}

function known({ survey }) {
  return periodsOf(survey).some((row) => [...row.attributes.values()].some((part) => part.values?.truth));
}

export function truthChart() {
  return {
    id: "truth", folded: true,
    shown: known,
    title: () => "How close it came to the truth.",
    line: (context) => {
      const rows = truthRows(context), inside = rows.filter((row) => row[4] >= row[6] && row[4] <= row[7]).length;
      return `The devices are simulated, so the truth is known: it is inside ${whole(inside)} of ${whole(rows.length)} intervals of 95 %.`;
    },
    hint: ({ survey, words }) => `Every point is one value on one ${periodName(survey.about)}, in ${words.people}; on the line, the estimate equals the truth.`,
    key: ({ survey }) => survey.about.attributes.slice(0, 8).map((attribute, at) => sign(`spot s${at}`, readable(attribute.name))),
    table: (context) => ({
      name: "truth",
      columns: [column("attribute", "question"), column("value", "value"), column("period", null), column("begin", "from"), column("truth", "truth", whole), column("estimate", "estimate", number), column("low", "low", number), column("high", "high", number)],
      rows: truthRows(context).map((row) => row.slice(0, 8)),
    }),
    draw: (box, _, context) => {
      const rows = truthRows(context), names = context.survey.about.attributes.map((attribute) => attribute.name);
      const top = Math.max(1, ...rows.map((row) => Math.max(row[4], row[5]))), width = Math.max(240, box.clientWidth);
      const ink = (row) => `var(--s${names.indexOf(row[0]) % 8})`, symbols = ["circle", "square", "triangle", "diamond", "cross", "star", "wye", "times"];
      plotted(box, {
        width, height: Math.min(420, width), marginLeft: 60, marginBottom: 40, ariaLabel: "Truth against estimates; the table has all numbers", symbol: { type: "identity" },
        x: { label: "truth", grid: true, tickFormat: number, ticks: Math.floor(width / 110), labelArrow: "none" }, y: { label: "estimate", grid: true, tickFormat: number, ticks: 6, labelArrow: "none" },
        marks: [
          Plot.line([[0, 0], [top, top]], { stroke: "var(--soft)", strokeDasharray: "3 4" }),
          rows.length <= 400 ? Plot.ruleX(rows, { x: (row) => row[4], y1: (row) => row[6], y2: (row) => row[7], stroke: ink, strokeOpacity: 0.35 }) : null,
          Plot.dot(rows, { x: (row) => row[4], y: (row) => row[5], stroke: ink, symbol: (row) => symbols[names.indexOf(row[0]) % 8], r: 3.5, title: (row) => `${label(row[1], 40)}, ${windowLabel(row[3], row[8], context.survey.about.period_seconds)}\ntruth ${whole(row[4])}, estimate ${number(row[5])}` }),
        ],
      });
    },
  };
}
