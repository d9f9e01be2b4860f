// What a classifier learns under each budget: accuracy, AUC, and gaps between groups.

import { column } from "../state/tables.js";
import { choice } from "../parts/dom.js";
import { framed, sign } from "../parts/frame.js";
import { plotted } from "../parts/plotted.js";
import { fixed } from "../state/words.js";

const FIGURES = { accuracy: "Accuracy", auc: "AUC", parity_gap: "Parity gap", opportunity_gap: "Opportunity gap", accuracy_gap: "Accuracy gap" };

function learntOf({ document: shown }) {
  return shown.record.learnt;
}

function knownFigures(context) {
  return Object.keys(FIGURES).filter((name) => learntOf(context)[0]?.[name]);
}

function figureOf(context) {
  const known = knownFigures(context);
  return known.includes(context.view.figure) ? context.view.figure : known[0];
}

function sourcesOf(context) {
  return [...new Set(learntOf(context).map((one) => one.source))];
}

function sourceInk(context, source) {
  return `var(--s${sourcesOf(context).indexOf(source) % 8})`;
}

function threeDecimals(value) {
  return fixed(value, 3);
}

function learntByBudget() {
  return {
    id: "learnt-by-budget", shown: (context) => learntOf(context).length > 0, title: () => "What is learnt, by budget",
    hint: () => "Means over the runs, with standard errors. Lines across: the largest class, and a classifier that sees true records.",
    controls: (context) => [choice("figure", "Figure", knownFigures(context).map((name) => [name, FIGURES[name]]), figureOf(context), (figure) => context.set({ figure }))],
    key: (context) => sourcesOf(context).map((source) => sign(`stroke s${sourcesOf(context).indexOf(source) % 8}`, source)),
    table: (context) => ({
      name: "what is learnt",
      columns: [column("source", "learnt from"), column("eps", "eps", String), column("reveals", "reveals", threeDecimals), ...knownFigures(context).flatMap((name) => [column(name, FIGURES[name], threeDecimals), column(`${name}_error`, "standard error", threeDecimals)])],
      rows: learntOf(context).map((one) => [one.source, one.eps, one.reveals, ...knownFigures(context).flatMap((name) => [one[name].value, one[name].error])]),
    }),
    draw: (box, _, context) => {
      const figure = figureOf(context), rows = learntOf(context).filter((one) => one[figure].value !== null).map((one) => ({ ...one, y: one[figure].value, spread: one[figure].error ?? 0 }));
      const measured = rows.filter((row) => row.eps !== null), stroke = (row) => sourceInk(context, row.source);
      plotted(box, {
        width: Math.max(260, box.clientWidth), height: 380, marginLeft: 56, marginBottom: 44, marginTop: 24, ariaLabel: `${FIGURES[figure]} by budget; the table has all numbers`,
        x: { label: "eps_inf, or eps of one report", ticks: [...new Set(measured.map((row) => row.eps))], tickFormat: (value) => String(Math.round(value * 100) / 100), labelArrow: "none" }, y: { label: FIGURES[figure], grid: true, labelArrow: "none", nice: true },
        marks: [
          Plot.ruleY(rows.filter((row) => row.eps === null), { y: "y", stroke, strokeDasharray: "4 4" }),
          Plot.line(measured, { x: "eps", y: "y", z: "source", stroke, strokeWidth: 1.6 }),
          Plot.ruleX(measured.filter((row) => row.spread > 0), { x: "eps", y1: (row) => row.y - row.spread, y2: (row) => row.y + row.spread, stroke }),
          Plot.dot(measured, { x: "eps", y: "y", stroke, fill: "var(--paper)", r: 4, title: (row) => `${row.source}, eps ${row.eps}\n${FIGURES[figure]} ${threeDecimals(row.y)}` }),
        ],
      });
    },
  };
}

export function learningSections(context) {
  return [{ id: "learning", title: "Learning", parts: [framed(learntByBudget(), context)] }];
}
