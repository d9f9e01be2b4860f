// What charts show, read from the state of a survey: periods in their order, and numbers of one value over time.

import { UNKNOWN, entry, exactly, isKnown, product } from "./quantities.js";
import { remembered } from "./remembered.js";
import { noticeTimes, windowLabel } from "./words.js";

// All periods in their order, finals and provisional ones alike: { period, begin, end, state, visitors, attributes, ... }.
// The list is kept until the survey changes.
export function periodsOf(survey) {
  if (survey.listed?.revision === survey.revision) return survey.listed.periods;
  const rows = new Map();
  for (const histogram of survey.provisional.values()) rows.set(histogram.period, fromHistogram(histogram));
  for (const record of survey.periods.values()) {
    for (const window of record.windows) if (window.first === window.last) rows.set(window.first, window.row ??= fromWindow(window));
  }
  const periods = [...rows.values()].sort((a, b) => a.period - b.period);
  noticeTimes(periods.map((row) => row.begin));
  survey.listed = { revision: survey.revision, periods };
  return periods;
}

function fromWindow(window) {
  return {
    period: window.first, begin: window.begin, end: window.end, state: "final", suppressed: window.suppressed ?? null, integrity: window.integrity ?? null,
    visitors: window.visitors ?? UNKNOWN, fresh: window.new ?? UNKNOWN, returning: window.returning ?? UNKNOWN,
    truth: window.truth ?? null, attributes: new Map((window.attributes ?? []).map((part) => [part.name, part])),
  };
}

function fromHistogram(histogram) {
  const attribute = (part) => ({
    ...part,
    values: part.estimate && {
      share: { value: part.estimate, error: part.error, low: part.low, high: part.high }, consistent: part.consistent,
    },
  });
  return {
    period: histogram.period, begin: histogram.begin, end: histogram.end, state: "provisional", suppressed: histogram.suppressed ?? null, integrity: histogram.integrity ?? null,
    visitors: histogram.n == null ? UNKNOWN : exactly(histogram.n), fresh: UNKNOWN, returning: UNKNOWN, truth: null,
    attributes: new Map(histogram.attributes.map((part) => [part.name, attribute(part)])),
  };
}

// All windows of several periods and single ones: the longest first, by their beginning. Of a calendar unit the newest.
export function windowsOf(survey) {
  return remembered(survey, "windows", () => newest([...survey.periods.values()].flatMap((record) => record.windows))
    .sort((a, b) => (b.last - b.first) - (a.last - a.first) || a.first - b.first));
}

function newest(windows) {
  const through = new Map(), name = ({ kind, first }) => `${kind?.replace(" so far", "")} ${first}`;
  for (const window of windows) through.set(name(window), Math.max(window.last, through.get(name(window)) ?? 0));
  return windows.filter((window) => !/ so far$|^ever$/.test(window.kind) || window.last === through.get(name(window)));
}

// The newest of the longest windows whose visitors are published; null if there is none.
export function widestWindow(survey) {
  return newestLike(windowsOf(survey).filter((window) => isKnown(window.visitors))) ?? null;
}

// The newest of the windows that are as long as the first, or of its kind: months have 28 to 31 days.
export function newestLike(windows) {
  const [longest] = windows, alike = (window) => window.last - window.first === longest.last - longest.first || (window.kind && window.kind === longest.kind);
  return windows.reduce((newest, window) => (alike(window) && window.last > newest.last ? window : newest), longest);
}

export function windowName(survey, window) {
  return windowLabel(window.begin, window.end, survey.about.period_seconds);
}

// The place of a value in the columns of a record, which may have some of the values only; -1 where it has not.
export function placeIn(part, value) {
  return part.places ? part.places.indexOf(value) : value;
}

// Which values the columns of a record have: all, or those that it names.
export function placesOf(part) {
  return part.places ?? part.values.share.value.map((_, place) => place);
}

// One value of an attribute over all periods, as shares or as people: unbiased, nowcast, and the truth if it is known.
export function valueSeries(survey, attribute, value, measure = "people") {
  return periodsOf(survey).map((row) => pointAt(row, attribute, value, measure));
}

// The same for one period.
export function pointAt(row, attribute, value, measure = "people") {
  const part = row.attributes.get(attribute.name), scale = measure === "share" ? exactly(100) : row.visitors;
  const point = { period: row.period, begin: row.begin, end: row.end, state: row.state, value: null, error: null, low: null, high: null, nowcast: null, truth: null };
  const place = part?.values ? placeIn(part, value) : -1;
  if (place < 0) return point;
  Object.assign(point, product(entry(part.values.share, place), scale));
  const nowcast = part.values.nowcast?.value[place] ?? null;
  if (nowcast != null && isKnown(scale)) point.nowcast = nowcast * scale.value;
  const truth = part.values.truth?.[place] ?? null;
  if (truth != null) point.truth = measure === "share" ? (row.truth ? (truth / row.truth) * 100 : null) : truth;
  return point;
}

// The people with each value that there is, in all of these periods together; added to those of others.
function added(attribute, rows, others = []) {
  const sums = new Map(others);
  for (const row of rows) {
    const part = row.attributes.get(attribute.name);
    if (!part?.values) continue;
    placesOf(part).forEach((value, at) => {
      const share = part.values.share.value[at], people = share != null && isKnown(row.visitors) ? share * row.visitors.value : 0;
      sums.set(value, (sums.get(value) ?? 0) + people);
    });
  }
  return sums;
}

// The values of an attribute, the most frequent over all periods first; ordered ones stay in their order.
export function rankedValues(survey, attribute) {
  const kept = survey.ranked?.revision === survey.revision ? survey.ranked : (survey.ranked = { revision: survey.revision, by: new Map() });
  if (!kept.by.has(attribute.name)) {
    const rows = periodsOf(survey), final = (row) => row.state === "final";
    const published = remembered(survey, `sums of ${attribute.name}`, () => added(attribute, rows.filter(final)));
    const sums = added(attribute, rows.filter((row) => !final(row)), published);
    const places = [...sums.keys()].sort((a, b) => a - b);
    if (!attribute.ordered && !["dwell", "amount"].includes(attribute.role)) places.sort((a, b) => sums.get(b) - sums.get(a));
    kept.by.set(attribute.name, places);
  }
  return kept.by.get(attribute.name);
}
