// Change in per cent against a baseline: the median of the comparable windows of a chosen range of periods.
// Comparable are windows of the same length at the same time of the week; if the range has none, at the same time of the
// day; or else any. A window that overlaps the one in question is not part of its baseline.

import { change, isKnown, median } from "./quantities.js";
import { dayOf, timeOf, weekday } from "./words.js";

const MOST_WEEKS = 5;

// The range that is compared with: the chosen one, the survey's own, or the first half of what is known, up to five weeks.
export function baselineOf(survey, chosen, periods) {
  if (chosen) return chosen;
  if (survey.about.baseline) return { first: survey.about.baseline[0], last: survey.about.baseline[1] };
  if (periods.length < 2) return null;
  const longest = Math.floor((MOST_WEEKS * 604800) / survey.about.period_seconds);
  const half = periods.slice(0, Math.max(1, Math.min(periods.length >> 1, longest)));
  return { first: half[0].period, last: half.at(-1).period };
}

const phases = new Map(); // by beginning: reading a time is slow, and every chart asks for the same ones

function phase(season, item) {
  if (season === "any") return "";
  let found = phases.get(item.begin);
  if (!found) phases.set(item.begin, (found = { week: `${weekday(item.begin)} ${timeOf(item.begin)}`, day: timeOf(item.begin) }));
  return found[season];
}

// Finds what is comparable among items { first, last, begin } of one length: a function that gives, for one of them,
// { normal, season }, the items of its baseline and how they were matched; null where the range has nothing.
export function matching(items, range, seasons) {
  const inside = items.filter((item) => range && item.first >= range.first && item.last <= range.last);
  const pools = [...seasons, "any"].map((season) => {
    const pool = new Map();
    for (const item of inside) {
      const name = phase(season, item);
      if (!pool.has(name)) pool.set(name, []);
      pool.get(name).push(item);
    }
    return [season, pool];
  });
  return (item) => {
    for (const [season, pool] of pools) {
      const found = pool.get(phase(season, item));
      if (!found) continue;
      return { normal: found.filter((one) => one.last < item.first || one.first > item.last), season };
    }
    return null;
  };
}

// Compares items that have a quantity with one another: a function that gives, for one of them, { then, percent, compared,
// season }; `compared` is with how many.
export function comparison(items, range, seasons) {
  const match = matching(items, range, seasons);
  return (item) => {
    const found = match(item);
    return { ...against(item.quantity, (found?.normal ?? []).map((one) => one.quantity)), season: found?.season ?? null };
  };
}

// A number against the median of others.
export function against(now, others) {
  const normal = others.filter(isKnown), then = median(normal);
  return { then, percent: change(now, then), compared: normal.length };
}

// The periods of a range of days.
export function periodsBetween(periods, from, to) {
  const inside = periods.filter((row) => (!from || dayOf(row.begin) >= from) && (!to || dayOf(row.begin) <= to));
  return inside.length ? { first: inside[0].period, last: inside.at(-1).period } : null;
}
