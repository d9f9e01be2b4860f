// One window in detail: the values of an attribute or its groups, the busiest areas, and how long returning ones were away.

import { UNKNOWN, entry, isKnown, product } from "../state/quantities.js";
import { readSpan } from "../state/permalink.js";
import { newestLike, placesOf, rankedValues, windowName, windowsOf } from "../state/series.js";
import { column } from "../state/tables.js";
import { capitalised, dayOf, label, lengthName, number, percent, percentShare, readable, timeOf, whole } from "../state/words.js";
import { choice, dayInput } from "../parts/dom.js";
import { firstRows, sign } from "../parts/frame.js";
import { plotted } from "../parts/plotted.js";

const KINDS = { ever: "ever so far", cumulative: "all so far", year: "a year", month: "a month", "year so far": "this year so far", "month so far": "this month so far", "week so far": "this week so far", "day so far": "this day so far", week: "a week", rolling: "the last days", day: "a day", hour: "an hour", period: "" };

const FULL = 0.02; // the share of full sets from which on larger ones matter

// The window that the address names, or the longest one with answers, the latest.
export function windowOf(context) {
  const windows = windowsOf(context.survey), wanted = readSpan(context.view.window);
  const found = wanted && windows.find((window) => window.first === wanted.first && window.last === wanted.last);
  if (found) return found;
  const published = windows.filter((window) => !window.suppressed), answered = published.filter((window) => window.attributes?.length);
  return newestLike(answered.length ? answered : published.length ? published : windows);
}

// The day of an item { begin }, and its time where the day has several: two fields, from which another one is chosen.
export function pickedTime({ survey }, items, chosen, choose) {
  const day = dayOf(chosen.begin), same = items.filter((item) => dayOf(item.begin) === day);
  const nearest = (wanted) => items.find((item) => dayOf(item.begin) >= wanted && timeOf(item.begin) >= timeOf(chosen.begin)) ?? items.findLast((item) => dayOf(item.begin) <= wanted) ?? items[0];
  const times = same.map((item, at) => [at, dayOf(item.begin) === day ? windowName(survey, item).match(/\d\d:\d\d( [+-]\d\d:\d\d)?$/)?.[0] ?? "" : windowName(survey, item)]);
  return [
    ...(items.length > 1 ? [dayInput("day", "Date", day, [dayOf(items[0].begin), dayOf(items.at(-1).begin)], (wanted) => choose(nearest(wanted)))] : []),
    ...(same.length > 1 ? [choice("time", "at", times, same.indexOf(chosen), (at) => choose(same[at]))] : [])];
}

export function windowControls(context) {
  const { survey } = context, windows = windowsOf(survey), chosen = windowOf(context);
  if (!chosen) return [];
  const kinds = Object.keys(KINDS).filter((kind) => windows.some((window) => window.kind === kind));
  const own = (kind) => windows.filter((window) => window.kind === kind).sort((a, b) => a.last - b.last), set = ({ first, last }) => context.set({ window: `${first}-${last}` });
  const names = kinds.map((kind) => [kind, kind === "period" ? lengthName(survey.about).replace(/^1 (?=h)/, "an ").replace(/^1 /, "a ") : KINDS[kind]]);
  const length = choice("length", "Show", names, chosen.kind, (kind) => set(own(kind).findLast((window) => window.first <= chosen.last) ?? own(kind)[0]));
  const grows = chosen.kind === "cumulative", single = kinds.includes("day") ? "day" : kinds.at(-1); // all that grow begin on the same day
  return [...(kinds.length > 1 ? [length] : []), ...(grows ? pickedTime(context, own(single), { begin: "" }, set) : pickedTime(context, own(chosen.kind), chosen, set))];
}

export function partOf(window, attribute) {
  return window?.attributes?.find((part) => part.name === attribute.name) ?? null;
}

// What the shares of an attribute are shares of: different devices, or all reports of a window, which are visits.
export function everybodyOf(window, part) {
  return (isVisits(part) ? window?.visits : window?.visitors) ?? UNKNOWN;
}

export function isVisits(part) {
  return part?.counted === "all reports in the window";
}

export function whySuppressed(context, window, part = null) {
  const reason = part?.suppressed ?? window?.suppressed;
  if (reason === "minimum") return `Not shown: fewer than ${context.survey.about.minimum} ${part ? "answers" : context.words.many}.`;
  if (reason) return "Suppressed: its difference to a shorter time would be the number of a few.";
  if (window && !window.attributes?.length) return `No answers are published for this time: choose ${lengthName(context.survey.about)}.`;
  return part ? "No answers." : "Nothing is published yet.";
}

// What a view of one window says first: when it was, or why there is nothing.
export function windowHint(context, attribute, said) {
  const window = windowOf(context), part = partOf(window, attribute);
  if (!part?.values) return whySuppressed(context, window, part);
  return `${windowName(context.survey, window)}${window.presence_lost ? " (may count devices twice)" : ""}${said(part, window)}`;
}

export function nowView(attribute) {
  const groups = Object.keys(attribute.groups ?? {}), grouped = (context) => groups.length > 0 && context.view[`of.${attribute.name}`] === "groups";
  return {
    see: "now", name: "Now",
    shown: ({ survey }) => windowsOf(survey).length > 0,
    hint: (context) => windowHint(context, attribute, (part, window) => `: ${context.words.people} by ${readable(attribute.name)}, from ${whole(part.n)} answers${answersOf(window, part, context.words)}.${part.places ? ` The page has the ${whole(part.places.length)} most frequent of ${whole(attribute.values.length)} values.` : ""}${setsHint(context, attribute, part)}`),
    controls: (context) => [...windowControls(context), ...(groups.length ? [choice("of", "Of", [["values", "each value"], ["groups", "groups"]], grouped(context) ? "groups" : "values", (of) => context.set({ [`of.${attribute.name}`]: of }))] : [])],
    key: (context) => {
      const values = partOf(windowOf(context), attribute)?.values;
      if (!values || grouped(context)) return values ? [sign("dot", "estimate"), sign("interval", "its 95 % interval")] : [];
      return [sign("bar returning", attribute.several ? "best fit: none below 0, none above all" : "best fit: none below 0, all add up"), sign("dot", "estimate"), sign("interval", "its 95 % interval"), ...(values.nowcast ? [sign("ring", "nowcast, with earlier periods")] : []), ...(values.truth ? [sign("truth", "truth")] : [])];
    },
    table: (context) => (grouped(context) ? groupTable(context, attribute, groups) : valueTable(context, attribute)),
    draw: (box, table, context) => bars(box, table().rows, attribute, context),
  };
}

// Which answers a window has: of longer times each device's first one, or those of all visits.
function answersOf(window, part, words) {
  if (isVisits(part)) return ` in a period on average. These are visits: ${words.many} that came several times are counted each time. Answers are published of ${whole(part.periods)} of ${whole(window.last - window.first + 1)} periods`;
  return window.first === window.last ? "" : ", each with the first one";
}

// Of sets and thresholds: what the numbers count, how large sets are, and whether many are larger than what is counted.
function setsHint({ words }, { several, mechanism }, { sizes }) {
  if (mechanism === "threshold") return ` ${capitalised(words.many)} above a part of the range, on average over it.`;
  if (!several) return "";
  const mean = isKnown(sizes?.mean) ? ` On average they have ${number(sizes.mean.value)}.` : "";
  const full = sizes?.full?.low > FULL ? ` At least ${percentShare(sizes.full.low)} have ${several} or more, of which ${several} are counted: these numbers may be too low.` : "";
  return ` ${capitalised(words.many)} with it: they can have several, so these do not add up to all.${mean}${full}`;
}

// Of sets, groups are mean numbers of their values.
function groupTable(context, attribute, names) {
  const window = windowOf(context), part = partOf(window, attribute), shares = part?.groups?.share, everybody = everybodyOf(window, part);
  const columns = [column("group", "group"), column(context.words.people, context.words.people, number), column("low", "low", number), column("high", "high", number), column("share", "share", percentShare)];
  const rows = shares && isKnown(everybody) ? names.map((name, at) => {
    const share = entry(shares, at), people = attribute.several ? share : product(share, everybody);
    return [name, people.value, people.low, people.high, share.value];
  }) : [];
  if (attribute.several) return { name: `${attribute.name} groups`, columns: [columns[0], column("values", "values of it, on average", number), ...columns.slice(2, 4)], rows: rows.map((row) => row.slice(0, 4)) };
  return { name: `${attribute.name} groups`, columns, rows };
}

function valueTable(context, attribute) {
  const window = windowOf(context), part = partOf(window, attribute), { words } = context;
  const columns = [
    column("value", readable(attribute.name)), column(words.people, words.people, number), column("low", "low", number), column("high", "high", number), column("share", "share", percentShare),
    column("consistent", "best fit", number), column("nowcast", "nowcast", number), column("truth", "truth", whole),
  ];
  const values = part?.values, name = `${attribute.name} now`, everybody = everybodyOf(window, part);
  if (!values || !isKnown(everybody)) return { name, columns, rows: [] };
  const rows = placesOf(part).map((place, at) => {
    const share = entry(values.share, at), people = product(share, everybody), scale = (one) => (one == null ? null : one * everybody.value);
    return [attribute.values.at(place), people.value, people.low, people.high, share.value, scale(values.consistent?.[at]), scale(values.nowcast?.value[at]), values.truth?.[at] ?? null];
  });
  if (part.places || attribute.role === "area" || (!attribute.ordered && attribute.role === "plain" && rows.length > 12)) rows.sort((a, b) => b[1] - a[1]);
  return { name, columns, rows };
}

// Bars with estimates and intervals; rows as in the tables above. There are no people below 0, so nothing is drawn there.
function bars(box, rows, attribute, context) {
  if (!rows.length) return box.replaceChildren();
  const width = Math.max(240, box.clientWidth), [shown, more] = firstRows(context, attribute.name, rows), y = (row) => row[0];
  const longest = Math.min(24, Math.max(...shown.map((row) => [...row[0]].length)));
  const marks = [
    Plot.barX(shown, { x: (row) => row[5] ?? row[1], y, fill: "var(--pale)", insetTop: 3, insetBottom: 3 }),
    Plot.ruleY(shown, { x1: (row) => row[2], x2: (row) => row[3], y, stroke: "var(--ink)", strokeWidth: 1.4 }),
    Plot.dot(shown, { x: (row) => row[1], y, r: 3, fill: "var(--ink)" }),
    Plot.dot(shown.filter((row) => row[6] != null), { x: (row) => row[6], y, r: 5, stroke: "var(--accent)", strokeWidth: 2 }),
    Plot.dot(shown.filter((row) => row[7] != null), { x: (row) => row[7], y, r: 4.5, symbol: "diamond", stroke: "var(--warm)", strokeWidth: 2 }),
    Plot.ruleX([0], { stroke: "var(--soft)" }),
    Plot.tip(shown, Plot.pointerY({ x: (row) => row[1], y, fill: "var(--paper)", stroke: "var(--soft)", title: (row) => `${label(row[0], 60)}\n${number(row[1])} (${number(row[2])} to ${number(row[3])})${row[4] == null ? "" : `, ${percent(row[4] * 100)}`}` })),
  ];
  plotted(box, {
    width, height: 48 + 24 * shown.length, marginLeft: 16 + 7 * longest, marginRight: 16, marginTop: 6, marginBottom: 36, ariaLabel: `${capitalised(attribute.name)}; the table has all numbers`,
    x: { domain: [0, Math.max(1, ...shown.map((row) => row[3] ?? row[1]))], clamp: true, label: context.words.people, grid: true, ticks: Math.max(2, Math.floor((width - 32 - 7 * longest) / 80)), tickFormat: number, labelAnchor: "right", labelArrow: "none" },
    y: { label: null, domain: shown.map(y), tickFormat: (text) => label(text, 24), tickSize: 0 }, marks,
  });
  box.append(...more);
}

export function busiestView(attribute) {
  const rankingOf = (context) => partOf(windowOf(context), attribute)?.ranking;
  return {
    see: "busiest", name: "Busiest", plain: true,
    shown: (context) => attribute.role === "area" && rankedValues(context.survey, attribute).length > 1,
    hint: (context) => windowHint(context, attribute, () => (rankingOf(context) ? `. All ${rankingOf(context).places.length} places are right with a probability of ${percent(rankingOf(context).probability * 100, 0)}.` : "")),
    controls: windowControls,
    table: (context) => ({
      name: `${attribute.name} busiest`,
      columns: [column("place", "place", number), column("value", readable(attribute.name)), column(context.words.people, context.words.people, number), column("low", "low", number), column("high", "high", number), column("probability", "place is right", (value) => percent(value * 100, 0))],
      rows: (rankingOf(context)?.places ?? []).map((place) => [place.place, place.value, place.people.value, place.people.low, place.people.high, place.probability]),
    }),
  };
}

export function gapsView() {
  return {
    see: "away", name: "Time away",
    shown: (context) => (windowOf(context)?.gaps ?? []).filter((gap) => gap.visitors.value > 0).length > 1,
    hint: (context) => `How long returning ${context.words.many} had been away before their first report, ${windowName(context.survey, windowOf(context))}.`,
    controls: windowControls,
    table: (context) => ({
      name: "gaps",
      columns: [column("away", `away, in ${lengthName(context.survey.about, 2).replace(/^\d+ /, "")}`), column(context.words.many, context.words.many, whole), column("low", "low", whole), column("high", "high", whole)],
      rows: windowOf(context).gaps.map((gap) => [gap.shortest === gap.longest ? `${gap.shortest}` : `${gap.shortest}–${gap.longest}`, gap.visitors.value, gap.visitors.low, gap.visitors.high]),
    }),
    draw: (box, table, context) => {
      const { rows, columns: [{ label: away }] } = table(), step = Math.ceil(rows.length / 16);
      plotted(box, {
        height: 260, marginLeft: 54, marginBottom: 40, ariaLabel: "Time since the last report; the table has all numbers",
        x: { label: away, domain: rows.map((row) => row[0]), labelArrow: "none", tickFormat: (text, at) => (at % step ? "" : text), tickSize: 0 }, y: { label: context.words.many, grid: true, tickFormat: number, ticks: 5, labelArrow: "none" },
        marks: [
          Plot.barY(rows, { x: (row) => row[0], y: (row) => row[1], fill: "var(--accent)", title: (row) => `${away} ${row[0]}: ${whole(row[1])}` }),
          Plot.ruleX(rows.filter((row) => row[3] > row[2]), { x: (row) => row[0], y1: (row) => row[2], y2: (row) => row[3], stroke: "var(--ink)" }),
          Plot.ruleY([0], { stroke: "var(--soft)" }),
        ],
      });
    },
  };
}
