// One attribute over time: a small drawing for each value, of people, of shares, or of changes against a baseline.

import { against, baselineOf, comparison, matchedBy, matching, periodsBetween } from "../state/baseline.js";
import { isKnown } from "../state/quantities.js";
import { readSpan } from "../state/permalink.js";
import { remembered } from "../state/remembered.js";
import { periodsOf, pointAt, rankedValues, valueSeries } from "../state/series.js";
import { column } from "../state/tables.js";
import { dayOf, number, percent, readable, signed, wall, whole, windowLabel } from "../state/words.js";
import { choice, make } from "../parts/dom.js";
import { sign } from "../parts/frame.js";
import { multiples } from "../parts/multiples.js";

const EVERYBODY = -1;
const FEW = 8;

// The values that the filter leaves, the most frequent first.
export function shownValues(context, attribute) {
  const wanted = (context.view[`filter.${attribute.name}`] ?? "").toLocaleLowerCase();
  const places = rankedValues(context.survey, attribute);
  return wanted ? places.filter((place) => attribute.values.at(place).toLocaleLowerCase().includes(wanted)) : places;
}

// Where there are many values: a field that leaves some of them.
export function filterControls(context, attribute) {
  if (attribute.values.length <= FEW) return [];
  const name = `filter.${attribute.name}`;
  const input = make("input", { type: "search", name, value: context.view[name] ?? "", size: 14, oninput: (event) => context.set({ [name]: event.target.value }) });
  return [make("label", { class: "choice" }, make("span", {}, "Only names with"), input)];
}

function allShown(context, id) {
  return { all: context.view.all === id, show: (all) => context.set({ all: all ? id : "" }) };
}

export function measureOf(context) {
  return context.view.show === "share" ? "share" : "people";
}

export function measureChoice(context) {
  return choice("show", "Show", [["people", `numbers of ${context.words.people}`], ["share", "shares in %"]], measureOf(context), (show) => context.set({ show }));
}

export function overTimeChart(attribute) {
  const id = `${attribute.name}-over-time`;
  return {
    id, wide: true,
    shown: ({ survey }) => rankedValues(survey, attribute).length > 0,
    title: () => `${capitalised(attribute.name)} over time`,
    hint: ({ words }) => `${words.kicker === "Mobility report" ? "People" : "Devices"} with each value in each period, with intervals of 95 %. Every drawing has its own scale.`,
    controls: (context) => [measureChoice(context), ...filterControls(context, attribute)],
    key: ({ survey }) => seriesKey(survey, attribute),
    table: (context) => overTimeTable(context, attribute),
    draw: (box, _, context) => {
      const measure = measureOf(context), { survey } = context;
      const cells = shownValues(context, attribute).map((place) => ({
        id: `${id}-${place}-${measure}`, title: attribute.values.at(place),
        points: () => valueSeries(survey, attribute, place, measure).map((point) => timed(point, survey, measure === "share" ? percent : number)),
      }));
      multiples(box, cells, { label: "estimates over time", format: measure === "share" ? (value) => `${value} %` : number }, allShown(context, id));
    },
  };
}

export function capitalised(name) {
  const text = readable(name);
  return text[0].toUpperCase() + text.slice(1);
}

export function seriesKey(survey, attribute) {
  const rows = periodsOf(survey), parts = rows.map((row) => row.attributes.get(attribute.name)?.values).filter(Boolean);
  const signs = [sign("dot", "unbiased estimate"), sign("interval", "its 95 % interval")];
  if (parts.some((part) => part.smoothed)) signs.push(sign("smooth", "smoothed with earlier periods"));
  if (rows.some((row) => row.state === "provisional")) signs.push(sign("bar hatched", "provisional"));
  if (parts.some((part) => part.truth)) signs.push(sign("truth", "truth"));
  return signs;
}

// A point as a timeline takes it.
export function timed(point, survey, show) {
  point.x0 = wall(point.begin);
  point.x1 = wall(point.end);
  point.when = () => windowLabel(point.begin, point.end, survey.about.period_seconds);
  point.text = () => `${show(point.value)} (${show(point.low)} to ${show(point.high)})`;
  return point;
}

function overTimeTable(context, attribute) {
  const { survey, words } = context;
  const columns = [
    column("value", readable(attribute.name)), column("period", "period"), column("begin", "from"), column("state", "state"),
    column(words.people, words.people, number), column("low", "low", number), column("high", "high", number), column("share", "share", percentShare),
    column("smoothed", "smoothed", number), column("truth", "truth", whole),
  ];
  const rows = shownValues(context, attribute).flatMap((place) => {
    const shares = valueSeries(survey, attribute, place, "share");
    return valueSeries(survey, attribute, place).map((point, at) => [
      attribute.values.at(place), point.period, point.begin, point.state, point.value, point.low, point.high, shares[at].value == null ? null : shares[at].value / 100, point.smoothed, point.truth]);
  });
  return { name: `${attribute.name} over time`, columns, rows };
}

export function percentShare(value) {
  return percent(value * 100, 2);
}

// The range of the baseline in the address, or the one that is taken without.
export function rangeOf(context) {
  return baselineOf(context.survey, readSpan(context.view.baseline), periodsOf(context.survey));
}

export function baselineControls(context) {
  const periods = periodsOf(context.survey), range = rangeOf(context);
  if (!range) return [];
  const byNumber = new Map(periods.map((row) => [row.period, row]));
  const from = dayOf((byNumber.get(range.first) ?? periods[0]).begin), to = dayOf((byNumber.get(range.last) ?? periods.at(-1)).begin);
  const limits = { min: dayOf(periods[0].begin), max: dayOf(periods.at(-1).begin) };
  const chosen = (first, last) => {
    const found = first <= last && periodsBetween(periods, first, last);
    if (found) context.set({ baseline: `${found.first}-${found.last}` });
  };
  const input = (name, text, value, changed) => make("label", { class: "choice" }, make("span", {}, text),
    make("input", { type: "date", name, value, ...limits, onchange: (event) => changed(event.target.value) }));
  return [input("from", "Baseline from", from, (day) => chosen(day, to)), input("to", "to", to, (day) => chosen(from, day))];
}

export function changeChart(attribute) {
  const id = `${attribute.name}-change`;
  return {
    id, wide: true,
    shown: ({ survey }) => periodsOf(survey).length > 1 && rankedValues(survey, attribute).length > 0,
    title: () => `${capitalised(attribute.name)}: change in per cent against a baseline`,
    hint: (context) => changeHint(context),
    controls: (context) => [...baselineControls(context), ...filterControls(context, attribute)],
    table: (context) => changeTable(context, attribute),
    draw: (box, _, context) => {
      const span = rangeOf(context), places = [EVERYBODY, ...shownValues(context, attribute)];
      const cells = places.map((place) => ({
        id: `${id}-${place}-${span?.first}-${span?.last}`, title: place === EVERYBODY ? `all ${context.words.many}` : attribute.values.at(place),
        points: () => drawnChanges(context, attribute, place, span),
      }));
      multiples(box, cells, { label: "change against the baseline in per cent", format: (value) => `${value > 0 ? "+" : ""}${value} %`, kind: "change", empty: "Nothing to compare: the baseline is not precise enough." }, allShown(context, id));
    },
  };
}

// Changes as a timeline takes them. Open periods are not compared, so these are the same until something is published.
function drawnChanges(context, attribute, place, span) {
  const { survey } = context, range = `${span?.first}-${span?.last}`;
  const drawn = remembered(survey, "drawn changes", () => ({ range, by: new Map() }));
  if (drawn.range !== range) Object.assign(drawn, { range, by: new Map() });
  const name = `${place} ${attribute.name}`;
  if (!drawn.by.has(name)) drawn.by.set(name, changes(context, attribute, place).map((point) => timed(point, survey, signed)));
  return drawn.by.get(name);
}

function changeHint(context) {
  const items = itemsOf(context, null, EVERYBODY), match = matching(items, rangeOf(context), context.survey.about.seasons);
  const seasons = new Set(items.map((item) => match(item)?.season).filter(Boolean));
  const matched = [...seasons].map(matchedBy).join(" or ");
  return `Each period against the median of the periods of the baseline, ${matched || "if there are any"}. A period inside the baseline is not compared with itself. Intervals of 95 %.`;
}

// Finals only: an open period has not all its reports yet, and would seem to fall.
function itemsOf(context, attribute, place) {
  const rows = periodsOf(context.survey).filter((row) => row.state === "final");
  if (place === EVERYBODY) return rows.map((row) => ({ first: row.period, last: row.period, begin: row.begin, end: row.end, quantity: row.visitors }));
  return valueSeries(context.survey, attribute, place).filter((point) => point.state === "final")
    .map((point) => ({ first: point.period, last: point.period, begin: point.begin, end: point.end, quantity: point }));
}

export function changes(context, attribute, place) {
  const items = itemsOf(context, attribute, place), compare = comparison(items, rangeOf(context), context.survey.about.seasons);
  return items.map((item) => {
    const { percent: by, then, compared } = compare(item);
    return { period: item.first, begin: item.begin, end: item.end, state: "final", ...by, now: item.quantity.value, then: then.value, compared: isKnown(then) ? compared : 0 };
  });
}

// The changes of many values in one period: what is comparable is found once for all of them.
export function changesIn(context, attribute, row) {
  const finals = periodsOf(context.survey).filter((one) => one.state === "final").map((one) => ({ first: one.period, last: one.period, begin: one.begin, row: one }));
  const found = matching(finals, rangeOf(context), context.survey.about.seasons)({ first: row.period, last: row.period, begin: row.begin });
  return (place) => {
    const now = pointAt(row, attribute, place), { percent: by, then } = against(now, (found?.normal ?? []).map((one) => pointAt(one.row, attribute, place)));
    return { period: row.period, begin: row.begin, now: now.value, then: then.value, ...by };
  };
}

function changeTable(context, attribute) {
  const columns = [
    column("value", readable(attribute.name)), column("period", "period"), column("begin", "from"), column("now", context.words.people, number),
    column("baseline", "baseline", number), column("compared", "compared with", whole), column("percent", "change", signed), column("low", "low", signed), column("high", "high", signed),
  ];
  const rows = [EVERYBODY, ...shownValues(context, attribute)].flatMap((place) => changes(context, attribute, place).map((point) => [
    place === EVERYBODY ? `all ${context.words.many}` : attribute.values.at(place), point.period, point.begin, point.now, point.then, point.compared, point.value, point.low, point.high]));
  return { name: `${attribute.name} change`, columns, rows };
}
