// One window in detail: the values of an attribute, and how long returning ones had been away.

import { entry, isKnown, product } from "../state/quantities.js";
import { readSpan } from "../state/permalink.js";
import { placesOf, windowName, windowsOf } from "../state/series.js";
import { column } from "../state/tables.js";
import { label, number, percent, readable, whole } from "../state/words.js";
import { growingChoice, make } from "../parts/dom.js";
import { sign } from "../parts/frame.js";
import { plotted } from "../parts/plotted.js";
import { capitalised, percentShare } from "./attribute.js";

const KINDS = { ever: "Ever so far", cumulative: "Since the beginning", year: "Years", month: "Months", "year so far": "This year so far", "month so far": "This month so far", "week so far": "This week so far", "day so far": "This day so far", week: "Weeks", day: "Days", hour: "Hours", period: "Periods" };
const MOST_BARS = 60;

// The window that the address names, or the longest one with answers, the latest.
export function windowOf(context) {
  const windows = windowsOf(context.survey), wanted = readSpan(context.view.window);
  const found = wanted && windows.find((window) => window.first === wanted.first && window.last === wanted.last);
  if (found) return found;
  const published = windows.filter((window) => !window.suppressed), answered = published.filter((window) => window.attributes?.length);
  const longest = (answered.length ? answered : published.length ? published : windows)[0];
  return windows.filter((window) => longest && window.last - window.first === longest.last - longest.first && !window.suppressed).at(-1) ?? longest;
}

export function windowControl(context) {
  const order = Object.keys(KINDS), chosen = windowOf(context);
  const windows = [...windowsOf(context.survey)].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || a.first - b.first || a.last - b.last);
  const entries = windows.map((window) => ({
    group: KINDS[window.kind], value: `${window.first}-${window.last}`, text: () => windowName(context.survey, window) + (window.suppressed ? " (suppressed)" : "") + (window.presence_lost ? " (may count devices twice)" : ""),
  }));
  return growingChoice(context, "window", "Window", entries, chosen ? `${chosen.first}-${chosen.last}` : "", (window) => context.set({ window }));
}

export function partOf(window, attribute) {
  return window?.attributes?.find((part) => part.name === attribute.name) ?? null;
}

export function whySuppressed(context, window, part = null) {
  const reason = part?.suppressed ?? window?.suppressed;
  if (reason === "minimum") return `Suppressed: fewer than ${context.survey.about.minimum} ${part ? "answers" : context.words.many}.`;
  if (reason) return "Suppressed: its difference to a shorter window would be the number of a few.";
  if (window && !window.attributes?.length) return "Windows of several periods have no answers where numbers carry noise for presence: choose a single period.";
  return part ? "No answers." : "Nothing is published yet.";
}

export function windowChart(attribute) {
  return {
    id: `${attribute.name}-window`, wide: attribute.values.length > 12,
    shown: ({ survey }) => windowsOf(survey).length > 0,
    title: () => `${capitalised(attribute.name)} in one window`,
    hint: (context) => {
      const window = windowOf(context), part = partOf(window, attribute);
      if (!part?.values) return whySuppressed(context, window, part);
      const counted = window.first === window.last ? "" : ", each with the first value in the window";
      return `${capitalised(context.words.people)} by ${readable(attribute.name)}, from ${whole(part.n)} answers${counted}. Asked with ${attribute.mechanism}.${part.places ? ` The page has the ${whole(part.places.length)} most frequent of ${whole(attribute.values.length)} values.` : ""}`;
    },
    controls: (context) => [windowControl(context)],
    key: (context) => {
      const values = partOf(windowOf(context), attribute)?.values;
      if (!values) return [];
      const signs = [sign("bar returning", "consistent histogram"), sign("dot", "unbiased estimate"), sign("interval", "its 95 % interval")];
      if (values.smoothed) signs.push(sign("ring", "smoothed with earlier periods"));
      if (values.truth) signs.push(sign("truth", "truth"));
      return signs;
    },
    table: (context) => windowTable(context, attribute),
    draw: (box, table, context) => {
      if (!table().rows.length) box.replaceChildren();
      else bars(box, table().rows, `${capitalised(attribute.name)}: values of one window`, context.words.people);
    },
  };
}

function windowTable(context, attribute) {
  const window = windowOf(context), part = partOf(window, attribute), { words } = context;
  const columns = [
    column("value", readable(attribute.name)), column(words.people, words.people, number), column("low", "low", number), column("high", "high", number), column("share", "share", percentShare),
    column("consistent", "consistent", number), column("smoothed", "smoothed", number), column("truth", "truth", whole),
  ];
  const values = part?.values, name = `${attribute.name} in one window`;
  if (!values || !isKnown(window.visitors)) return { name, columns, rows: [] };
  const rows = placesOf(part).map((place, at) => {
    const share = entry(values.share, at), people = product(share, window.visitors), scale = (one) => (one == null ? null : one * window.visitors.value);
    return [attribute.values.at(place), people.value, people.low, people.high, share.value, scale(values.consistent?.[at]), scale(values.smoothed?.value[at]), values.truth?.[at] ?? null];
  });
  if (part.places || attribute.role === "area" || (!attribute.ordered && attribute.role === "plain" && rows.length > 12)) rows.sort((a, b) => b[1] - a[1]);
  return { name, columns, rows };
}

// Bars with estimates and intervals; rows as in the table above.
export function bars(box, rows, name, unit) {
  const width = Math.max(240, box.clientWidth), shown = rows.slice(0, MOST_BARS), y = (row) => row[0];
  const longest = Math.min(24, Math.max(...shown.map((row) => [...row[0]].length)));
  const marks = [
    Plot.ruleX([0], { stroke: "var(--soft)" }),
    Plot.barX(shown, { x: (row) => row[5], y, fill: "var(--pale)", insetTop: 3, insetBottom: 3 }),
    Plot.ruleY(shown, { x1: (row) => row[2], x2: (row) => row[3], y, stroke: "var(--ink)", strokeWidth: 1.4 }),
    Plot.dot(shown, { x: (row) => row[1], y, r: 3, fill: "var(--ink)" }),
    Plot.dot(shown.filter((row) => row[6] != null), { x: (row) => row[6], y, r: 5, stroke: "var(--accent)", strokeWidth: 2 }),
    Plot.dot(shown.filter((row) => row[7] != null), { x: (row) => row[7], y, r: 4.5, symbol: "diamond", stroke: "var(--warm)", strokeWidth: 2 }),
    Plot.tip(shown, Plot.pointerY({ x: (row) => row[1], y, fill: "var(--paper)", stroke: "var(--soft)", title: (row) => `${label(row[0], 60)}\n${number(row[1])} (${number(row[2])} to ${number(row[3])})${row[4] == null ? "" : `, ${percent(row[4] * 100)}`}` })),
  ];
  plotted(box, {
    width, height: 48 + 24 * shown.length, marginLeft: 16 + 7 * longest, marginRight: 16, marginTop: 6, marginBottom: 36, ariaLabel: name,
    x: { label: unit, grid: true, ticks: Math.max(3, Math.floor(width / 110)), tickFormat: number, labelAnchor: "right", labelArrow: "none" },
    y: { label: null, domain: shown.map(y), tickFormat: (text) => label(text, 24), tickSize: 0 }, marks,
  });
  if (rows.length > MOST_BARS) box.append(make("p", { class: "hint" }, `The first ${MOST_BARS} of ${whole(rows.length)} values are drawn. The table has all.`));
}

export function gapsChart() {
  return {
    id: "gaps",
    shown: (context) => (windowOf(context)?.gaps ?? []).some((gap) => gap.visitors.value > 0),
    title: ({ words }) => `How long returning ${words.many} had been away`,
    hint: (context) => `Periods since their last report, for the first report of each in the window ${windowName(context.survey, windowOf(context))}.`,
    controls: (context) => [windowControl(context)],
    table: (context) => ({
      name: "gaps",
      columns: [column("away", "periods away"), column(context.words.many, context.words.many, whole), column("low", "low", whole), column("high", "high", whole)],
      rows: windowOf(context).gaps.map((gap) => [gap.shortest === gap.longest ? `${gap.shortest}` : `${gap.shortest}–${gap.longest}`, gap.visitors.value, gap.visitors.low, gap.visitors.high]),
    }),
    draw: (box, table, context) => {
      const { rows } = table();
      plotted(box, {
        height: 260, marginLeft: 54, marginBottom: rows.length > 10 ? 56 : 40, ariaLabel: "Periods since the last report",
        x: { label: "periods away", domain: rows.map((row) => row[0]), labelArrow: "none", tickRotate: rows.length > 10 ? -50 : 0 }, y: { label: context.words.many, grid: true, tickFormat: number, ticks: 5, labelArrow: "none" },
        marks: [
          Plot.barY(rows, { x: (row) => row[0], y: (row) => row[1], fill: "var(--accent)", title: (row) => `${row[0]} periods: ${whole(row[1])}` }),
          Plot.ruleX(rows.filter((row) => row[3] > row[2]), { x: (row) => row[0], y1: (row) => row[2], y2: (row) => row[3], stroke: "var(--ink)" }),
          Plot.ruleY([0], { stroke: "var(--soft)" }),
        ],
      });
    },
  };
}
