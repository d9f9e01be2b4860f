// An audit: what attacks on a survey reach, beside luck, the histogram alone, and the best possible.

import { column } from "../state/tables.js";
import { capitalised, fixed, readable, whole } from "../state/words.js";
import { draw, make } from "../parts/dom.js";
import { framed, sign, textPart } from "../parts/frame.js";

const WIDE = 600; // pixels from which on a bar stands beside its name
const LETTER = 7.4;
const UNITS = { epsilon: "nats", forge: "share", place: "metres" }; // of attacks whose figures are no chances
const NOTICEABLE = 0.01; // above luck, as a part of the axis

// A figure in its unit.
export function inUnit(unit, value) {
  if (value == null) return "";
  if (unit === "chance") return value >= 1e-3 || value === 0 ? `${fixed(100 * value, 2)} %` : `${(100 * value).toExponential(1)} %`;
  if (unit === "share") return `${value > 0 ? "+" : ""}${fixed(100 * value, 2)} points`;
  if (unit === "metres") return `${whole(value)} m`;
  return fixed(value, 3) + (unit === "bits" ? " bits" : "");
}

function seenReports({ reports }) {
  return reports == null ? "all reports" : `${reports} report${reports === 1 ? "" : "s"}`;
}

function figureColumns() {
  const UNIT = 3, EXACT = 10;
  const shown = (value, row) => inUnit(row[UNIT], value);
  return [
    column("target", "target"), column("knows", "the attacker knows"), column("reports", "reports"), column("unit", null), column("luck", "luck", shown), column("histogram", "histogram", shown),
    column("attack", "measured", shown), column("low", "low", shown), column("high", "high", shown), column("trials", "trials", whole),
    column("exact", null), column("best", "computed", (value, row) => (row[EXACT] ? "" : "about ") + shown(value, row)),
  ];
}

// The figures that are drawn have everything in common but their target: groups, each with the words that head it. Groups that
// reach no more than luck are in the table only, and so are bits.
function groupsOf({ attack, figures }) {
  const groups = new Map(), among = /, among \d+ devices/, unit = UNITS[attack] ?? "chance";
  for (const figure of figures.filter((one) => one.unit === unit)) {
    const name = `${capitalised(figure.knows.replace(among, ""))}: ${seenReports(figure)}`;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push({ ...figure, named: readable(figure.target) + (among.exec(figure.knows)?.[0] ?? "") });
  }
  const above = ([, group]) => group.some((figure) => Math.abs(figure.value - (figure.luck ?? 0)) > NOTICEABLE * (unit === "chance" ? 1 : Math.abs(figure.value)));
  return [...groups].filter(above);
}

function lines(text, letters) {
  return text.split(" ").reduce((found, word) => {
    if (found.length && `${found.at(-1)} ${word}`.length <= letters) found[found.length - 1] += ` ${word}`;
    else found.push(word.slice(0, letters));
    return found;
  }, []);
}

// One bar for each figure, below or beside its whole name: what was measured is full, what is computed has an outline.
function drawAttack(box, attack) {
  const width = Math.max(260, box.clientWidth), wide = width > WIDE, left = wide ? Math.min(300, 0.34 * width) : 0, room = wide ? width - left - 245 : width - 8, step = wide ? 22 : 40;
  const groups = groupsOf(attack), all = groups.flatMap(([, figures]) => figures).flatMap((one) => [one.measured, one.exact ? one.best : null, one.luck].map((value) => value ?? 0));
  const largest = UNITS[attack.attack] ? Math.max(1e-9, ...all) : 1, at = (value) => left + room * Math.min(1, Math.max(0, value / largest)), marks = [];
  let y = 4;
  const text = (x, content, more = {}) => marks.push(draw("text", { x, y: y + 12, ...more }, content));
  for (const [name, figures] of groups) {
    for (const line of lines(name, Math.floor(width / LETTER))) {
      text(0, line, { class: "group-name" });
      y += 17;
    }
    for (const figure of figures) {
      const bar = wide ? y + 3 : y + 19, { measured, best } = figure;
      const both = measured != null && best != null, value = measured != null ? `${inUnit(figure.unit, measured)}${both && wide ? `, computed ${inUnit(figure.unit, best)}` : ""}` : `${figure.exact ? "" : "about "}${inUnit(figure.unit, best)} computed`;
      text(0, lines(figure.named, wide ? 44 : Math.floor((width - 120) / LETTER)).join("…"));
      text(width - 2, value, { "text-anchor": "end" });
      if (measured != null) marks.push(draw("rect", { class: "bar returning", x: left, y: bar, width: at(measured) - left, height: 12 }));
      if (best != null) marks.push(draw("rect", { class: "computed", x: left, y: bar, width: at(best) - left, height: 12 }));
      if (figure.low != null && figure.high != null) marks.push(draw("path", { class: "whisker", d: `M${at(figure.low)} ${bar + 6}H${at(figure.high)}` }));
      if (figure.luck) marks.push(draw("path", { class: "luck", d: `M${at(figure.luck)} ${bar - 2}v16` }));
      if (figure.histogram != null && figure.unit === "chance") marks.push(draw("circle", { class: "rings", cx: at(figure.histogram), cy: bar + 6, r: 4 }));
      y += step;
    }
    y += 10;
  }
  box.replaceChildren(draw("svg", { class: "timeline attack", width, height: y, viewBox: `0 0 ${width} ${y}`, role: "img", "aria-label": `${attack.heading}; the table has all figures` }, ...marks));
}

function attackChart(attack) {
  const has = (name) => attack.figures.some((figure) => figure[name] != null), chance = attack.figures.some((figure) => figure.unit === "chance");
  return {
    id: `attack-${attack.attack}`, shown: () => true, title: () => attack.heading, hint: () => `${attack.worst} ${attack.text} What reaches no more than luck is in the table only.`,
    key: () => [...(has("measured") ? [sign("bar returning", "measured")] : []), ...(has("low") ? [sign("interval", "its interval")] : []), sign("computed", "computed"), ...(chance ? [sign("luck", "luck"), sign("ring", "the histogram alone")] : [])],
    table: () => ({
      name: attack.heading, columns: figureColumns(),
      rows: attack.figures.map((figure) => [readable(figure.target), figure.knows, figure.reports == null ? "all" : String(figure.reports), figure.unit, figure.luck, figure.histogram, figure.measured, figure.low, figure.high, figure.trials, figure.exact, figure.best]),
    }),
    draw: (box) => drawAttack(box, attack),
  };
}

// Findings of one kind are one paragraph: the first one, and the others folded.
function findingsPart(findings) {
  const part = textPart("findings", "Findings", findings.length ? [["hint", "", "What the figures show, and somebody must know."]] : []);
  for (const code of new Set(findings.map((finding) => finding.code))) {
    const [first, ...others] = findings.filter((finding) => finding.code === code).map((finding) => finding.text);
    const more = others.length ? [make("details", {}, make("summary", {}, `${others.length} more of this kind`), ...others.map((text) => make("p", {}, text)))] : [];
    part.element.append(make("div", { class: "finding" }, make("p", {}, make("strong", {}, capitalised(code.replaceAll("-", " "))), ": ", first), ...more));
  }
  return part;
}

export function auditSections(context) {
  const { record } = context.document;
  const alarms = [...record.defects.map((text) => ["notice", "Defect.", text]), ...record.breaches.map((text) => ["notice", "Not accepted.", text])];
  const verdict = alarms.length ? [] : [["", "", record.limited ? "No limit that was given is exceeded." : "No limit was given, so this page does not say whether these figures are acceptable."]];
  const worst = record.attacks.map((attack) => ["", `${attack.heading}, at worst:`, attack.worst]).filter(([, , text]) => text);
  return [
    { id: "summary", title: "In short", parts: [textPart("in-short", "What to read if nothing else is read", [...alarms, ...worst, ...verdict]), findingsPart(record.findings)] },
    ...record.attacks.map((attack) => ({ id: attack.attack, title: attack.heading, parts: [framed(attackChart(attack), context)] })),
    { id: "terms", title: "How it was asked", parts: [textPart("how", "How it was asked, and measured", [["", "", record.asked], ["", "", record.terms]])] },
  ];
}
