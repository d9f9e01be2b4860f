// What it cost: the guarantees in words and numbers, the devices that are needed, cautions, and what is suppressed and why.

import { windowName, windowsOf } from "../state/series.js";
import { column } from "../state/tables.js";
import { number, percent, readable, whole } from "../state/words.js";
import { make } from "../parts/dom.js";

const WHY = { minimum: (about, words) => `fewer than ${about.minimum} ${words.many}`, difference: () => "its difference to a shorter window would be the number of a few" };

function epsilon(value) {
  return value.toLocaleString("en-GB", { maximumSignificantDigits: 4 });
}

export function guaranteesChart() {
  return {
    id: "guarantees", wide: true, plain: true,
    shown: () => true,
    title: () => "What an observer can learn about a device",
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
    id: "precision", wide: true, plain: true,
    shown: ({ survey }) => survey.about.costs.precision.length > 0,
    title: () => "How precise it is",
    hint: ({ survey }) => `Standard errors of a share in one period with ${whole(survey.about.costs.devices)} devices, and how many devices a standard error of ${percent(survey.about.costs.error * 100, 0)} needs.`,
    table: ({ survey }) => ({
      name: "precision",
      columns: [column("attribute", "question"), column("mechanism", "asked with"), column("answers", "answers", whole), column("if_nobody", "if no device has it", share), column("if_half", "if half have it", share), column("devices_needed", `devices for ${percent(survey.about.costs.error * 100, 0)}`, whole)],
      rows: survey.about.costs.precision.map((one) => [readable(one.attribute), one.mechanism, one.answers, one.if_nobody, one.if_half, one.devices_needed]),
    }),
  };
}

function share(value) {
  return `± ${number(value * 100)} %`;
}

export function cautionsChart() {
  return {
    id: "cautions", wide: true, plain: true,
    shown: ({ survey }) => survey.about.costs.cautions.length > 0,
    title: () => "Cautions",
    hint: () => "What is easily overlooked about this survey.",
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
    return (window.attributes ?? []).filter((part) => part.suppressed).map((part) => [window.first, window.last, name, readable(part.name), part.suppressed === "minimum" ? `fewer than ${about.minimum} answers` : WHY.difference()]);
  });
}

export function suppressedChart() {
  return {
    id: "suppressed", wide: true, plain: true,
    shown: () => true,
    title: () => "What is suppressed, and why",
    hint: (context) => {
      const { about } = context.survey, found = suppressedRows(context).length;
      if (!about.minimum) return "This survey has no minimum: nothing is suppressed.";
      const rule = `Windows with fewer than ${about.minimum} ${context.words.many} or answers are not published, nor windows from which the number of so few could be computed.`;
      return found ? `${rule} ${whole(found)} are missing for that reason:` : `${rule} Here, nothing is.`;
    },
    table: (context) => ({
      name: "suppressed", columns: [column("first", "first period"), column("last", "last period"), column("window", "window"), column("what", "what"), column("why", "why")],
      rows: suppressedRows(context),
    }),
  };
}

// How to read the numbers: sentences that come with the results.
export function notesPart() {
  const list = make("ul", { class: "notes" });
  const element = make("section", { class: "frame wide", id: "notes", "aria-labelledby": "notes-title" }, make("h3", { id: "notes-title" }, "How to read the numbers"), list);
  return {
    element,
    update: ({ survey }) => {
      const { notes, description } = survey.about;
      element.hidden = !notes.length && !description;
      list.replaceChildren(...[...(description ? [description] : []), ...notes].map((note) => make("li", {}, note)));
    },
  };
}
