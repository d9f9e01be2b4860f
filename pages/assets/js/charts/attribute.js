// One attribute: chosen values over time, and all of them in one period against a baseline.

import { against, baselineOf, comparison, matching, periodsBetween } from "../state/baseline.js";
import { isKnown } from "../state/quantities.js";
import { readSpan } from "../state/permalink.js";
import { periodsOf, pointAt, rankedValues, valueSeries } from "../state/series.js";
import { column } from "../state/tables.js";
import { capitalised, dayOf, label, number, percent, percentShare, periodName, readable, signed, wall, whole, windowLabel } from "../state/words.js";
import { choice, dayInput, make } from "../parts/dom.js";
import { firstRows, sign } from "../parts/frame.js";
import { plotted } from "../parts/plotted.js";
import { timeline } from "../parts/timeline.js";
import { pickedTime } from "./windows.js";

const EVERYBODY = -1;
const LINES = 8;
const FIRST_LINES = 4;

export function measureOf(context) {
  return context.view.show === "share" ? "share" : "people";
}

export function measureChoice(context) {
  return choice("show", "Show", [["people", `numbers of ${context.words.people}`], ["share", "shares in %"]], measureOf(context), (show) => context.set({ show }));
}

// The places of the values that are drawn: those in the address, or the most frequent ones.
function chosenValues(context, attribute) {
  const ranked = rankedValues(context.survey, attribute), given = context.view[`values.${attribute.name}`];
  const chosen = (given ?? "").split(",").filter((text) => /^\d+$/.test(text)).map(Number).filter((place) => ranked.includes(place));
  return chosen.length ? chosen.slice(-LINES) : ranked.slice(0, FIRST_LINES);
}

export function overTimeView(attribute) {
  const name = (place) => attribute.values.at(place);
  const choose = (context, places) => context.set({ [`values.${attribute.name}`]: places.slice(-LINES).join(",") });
  return {
    see: "time", name: "Over time",
    shown: ({ survey }) => rankedValues(survey, attribute).length > 0 && periodsOf(survey).length > 1,
    hint: ({ survey }) => `Each ${periodName(survey.about)}, with intervals of 95 %. The table has all values.`,
    controls: (context) => {
      const chosen = chosenValues(context, attribute), others = rankedValues(context.survey, attribute).filter((place) => !chosen.includes(place));
      const add = choice("add", "Add", [["", "a value"], ...others.map((place) => [place, label(name(place), 60)])], "", (place) => place && choose(context, [...chosen, Number(place)]));
      return [measureChoice(context), ...(others.length ? [add] : [])];
    },
    key: (context) => {
      const chosen = chosenValues(context, attribute);
      if (chosen.length === 1) return [sign("dot", `${label(name(chosen[0]))}, estimate`), ...seriesKey(context.survey, attribute)];
      return chosen.map((place, at) => make("span", {}, make("i", { class: `stroke s${at}`, "aria-hidden": "true" }), label(name(place)),
        make("button", { type: "button", class: "chip", "aria-label": `without ${name(place)}`, onclick: () => choose(context, chosen.filter((one) => one !== place)) }, "×")));
    },
    table: (context) => overTimeTable(context, attribute),
    draw: (box, _, context) => {
      const measure = measureOf(context), share = measure === "share", show = share ? percent : number, chosen = chosenValues(context, attribute), several = chosen.length > 1;
      const lines = chosen.map((place, at) => ({
        name: name(place), kind: several ? `s${at}` : "", joined: several, banded: several,
        points: valueSeries(context.survey, attribute, place, measure).map((point) => {
          const { text, ...made } = timed(point, context.survey, show);
          return { ...made, ...(several ? { nowcast: null, truth: null } : {}), text: () => `${label(name(place))} ${text()}` };
        }),
      }));
      timeline(box, { lines }, { label: `${capitalised(attribute.name)} over time; the table has all numbers`, within: [0, share ? 100 : Infinity], format: share ? (value) => `${value} %` : number });
    },
  };
}

function seriesKey(survey, attribute) {
  const rows = periodsOf(survey), parts = rows.map((row) => row.attributes.get(attribute.name)?.values).filter(Boolean);
  const signs = [sign("interval", "its 95 % interval")];
  if (parts.some((part) => part.nowcast)) signs.push(sign("smooth", "nowcast, with earlier periods"));
  if (rows.some((row) => row.state === "provisional")) signs.push(sign("bar hatched", "not final yet"));
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
    column("value", readable(attribute.name)), column("period", null), column("begin", "from"), column("state", "state"),
    column(words.people, words.people, number), column("low", "low", number), column("high", "high", number), column("share", "share", percentShare),
    column("nowcast", "nowcast", number), column("truth", "truth", whole),
  ];
  const rows = rankedValues(survey, attribute).flatMap((place) => {
    const shares = valueSeries(survey, attribute, place, "share");
    return valueSeries(survey, attribute, place).map((point, at) => [
      attribute.values.at(place), point.period, point.begin, point.state, point.value, point.low, point.high, shares[at].value == null ? null : shares[at].value / 100, point.nowcast, point.truth]);
  });
  return { name: `${attribute.name} over time`, columns, rows };
}

// The range of the baseline in the address, or the one that is taken without.
function rangeOf(context) {
  return baselineOf(context.survey, readSpan(context.view.baseline), periodsOf(context.survey));
}

function baselineControls(context) {
  const periods = periodsOf(context.survey), range = rangeOf(context), by = new Map(periods.map((row) => [row.period, row]));
  const from = dayOf((by.get(range.first) ?? periods[0]).begin), to = dayOf((by.get(range.last) ?? periods.at(-1)).begin), limits = [dayOf(periods[0].begin), dayOf(periods.at(-1).begin)];
  const chosen = (first, last) => {
    const found = first <= last && periodsBetween(periods, first, last);
    if (found) context.set({ baseline: `${found.first}-${found.last}` });
  };
  return [dayInput("from", "Baseline from", from, limits, (day) => chosen(day, to)), dayInput("to", "to", to, limits, (day) => chosen(from, day))];
}

function finalsOf(context) {
  return periodsOf(context.survey).filter((row) => row.state === "final" && !row.suppressed);
}

// How the periods of the baseline are chosen, in words.
function comparedWith({ survey: { about } }) {
  const [season] = about.seasons;
  return `the median of the baseline${season ? `, at the same time of the ${season} where it has one` : ""}`;
}

// All values in one period against the baseline, and everybody.
export function baselineView(attribute) {
  const rowOf = (context) => finalsOf(context).find((row) => String(row.period) === context.view.period) ?? finalsOf(context).at(-1);
  const rowsOf = (context) => {
    const changed = changesIn(context, attribute, rowOf(context)), named = (place) => (place === EVERYBODY ? `all ${context.words.many}` : attribute.values.at(place));
    const rows = [EVERYBODY, ...rankedValues(context.survey, attribute)].map((place) => [named(place), rowOf(context).begin, changed(place)]);
    return rows.map(([name, begin, point]) => [name, begin, point.now, point.then, point.value, point.low, point.high]);
  };
  const known = (rows) => rows.filter((row) => row[4] != null);
  return {
    see: "baseline", name: "Against the baseline",
    shown: (context) => finalsOf(context).length > 1 && rankedValues(context.survey, attribute).length > 0 && (context.view.period != null || known(rowsOf(context)).length > 1),
    hint: (context) => {
      const rows = rowsOf(context), left = rows.length - known(rows).length;
      return `Change against ${comparedWith(context)}, with intervals of 95 %.${left ? ` ${whole(left)} of ${whole(rows.length)} are left out: too few to compare with.` : ""}`;
    },
    controls: (context) => [...pickedTime(context, finalsOf(context), rowOf(context), (row) => context.set({ period: String(row.period) })), ...baselineControls(context)],
    table: (context) => ({
      name: `${attribute.name} against the baseline`,
      columns: [column("value", readable(attribute.name)), column("begin", "from"), column("now", context.words.people, number), column("baseline", "baseline", number), column("percent", "change", signed), column("low", "low", signed), column("high", "high", signed)],
      rows: rowsOf(context),
    }),
    draw: (box, table, context) => {
      const [rows, more] = firstRows(context, attribute.name, known(table().rows)), y = (row) => row[0];
      if (!rows.length) return box.replaceChildren();
      const longest = Math.min(20, Math.max(...rows.map((row) => [...row[0]].length))), most = Math.max(50, 2.5 * Math.max(...rows.map((row) => Math.abs(row[4]))));
      plotted(box, {
        height: 48 + 24 * rows.length, marginLeft: 16 + 7 * longest, marginRight: 16, marginTop: 6, marginBottom: 36, ariaLabel: `${capitalised(attribute.name)}: change in per cent; the table has all numbers`,
        x: { domain: [Math.max(-100, Math.min(-10, ...rows.map((row) => row[5]))), Math.min(most, Math.max(10, ...rows.map((row) => row[6])))], clamp: true, label: "change in %", grid: true, tickFormat: (value) => `${value > 0 ? "+" : ""}${value}`, ticks: 5, labelArrow: "none" },
        y: { label: null, domain: rows.map(y), tickFormat: (text) => label(text, 20), tickSize: 0 },
        marks: [
          Plot.ruleX([0], { stroke: "var(--soft)" }),
          Plot.ruleY(rows, { x1: (row) => row[5], x2: (row) => row[6], y, stroke: "var(--ink)", strokeWidth: 1.4 }),
          Plot.dot(rows, { x: (row) => row[4], y, r: 4, fill: (row) => (row[5] > 0 || row[6] < 0 ? "var(--accent)" : "var(--paper)"), stroke: "var(--accent)", strokeWidth: 1.6, title: (row) => `${label(row[0], 60)}\n${signed(row[4])} (${signed(row[5])} to ${signed(row[6])})` }),
        ],
      });
      box.append(...more);
    },
  };
}

// The changes of values in one period: what is comparable is found once for all of them.
export function changesIn(context, attribute, row) {
  const finals = finalsOf(context).map((one) => ({ first: one.period, last: one.period, begin: one.begin, row: one }));
  const found = matching(finals, rangeOf(context), context.survey.about.seasons)({ first: row.period, last: row.period, begin: row.begin });
  const quantity = (one, place) => (place === EVERYBODY ? one.visitors : pointAt(one, attribute, place));
  return (place) => {
    const now = quantity(row, place), { percent: by, then } = against(now, (found?.normal ?? []).map((one) => quantity(one.row, place)));
    return { now: now.value, then: then.value, ...by };
  };
}

// Everybody against the baseline, over time. Finals only: an open period has not all its reports yet, and would seem to fall.
export function everybodyView() {
  const changesOf = (context) => {
    const items = finalsOf(context).map((row) => ({ first: row.period, last: row.period, begin: row.begin, end: row.end, quantity: row.visitors }));
    const compare = comparison(items, rangeOf(context), context.survey.about.seasons);
    return items.map((item) => {
      const { percent: by, then, compared } = compare(item);
      return { period: item.first, begin: item.begin, end: item.end, state: "final", ...by, now: item.quantity.value, then: then.value, compared: isKnown(then) ? compared : 0 };
    });
  };
  return {
    see: "baseline", name: "Against the baseline",
    shown: (context) => finalsOf(context).length > 1 && changesOf(context).some((point) => point.value != null),
    hint: (context) => `Each ${periodName(context.survey.about)} against ${comparedWith(context)}.`,
    controls: baselineControls,
    table: (context) => ({
      name: `${context.words.many} against the baseline`,
      columns: [column("period", null), column("begin", "from"), column("now", context.words.many, number), column("baseline", "baseline", number), column("compared", "compared with", whole), column("percent", "change", signed), column("low", "low", signed), column("high", "high", signed)],
      rows: changesOf(context).map((point) => [point.period, point.begin, point.now, point.then, point.compared, point.value, point.low, point.high]),
    }),
    draw: (box, _, context) => timeline(box, { lines: [{ name: "change", kind: "", points: changesOf(context).map((point) => timed(point, context.survey, signed)) }] },
      { within: [-100, Infinity], label: "Change against the baseline in per cent; the table has all numbers", format: (value) => `${value > 0 ? "+" : ""}${value} %` }),
  };
}
