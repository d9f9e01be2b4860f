// What it cost: the guarantees in words and numbers, the devices that are needed, cautions, and what is suppressed and why.

import { periodsOf, windowName, windowsOf } from "../state/series.js";
import { column } from "../state/tables.js";
import { number, percent, periodName, readable, whole } from "../state/words.js";
import { make } from "../parts/dom.js";

const WHY = { minimum: (about, words) => `fewer than ${about.minimum} ${words.many}`, difference: () => "its difference to a shorter time would be the number of a few" };

function epsilon(value) {
  return value.toLocaleString("en-GB", { maximumSignificantDigits: 4 });
}

export function guaranteesChart() {
  return {
    id: "guarantees", folded: true, plain: true,
    shown: () => true,
    title: () => "What an observer can learn about a device.",
    line: ({ survey: { about: { costs } } }) => `Who sees one report guesses the right one of two answers in ${percent(100 * costs.guarantees[0].right_guess)} of all cases, at most.`,
    hint: ({ survey }) => {
      const { costs } = survey.about;
      const lost = costs.loss_accepted ? " A loss of the memo store was accepted, so these are the figures without memo_cap." : "";
      return `Declared: ${costs.declared} (${costs.solution}). Epsilon is the logarithm of how much likelier reports can be under one of the two than under the other, computed from the survey's own probabilities. That a device reported is ${costs.presence_epsilon == null ? "not protected" : `protected with epsilon ${costs.presence_epsilon} per period in what is published`}.${lost}`;
    },
    table: ({ survey }) => ({
      name: "guarantees",
      columns: [column("seen", "somebody sees"), column("between", "and must decide between"), column("epsilon", "epsilon", (value) => (value === Infinity ? "no bound" : epsilon(value))), column("bound", ""), column("right_guess", "guesses right, at most", (value) => (value > 0.9995 ? "always" : percent(value * 100)))],
      rows: survey.about.costs.guarantees.map((one) => [one.seen, one.between, one.epsilon ?? Infinity, one.epsilon == null ? "" : one.exact ? "exact" : "at most", one.right_guess]),
    }),
  };
}

export function precisionChart() {
  return {
    id: "precision", folded: true, plain: true,
    shown: ({ survey }) => survey.about.costs.precision.length > 0,
    title: () => "How it was asked, and how precise it is.",
    line: ({ survey: { about } }) => `${about.costs.precision.length === 1 ? "One question" : `${about.costs.precision.length} questions`}; ${about.costs.declared}, ${about.costs.solution}.`,
    hint: ({ survey: { about } }) => `For each question: how many answered it on one ${periodName(about)} of this page (the fewest and the most), and by how much a share may be off then, with 95 % (the median of all published intervals, half their width). The last column: how many devices a standard error of ${percent(about.costs.error * 100, 0)} needs.`,
    table: ({ survey }) => ({
      name: "precision",
      columns: [column("attribute", "question"), column("mechanism", "asked with"), column("fewest", "fewest answers", whole), column("most", "most answers", whole), column("off_by", "off by, at most", (value) => `± ${number(value * 100)} points`), column("devices_needed", `devices for ${percent(survey.about.costs.error * 100, 0)}`, whole)],
      rows: survey.about.costs.precision.map((one) => [readable(one.attribute), one.mechanism, ...precisionOf(survey, one.attribute), one.devices_needed]),
    }),
  };
}

// The fewest and the most answers in a final period, and the median of half the width of all its intervals.
export function precisionOf(survey, name) {
  const parts = periodsOf(survey).filter((row) => row.state === "final").map((row) => row.attributes.get(name)).filter((part) => part?.values?.share.low);
  const halves = parts.flatMap(({ values: { share } }) => share.low.map((low, at) => (low == null ? null : (share.high[at] - low) / 2)).filter((half) => half != null));
  return parts.length ? [Math.min(...parts.map((part) => part.n)), Math.max(...parts.map((part) => part.n)), middleOf(halves)] : [null, null, null];
}

function middleOf(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted.length ? sorted[sorted.length >> 1] : null;
}

export function cautionsChart() {
  return {
    id: "cautions", folded: true, plain: true,
    shown: ({ survey }) => survey.about.costs.cautions.length > 0,
    title: () => "Cautions.",
    line: ({ survey: { about } }) => `${about.costs.cautions.length === 1 ? "One thing is" : `${about.costs.cautions.length} things are`} easily overlooked about this survey.`,
    table: ({ survey }) => ({
      name: "cautions", columns: [column("code", "caution"), column("text", "what holds, and what to do")],
      rows: survey.about.costs.cautions.map((caution) => [caution.code, caution.text]),
    }),
  };
}

// Every window and every attribute of a window that is not published, with the reason.
export function suppressedRows({ survey, words }) {
  const { about } = survey;
  return windowsOf(survey).flatMap((window) => {
    const name = windowName(survey, window);
    if (window.suppressed) return [[window.first, window.last, name, "everything", WHY[window.suppressed](about, words)]];
    const split = window.visitors && !window.new && about.horizon > 1 ? [[window.first, window.last, name, "new and returning", `one of them is fewer than ${about.minimum}, or earlier reports are not known`]] : [];
    return [...split, ...(window.attributes ?? []).filter((part) => part.suppressed).map((part) => [window.first, window.last, name, readable(part.name), part.suppressed === "minimum" ? `fewer than ${about.minimum} answers` : WHY.difference()])];
  });
}

export function suppressedChart() {
  return {
    id: "suppressed", folded: true, plain: true,
    shown: ({ survey }) => survey.about.minimum > 0,
    title: () => "What is suppressed.",
    line: (context) => {
      const found = suppressedRows(context).length;
      if (found) return `${whole(found)} ${found === 1 ? "result is" : "results are"} not published.`;
      return windowsOf(context.survey).some((window) => window.new) ? "Nothing is." : "No count is; new and returning ones are not told apart.";
    },
    hint: ({ survey: { about }, words }) => `Numbers below ${about.minimum} ${words.many} or answers are not shown, because they say little. Hiding them protects nobody.`,
    table: (context) => ({
      name: "suppressed", columns: [column("first", null), column("last", null), column("window", "when"), column("what", "what"), column("why", "why")],
      rows: suppressedRows(context),
    }),
  };
}

// How to read the numbers: sentences that come with the results.
export function notesPart() {
  const list = make("ul", { class: "notes" });
  const element = make("section", { class: "frame", id: "notes", "aria-labelledby": "notes-title" },
    make("details", {}, make("summary", {}, make("h3", { id: "notes-title" }, "How to read the numbers.")), list));
  return {
    element,
    update: ({ survey }) => {
      const { notes, description } = survey.about;
      element.hidden = !notes.length && !description;
      list.replaceChildren(...[...(description ? [description] : []), ...notes].map((note) => make("li", {}, note)));
    },
  };
}
