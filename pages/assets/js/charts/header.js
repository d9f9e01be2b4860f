// The top of the page: which survey it is, from when to when, and the figures to know first.

import { isKnown } from "../state/quantities.js";
import { remembered } from "../state/remembered.js";
import { periodsOf, widestWindow, windowName, windowsOf } from "../state/series.js";
import { dayLabel, label, wall, whole } from "../state/words.js";
import { make } from "../parts/dom.js";

const LOST = "Some windows may count devices twice: presence records were lost. They are marked where a window is chosen.";

export function showHeader(header, context) {
  const { survey, words } = context, { about } = survey;
  header.replaceChildren(
    make("p", { class: "kicker" }, words.kicker),
    make("h1", {}, about.title),
    make("p", { class: "lead" }, span(survey)),
    ...(remembered(survey, "lost", () => windowsOf(survey).some((window) => window.presence_lost)) ? [make("p", { class: "lead" }, LOST)] : []),
    make("div", { class: "figures" }, ...figures(context)));
}

function span(survey) {
  const rows = periodsOf(survey);
  if (!rows.length) return "Nothing is published yet.";
  const year = (time) => new Date(time).getUTCFullYear();
  const first = wall(rows[0].begin), last = wall(rows.at(-1).end) - 1;
  return `${dayLabel(first)} ${year(first)} to ${dayLabel(last)} ${year(last)}, ${whole(rows.length)} ${rows.length === 1 ? "period" : "periods"}`;
}

export function figure(title, value, below = "") {
  return make("div", { class: "figure" }, make("span", {}, title), make("b", {}, value), make("span", { class: "range" }, below));
}

function figures({ survey, words }) {
  const rows = periodsOf(survey), cards = [];
  const widest = widestWindow(survey);
  if (widest) {
    const periods = widest.last - widest.first + 1;
    cards.push(figure(`different ${words.many}`, whole(widest.visitors.value), periods > 1 ? `in ${periods} periods, ${windowName(survey, widest)}` : `in the newest final period, ${windowName(survey, widest)}`));
  }
  const known = rows.filter((row) => isKnown(row.visitors));
  if (known.length > 1) {
    const most = known.reduce((best, row) => (row.visitors.value > best.visitors.value ? row : best));
    cards.push(figure("most in one period", whole(most.visitors.value), dayLabel(wall(most.begin))));
  }
  const costs = survey.about.costs, near = costs.guarantees.find((one) => one.metres != null), report = near ?? costs.guarantees[0];
  cards.push(figure(near ? `epsilon of one report, ${near.between}` : "epsilon of one report", report.epsilon.toLocaleString("en-GB", { maximumSignificantDigits: 3 }), `declared: ${costs.declared}`));
  cards.push(figure("questions", whole(survey.about.attributes.length), label(survey.about.attributes.map((one) => one.name).join(", "), 60)));
  return cards;
}
