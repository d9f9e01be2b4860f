// An audit: what attacks on a survey reach, beside luck, the histogram alone, and the best possible.

import { column } from "../state/tables.js";
import { label } from "../state/words.js";
import { framed, sign, textPart } from "../parts/frame.js";
import { plotted } from "../parts/plotted.js";

// A figure in its unit.
export function inUnit(unit, value) {
  if (value == null) return "";
  if (unit === "chance") return value >= 1e-3 || value === 0 ? `${(100 * value).toFixed(2)} %` : `${(100 * value).toExponential(1)} %`;
  if (unit === "share") return `${value > 0 ? "+" : ""}${(100 * value).toFixed(2)} points`;
  return value.toFixed(3) + (unit === "bits" ? " bits" : "");
}

function figureColumns() {
  const UNIT = 3, EXACT = 11;
  const shown = (value, row) => inUnit(row[UNIT], value);
  return [
    column("target", "target"), column("knows", "the attacker knows"), column("reports", "reports"), column("unit", "unit"), column("luck", "luck", shown), column("histogram", "histogram", shown),
    column("attack", "attack", shown), column("low", "low", shown), column("high", "high", shown), column("trials", "trials", (value) => value.toLocaleString("en-GB")),
    column("best", "best", (value, row) => (row[EXACT] ? "" : "about ") + shown(value, row)), column("exact", "exact", (value) => (value ? "yes" : "no")),
  ];
}

function attackChart(attack) {
  const chances = attack.figures.filter((figure) => figure.unit === "chance" && figure.value != null);
  const name = (figure) => `${figure.target} · ${figure.knows}${figure.reports == null ? " · all reports" : ` · ${figure.reports} report${figure.reports === 1 ? "" : "s"}`}`;
  return {
    id: `attack-${attack.attack}`, wide: true, plain: !chances.length, shown: () => true, title: () => attack.heading, hint: () => attack.text,
    key: () => (chances.length ? [sign("bar returning", "what the attack reaches"), sign("interval", "luck"), sign("ring", "the histogram alone")] : []),
    table: () => ({
      name: attack.heading, columns: figureColumns(),
      rows: attack.figures.map((figure) => [figure.target, figure.knows, figure.reports == null ? "all" : String(figure.reports), figure.unit, figure.luck, figure.histogram, figure.measured, figure.low, figure.high, figure.trials, figure.best, figure.exact]),
    }),
    draw: (box) => {
      const rows = chances.map((figure) => ({ ...figure, y: name(figure) })), width = Math.max(260, box.clientWidth), room = width > 600 ? 46 : 18;
      const domain = [...new Set(rows.map((row) => row.y))];
      plotted(box, {
        width, height: 56 + 22 * domain.length, marginLeft: 12 + 6.6 * Math.min(room, Math.max(...domain.map((text) => [...text].length))), marginRight: 20, marginBottom: 36, marginTop: 6, ariaLabel: `${attack.heading}; the table below has all figures`,
        x: { domain: [0, 1], label: "chance to be right", tickFormat: (value) => `${Math.round(100 * value)} %`, ticks: width > 600 ? 10 : 4, grid: true, labelArrow: "none" }, y: { label: null, domain, tickFormat: (text) => label(text, room), tickSize: 0 },
        marks: [
          Plot.barX(rows, { x: "value", y: "y", fill: "var(--pale)", insetTop: 3, insetBottom: 3, title: (row) => `${row.y}\n${inUnit("chance", row.value)}, luck ${inUnit("chance", row.luck)}` }),
          Plot.tickX(rows.filter((row) => row.luck != null), { x: "luck", y: "y", stroke: "var(--ink)", strokeWidth: 2.5 }),
          Plot.dot(rows.filter((row) => row.histogram != null), { x: "histogram", y: "y", stroke: "var(--accent)", strokeWidth: 2, r: 4.5 }),
        ],
      });
    },
  };
}

export function auditSections(context) {
  const { record } = context.document;
  const alarms = [...record.defects.map((text) => ["notice", "Defect.", text]), ...record.breaches.map((text) => ["notice", "Above its limit.", text])];
  const calm = alarms.length ? [] : [["", "", "No limit is exceeded, and no measured figure contradicts what is computed."]];
  return [
    { id: "summary", title: "In short", parts: [textPart("in-short", "What to read if nothing else is read", [...alarms, ...calm]), textPart("findings", "Findings", record.findings.map((finding) => ["finding", finding.code, finding.text]))] },
    ...record.attacks.map((attack) => ({ id: attack.attack, title: attack.heading, parts: [framed(attackChart(attack), context)] })),
    { id: "terms", title: "Terms", parts: [textPart("how", "How it was measured", [["", "", record.terms]])] },
  ];
}
