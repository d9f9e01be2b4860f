// New arrivals over time, beside what is usual: devices that are forged arrive as new, or claim to follow others.

import { isKnown } from "../state/quantities.js";
import { remembered } from "../state/remembered.js";
import { periodsOf } from "../state/series.js";
import { column } from "../state/tables.js";
import { wall, whole, windowLabel } from "../state/words.js";
import { sign } from "../parts/frame.js";
import { timeline } from "../parts/timeline.js";

const LEAST_PERIODS = 3;
const NORMAL_99 = 2.576;

// The new ones of every judged period, { row, fresh, usual, low, high, odd }. Usual is the median share of the other periods;
// the band holds 99 % of the periods if each of their reports is new with that chance (a median varies with a factor of pi / 2
// more than a mean). In the first period everybody is new.
export function arrivals(survey) {
  return remembered(survey, "arrivals", () => newOnes(survey));
}

function newOnes(survey) {
  const known = periodsOf(survey).filter((row) => row.integrity != null && isKnown(row.fresh) && row.visitors.value > 0);
  const rows = known.slice(1);
  if (rows.length < LEAST_PERIODS) return [];
  const sorted = rows.map((row) => row.fresh.value / row.visitors.value).sort((a, b) => a - b);
  const all = rows.reduce((sum, row) => sum + row.visitors.value, 0);
  return rows.map((row) => {
    const n = row.visitors.value, chance = medianWithout(sorted, row.fresh.value / n), usual = n * chance;
    const half = NORMAL_99 * Math.sqrt(usual * (1 - chance) * (1 + ((Math.PI / 2) * n) / (all - n)));
    const low = Math.max(0, usual - half), high = Math.min(n, usual + half);
    return { row, fresh: row.fresh.value, usual, low, high, odd: row.fresh.value < low || row.fresh.value > high };
  });
}

// The median of sorted numbers without one of them, which is not taken out for it: there may be very many.
function medianWithout(sorted, one) {
  const gone = sorted.indexOf(one), left = sorted.length - 1, at = (place) => sorted[place < gone ? place : place + 1];
  return (at((left - 1) >> 1) + at(left >> 1)) / 2;
}

export function arrivalsChart() {
  return {
    id: "arrivals", wide: true,
    shown: ({ survey }) => (survey.about.horizon > 1 || (survey.about.units ?? []).includes("ever")) && arrivals(survey).length > 0,
    title: ({ words }) => `New ${words.many}, and what is usual`,
    hint: ({ survey, words }) => `New: without a report ${survey.about.horizon > 1 ? `in the ${survey.about.horizon - 1} periods before` : "at any time before"}. Forged reports must arrive as new, or claim to follow others, which the flow notices. In the band are 99 % of the periods if every report is a new one with the chance that is usual in the other periods. ${words.many === "devices" ? "A new release of an app" : "A holiday"} leaves the band, too.`,
    key: () => [sign("dot", "new"), sign("stroke s1", "usual, with the band of 99 %"), sign("odd", "outside")],
    table: ({ survey, words }) => ({
      name: "arrivals",
      columns: [column("period", "period"), column("begin", "from"), column(words.many, words.many, whole), column("new", "new", whole), column("usual", "usual", whole), column("low", "low", whole), column("high", "high", whole), column("outside", "outside", (value) => (value ? "yes" : ""))],
      rows: arrivals(survey).map(({ row, fresh, usual, low, high, odd }) => [row.period, row.begin, row.visitors.value, fresh, usual, low, high, odd]),
    }),
    draw: (box, _, { survey }) => {
      const found = arrivals(survey), times = ({ row }) => ({ x0: wall(row.begin), x1: wall(row.end), state: "final", when: () => windowLabel(row.begin, row.end, survey.about.period_seconds) });
      const usual = found.map((one) => ({ ...times(one), value: one.usual, low: one.low, high: one.high, text: () => `usual ${whole(one.low)} to ${whole(one.high)}` }));
      const seen = found.map((one) => ({ ...times(one), value: one.fresh, odd: one.odd, text: () => `new ${whole(one.fresh)}` }));
      timeline(box, { lines: [{ name: "usual", kind: "s1", joined: true, banded: true, points: usual }, { name: "new", kind: "", points: seen }] },
        { height: 220, label: "New arrivals beside what is usual; the table below has all numbers", format: whole });
    },
  };
}
