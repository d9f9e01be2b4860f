// New arrivals over time, beside what is usual: devices that are forged arrive as new, or claim to follow others.

import { isKnown } from "../state/quantities.js";
import { remembered } from "../state/remembered.js";
import { periodsOf } from "../state/series.js";
import { column } from "../state/tables.js";
import { lengthName, wall, whole, windowLabel } from "../state/words.js";
import { sign } from "../parts/frame.js";
import { timeline } from "../parts/timeline.js";

const LEAST_PERIODS = 3;
const STUDENT_99 = [63.66, 9.92, 5.84, 4.6, 4.03, 3.71, 3.5, 3.36, 3.25, 3.17]; // by degrees of freedom

// The new ones of every judged period, { row, fresh, usual, low, high, odd }. Usual is the mean share of the other periods; the
// band is Student's prediction of the next share from theirs, so days may differ as they do: 99 % of the periods are in it. In
// the first period everybody is new.
export function arrivals(survey) {
  return remembered(survey, "arrivals", () => newOnes(survey));
}

function newOnes(survey) {
  const known = periodsOf(survey).filter((row) => row.integrity != null && isKnown(row.fresh) && row.visitors.value > 0);
  const rows = known.slice(1);
  if (rows.length < LEAST_PERIODS) return [];
  const shares = rows.map((row) => row.fresh.value / row.visitors.value), others = rows.length - 1;
  const sum = shares.reduce((a, b) => a + b), squares = shares.reduce((a, b) => a + b * b, 0), student = STUDENT_99[others - 2] ?? 2.576 + 5 / (others - 1);
  return rows.map((row, at) => {
    const n = row.visitors.value, chance = (sum - shares[at]) / others;
    const spread = Math.max(0, (squares - shares[at] ** 2 - others * chance ** 2) / (others - 1)); // the variance of the others
    const half = n * Math.max(student * Math.sqrt(spread * (1 + 1 / others)), 2.576 * Math.sqrt((chance * (1 - chance)) / n));
    const usual = n * chance, low = Math.max(0, usual - half), high = Math.min(n, usual + half);
    return { row, fresh: row.fresh.value, usual, low, high, odd: row.fresh.value < low || row.fresh.value > high };
  });
}

export function arrivalsView() {
  return {
    see: "arrivals", name: "New arrivals",
    shown: ({ survey }) => (survey.about.horizon > 1 || (survey.about.units ?? []).includes("ever")) && arrivals(survey).length > 0,
    hint: ({ survey, words }) => `New: without a report ${survey.about.horizon > 1 ? `in the ${lengthName(survey.about, survey.about.horizon - 1)} before` : "at any time before"}. Forged reports must arrive as new, or claim to follow others. In the band are 99 % of the times if their shares of new ${words.many} differ as the others' do. ${words.many === "devices" ? "A new release of an app" : "A holiday"} leaves the band, too.`,
    key: () => [sign("dot", "new"), sign("stroke s1", "usual, with the band of 99 %"), sign("odd", "outside")],
    table: ({ survey, words }) => ({
      name: "arrivals",
      columns: [column("period", null), column("begin", "from"), column(words.many, words.many, whole), column("new", "new", whole), column("usual", "usual", whole), column("low", "low", whole), column("high", "high", whole), column("outside", "outside", (value) => (value ? "yes" : ""))],
      rows: arrivals(survey).map(({ row, fresh, usual, low, high, odd }) => [row.period, row.begin, row.visitors.value, fresh, usual, low, high, odd]),
    }),
    draw: (box, _, { survey }) => {
      const found = arrivals(survey), times = ({ row }) => ({ x0: wall(row.begin), x1: wall(row.end), state: "final", when: () => windowLabel(row.begin, row.end, survey.about.period_seconds) });
      const usual = found.map((one) => ({ ...times(one), value: one.usual, low: one.low, high: one.high, text: () => `usual ${whole(one.low)} to ${whole(one.high)}` }));
      const seen = found.map((one) => ({ ...times(one), value: one.fresh, odd: one.odd, text: () => `new ${whole(one.fresh)}` }));
      timeline(box, { lines: [{ name: "usual", kind: "s1", joined: true, banded: true, points: usual }, { name: "new", kind: "", points: seen }] },
        { label: "New arrivals beside what is usual; the table has all numbers", format: whole });
    },
  };
}
