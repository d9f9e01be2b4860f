// The top of the page: which survey it is, from when to when, and the figures to know first.

import { isKnown } from "../state/quantities.js";
import { remembered } from "../state/remembered.js";
import { periodsOf, widestWindow, windowName, windowsOf } from "../state/series.js";
import { capitalised, dayLabel, label, lengthName, percent, periodName, periodsName, wall, whole, windowLabel } from "../state/words.js";
import { figure, make } from "../parts/dom.js";

const LOST = "Some numbers may count devices twice: presence records were lost. They are marked where a time is chosen.";

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
  return `${dayLabel(first)} ${year(first)} to ${dayLabel(last)} ${year(last)}, ${periodsName(survey.about, rows.length)}`;
}

function figures({ survey, words }) {
  const { about } = survey, cards = [], widest = widestWindow(survey);
  if (widest) cards.push(figure(`different ${words.many} in ${lengthName(about, widest.last - widest.first + 1)}`, whole(widest.visitors.value), windowName(survey, widest)));
  const known = periodsOf(survey).filter((row) => isKnown(row.visitors));
  if (known.length > 1) {
    const most = known.reduce((best, row) => (row.visitors.value > best.visitors.value ? row : best));
    cards.push(figure(`most in one ${periodName(about)}`, whole(most.visitors.value), windowLabel(most.begin, most.end, about.period_seconds)));
  }
  const report = about.costs.guarantees.find((one) => one.metres != null) ?? about.costs.guarantees[0];
  cards.push(figure("who sees one report guesses right", `${percent(100 * report.right_guess, 0)} at most`, `of ${report.metres == null ? "two equally likely answers" : report.between}`));
  cards.push(figure(about.attributes.length === 1 ? "question" : "questions", whole(about.attributes.length), label(about.attributes.map((one) => capitalised(one.name)).join(", "), 60)));
  return cards;
}
