// An evaluation: errors of methods where the truth is known, by budget, and against what theory says.

import { column } from "../state/tables.js";
import { choice, draw, make } from "../parts/dom.js";
import { framed, textPart } from "../parts/frame.js";
import { plotted } from "../parts/plotted.js";

const SHAPES = { smp: "Circle", spl: "Square", "rs+fd": "Diamond", "rs+rfd": "Star" };
const SYMBOLS = { smp: "circle", spl: "square", "rs+fd": "diamond", "rs+rfd": "star" };
const BEST = 5; // methods that are drawn before somebody asks for others
const DASHES = { exact: null, tuple: null, attribute: "6 4", published: "2 4" };

function power(value) {
  return value.toExponential(2);
}

function scoresOf({ document: shown }) {
  return shown.record.scores;
}

function correctionOf(context) {
  const known = Object.keys(scoresOf(context)[0]?.mse ?? {});
  return known.includes(context.view.correction) ? context.view.correction : known.includes("norm-sub") ? "norm-sub" : known[0];
}

// All methods, the one with the smallest error first: of their headline figures, over all budgets.
export function methodsOf(context) {
  const errors = new Map();
  for (const score of scoresOf(context)) errors.set(score.label, (errors.get(score.label) ?? 0) + Math.log(score.mse[score.headline].value));
  return [...errors.keys()].sort((a, b) => errors.get(a) - errors.get(b));
}

// The best ones; or those with all words of the filter in their names.
function chosenMethods(context) {
  const words = (context.view.methods ?? "").toLocaleLowerCase().split(/\s+/).filter(Boolean), all = methodsOf(context);
  return words.length ? all.filter((name) => words[0] === "all" || words.every((word) => name.toLocaleLowerCase().includes(word))) : all.slice(0, BEST);
}

function methodsControl(context) {
  const input = make("input", { type: "search", name: "methods", size: 18, value: context.view.methods ?? "", placeholder: `the best ${BEST}; all; smp …`, oninput: (event) => context.set({ methods: event.target.value }) });
  return make("label", { class: "choice" }, make("span", {}, "Methods"), input);
}

// An entry of the key: the colour, the dashes and the shape of a method.
function methodSign(context, name) {
  const score = scoresOf(context).find((one) => one.label === name), shape = d3[`symbol${SHAPES[score.solution] ?? "Circle"}`];
  const drawn = draw("svg", { width: 34, height: 14, viewBox: "-17 -7 34 14", "aria-hidden": "true" },
    draw("path", { d: "M-16 0H16", stroke: ink(context, score), "stroke-width": 1.6, "stroke-dasharray": DASHES[score.terms] }),
    draw("path", { d: d3.symbol(shape, 44)(), stroke: ink(context, score), fill: "var(--paper)", "stroke-width": 1.5 }));
  return make("span", {}, drawn, name);
}

function ink(context, score) {
  return `var(--s${methodsOf(context).indexOf(score.label) % 8})`;
}

function byBudget() {
  return {
    id: "by-budget", shown: (context) => scoresOf(context).length > 0, title: () => "Error by budget",
    hint: (context) => `The best ${BEST} of ${methodsOf(context).length} methods unless you choose others. MSE_avg: the mean squared error of shares over runs, periods, attributes and values, with standard errors over the runs. The axis of errors is logarithmic.`,
    controls: (context) => [choice("correction", "Correction of the estimate", Object.keys(scoresOf(context)[0].mse).map((name) => [name, name]), correctionOf(context), (correction) => context.set({ correction })), methodsControl(context)],
    key: (context) => chosenMethods(context).map((name) => methodSign(context, name)),
    table: (context) => {
      const correction = correctionOf(context);
      return {
        name: "error by budget", columns: [column("method", "method"), column("terms", "terms"), column("eps", "eps", String), column("mse", `MSE ${correction}`, power), column("error", "standard error", power)],
        rows: scoresOf(context).map((score) => [score.method, score.terms, score.eps, score.mse[correction].value, score.mse[correction].error]),
      };
    },
    draw: (box, _, context) => {
      const correction = correctionOf(context), chosen = new Set(chosenMethods(context));
      const rows = scoresOf(context).filter((score) => chosen.has(score.label)).map((score) => ({ ...score, y: score.mse[correction].value, spread: score.mse[correction].error ?? 0 })).filter((row) => row.y > 0);
      const width = Math.max(260, box.clientWidth), stroke = (row) => ink(context, row);
      plotted(box, {
        width, height: 380, marginLeft: 64, marginBottom: 44, marginTop: 24, ariaLabel: "Error by budget; the table has all numbers", symbol: { type: "identity" },
        x: { label: "eps_inf, or eps of one-shot methods", ticks: [...new Set(rows.map((row) => row.eps))], tickFormat: (value) => String(Math.round(value * 100) / 100), labelArrow: "none" }, y: { type: "log", label: "MSE_avg", grid: true, tickFormat: (value) => value.toExponential(0), ticks: 6, labelArrow: "none" },
        marks: [
          ...methodsOf(context).map((name) => {
            const own = rows.filter((row) => row.label === name).sort((a, b) => a.eps - b.eps);
            return own.length ? Plot.line(own, { x: "eps", y: "y", stroke: ink(context, own[0]), strokeDasharray: DASHES[own[0].terms], strokeWidth: 1.6 }) : null;
          }),
          Plot.ruleX(rows.filter((row) => row.spread > 0 && row.y > row.spread), { x: "eps", y1: (row) => row.y - row.spread, y2: (row) => row.y + row.spread, stroke }),
          Plot.dot(rows, { x: "eps", y: "y", stroke, fill: "var(--paper)", symbol: (row) => SYMBOLS[row.solution] ?? "circle", r: 4, title: (row) => `${row.label}, eps ${row.eps}\nMSE ${power(row.y)}` }),
        ],
      });
    },
  };
}

function againstTheory() {
  const rowsOf = (context) => scoresOf(context).filter((score) => score.mse.raw && score.mse.raw.value > 0 && score.expected_mse > 0);
  return {
    id: "against-theory", shown: (context) => rowsOf(context).length > 0, title: () => "Raw estimates: measured error against theory",
    hint: () => "Where measurement and theory agree, points lie on the line.",
    table: (context) => ({
      name: "error against theory", columns: [column("method", "method"), column("terms", "terms"), column("eps", "eps", String), column("theory", "MSE in theory", power), column("measured", "measured MSE", power), column("error", "standard error", power)],
      rows: rowsOf(context).map((score) => [score.method, score.terms, score.eps, score.expected_mse, score.mse.raw.value, score.mse.raw.error]),
    }),
    draw: (box, _, context) => {
      const rows = rowsOf(context), ends = [Math.min(...rows.map((row) => row.expected_mse)), Math.max(...rows.map((row) => row.expected_mse))], width = Math.max(260, box.clientWidth);
      const axis = { type: "log", grid: true, tickFormat: (value) => value.toExponential(0), ticks: 5, labelArrow: "none" };
      plotted(box, {
        width, height: Math.min(420, width), marginLeft: 64, marginBottom: 40, ariaLabel: "Measured error against theory; the table has all numbers", x: { ...axis, label: "MSE in theory" }, y: { ...axis, label: "measured MSE" }, symbol: { type: "identity" },
        marks: [
          Plot.line([[ends[0], ends[0]], [ends[1], ends[1]]], { stroke: "var(--soft)", strokeDasharray: "3 4" }),
          Plot.dot(rows, { x: "expected_mse", y: (row) => row.mse.raw.value, stroke: (row) => ink(context, row), symbol: (row) => SYMBOLS[row.solution] ?? "circle", r: 4, title: (row) => `${row.label}, eps ${row.eps}\ntheory ${power(row.expected_mse)}, measured ${power(row.mse.raw.value)}` }),
        ],
      });
    },
  };
}

function bestFirst(context) {
  return [...scoresOf(context)].sort((a, b) => a.eps - b.eps || a.rmse[a.headline] - b.rmse[b.headline]);
}

function allFigures() {
  return {
    id: "figures", plain: true, shown: (context) => scoresOf(context).length > 0, title: () => "All figures",
    hint: () => "The best first, for each budget. Headline: the correction that goes with the method (clip for the papers' variants, Norm-Sub for ours, ibu for ordered mechanisms); RMSE is the root of its MSE. Reveals: the loss of one report between any two people, computed from the channel, whatever budget was declared. Theory: the MSE of the raw estimate in closed form.",
    table: (context) => {
      const corrections = Object.keys(scoresOf(context)[0].mse);
      return {
        name: "all figures",
        columns: [column("method", "method"), column("terms", "terms"), column("eps", "eps", String), column("reveals", "reveals", (value) => value.toFixed(3)), ...corrections.map((name) => column(`mse_${name}`, `MSE ${name}`, power)), column("theory", "theory", power), column("headline", "headline"), column("rmse", "RMSE", (value) => value.toFixed(4))],
        rows: bestFirst(context).map((score) => [score.method, score.terms, score.eps, score.per_report.whole, ...corrections.map((name) => score.mse[name].value), score.expected_mse, score.headline, score.rmse[score.headline]]),
      };
    },
  };
}

// How far estimated places are off: only of evaluations on a grid.
function placeErrors() {
  const rowsOf = (context) => scoresOf(context).flatMap((score) => Object.entries(score.places).map(([name, errors]) => [score.method, score.eps, name, errors.metres.value, errors.metres.error, errors.areas?.value, errors.areas?.error]));
  const metres = (value) => value.toFixed(0), share = (value) => value.toFixed(4);
  return {
    id: "place-errors", plain: true, shown: (context) => rowsOf(context).length > 0, title: () => "Places: metres and areas",
    hint: () => "Metres: by how much people must be moved, on average, to be where they are. Areas: the root mean square error of an area's share. Budgets of mechanisms for places are for two positions the survey's radius apart, and those of the others for any two.",
    table: (context) => ({
      name: "errors of places",
      columns: [column("method", "method"), column("eps", "eps", String), column("attribute", "attribute"), column("metres", "metres", metres), column("metres_error", "standard error", metres), column("areas", "areas", share), column("areas_error", "standard error", share)],
      rows: rowsOf(context),
    }),
  };
}

export function evaluationSections(context) {
  const failed = context.document.record.infeasible.map((one) => ["hint", `${one.method} at eps ${one.eps}:`, one.infeasible]);
  return [{ id: "errors", title: "Errors", parts: [...[placeErrors(), byBudget(), againstTheory(), allFigures()].map((spec) => framed(spec, context)), textPart("infeasible", "Not possible", failed)] }];
}
