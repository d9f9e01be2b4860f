import assert from "node:assert/strict";
import { test } from "node:test";
import { triangleOf } from "../../../pages/assets/js/charts/calendars.js";
import { baselineOf, comparison } from "../../../pages/assets/js/state/baseline.js";
import { readSpan, readView, writeView } from "../../../pages/assets/js/state/permalink.js";
import { change, median, product, ratio } from "../../../pages/assets/js/state/quantities.js";
import { periodsOf, rankedValues, valueSeries, widestWindow } from "../../../pages/assets/js/state/series.js";
import { cellText, column, fileName, toCsv, toJson } from "../../../pages/assets/js/state/tables.js";
import { clockOf, fixed, label, lengthName, percent, periodName, periodsName, signed, whole, windowLabel } from "../../../pages/assets/js/state/words.js";
import { methodsOf } from "../../../pages/assets/js/charts/evaluation.js";
import { arrivals, arrivalsView } from "../../../pages/assets/js/charts/arrivals.js";
import { integrityCard } from "../../../pages/assets/js/charts/integrity.js";
import { inUnit } from "../../../pages/assets/js/charts/audit.js";

const quantity = (value, half = 0) => ({ value, error: half / 1.96, low: value - half, high: value + half });
const day = (period) => new Date(Date.UTC(2026, 0, 5 + period)).toISOString();
const item = (period, value) => ({ first: period, last: period, begin: day(period), quantity: quantity(value) });

test("a day is compared with the median of the same weekdays of the baseline", () => {
  const items = Array.from({ length: 35 }, (_, period) => item(period, period % 7 === 0 ? 100 + period : 50));
  const compare = comparison(items, { first: 0, last: 27 }, ["week", "day"]);
  const { then, compared, season, percent } = compare(items[28]);
  assert.equal(season, "week");
  assert.equal(compared, 4);
  assert.equal(then.value, (107 + 114) / 2);
  assert.ok(Math.abs(percent.value - (128 / 110.5 - 1) * 100) < 1e-9);
});

test("a day inside its own baseline is not compared with itself", () => {
  const items = Array.from({ length: 14 }, (_, period) => item(period, period));
  const two = comparison(items, { first: 0, last: 13 }, ["week", "day"])(items[3]);
  assert.deepEqual([two.compared, two.then.value], [1, 10]);
  const one = comparison(items, { first: 0, last: 6 }, ["week", "day"])(items[3]);
  assert.deepEqual([one.compared, one.percent.value], [0, null]);
});

test("where the baseline lacks the weekday, its days of the same time are taken", () => {
  const items = Array.from({ length: 7 }, (_, period) => item(period, 10 * (period + 1)));
  const found = comparison(items, { first: 0, last: 2 }, ["week", "day"])(items[5]);
  assert.deepEqual([found.season, found.compared, found.then.value], ["day", 3, 20]);
});

test("without a choice the first half is the baseline, and at most five weeks", () => {
  const survey = { about: { baseline: null, period_seconds: 86400 } }, rows = (n) => Array.from({ length: n }, (_, period) => ({ period }));
  assert.deepEqual(baselineOf(survey, null, rows(7)), { first: 0, last: 2 });
  assert.deepEqual(baselineOf(survey, null, rows(200)), { first: 0, last: 34 });
  assert.deepEqual(baselineOf(survey, { first: 1, last: 4 }, rows(7)), { first: 1, last: 4 });
  assert.deepEqual(baselineOf({ about: { ...survey.about, baseline: [2, 3] } }, null, rows(7)), { first: 2, last: 3 });
});

test("a median has the mean of the distances to the ends of the intervals", () => {
  const middle = median([quantity(10, 2), quantity(30, 4), quantity(20, 6)]);
  assert.deepEqual([middle.value, middle.low, middle.high], [20, 16, 24]);
});

test("what may be nothing has no ratio to it", () => {
  assert.equal(ratio(quantity(10, 1), quantity(1, 2)).value, null);
  assert.equal(change(quantity(null), quantity(1)).value, null);
  assert.equal(product(quantity(0.5, 0.1), quantity(100)).high, 60);
});

test("a triangle shows what is left where old reports are gone", () => {
  const periods = new Map([8, 9, 10].map((period) => [period, {
    period, windows: [{ first: period, last: period, begin: day(period), end: day(period + 1), attributes: [] }],
    triangle: Array.from({ length: 4 }, (_, back) => ({ first: period - back, visitors: { value: back + 1 } })),
  }]));
  const survey = { revision: 1, about: { period_seconds: 86400 }, periods, provisional: new Map() };
  const { steps, cells } = triangleOf(survey);
  assert.equal(steps.length, 3);
  assert.deepEqual(cells.map((cell) => [cell.first, cell.last]), [[8, 8], [9, 9], [8, 9], [10, 10], [9, 10], [8, 10]]);
});

test("columns of some of the values are read by the places that they name", () => {
  const part = { name: "a", places: [1, 3], values: { share: { value: [0.2, 0.6], error: [0, 0], low: [0.2, 0.6], high: [0.2, 0.6] } } };
  const window = { first: 0, last: 0, begin: day(0), end: day(1), visitors: quantity(100), attributes: [part] };
  const survey = { revision: 1, about: {}, periods: new Map([[0, { period: 0, windows: [window], triangle: [] }]]), provisional: new Map() };
  const attribute = { name: "a", values: ["p", "q", "r", "s"], role: "plain" };
  assert.deepEqual(rankedValues(survey, attribute), [3, 1]);
  assert.deepEqual(valueSeries(survey, attribute, 3).map((point) => point.value), [60]);
  assert.deepEqual(valueSeries(survey, attribute, 0).map((point) => point.value), [null]);
});

test("a view is the same after it was written to an address and read again", () => {
  const view = { survey: "s", "filter.area": "a&b=#ü", window: "0-6", at: "" };
  assert.deepEqual(readView(writeView(view)), { survey: "s", "filter.area": "a&b=#ü", window: "0-6" });
  assert.deepEqual(readSpan("3-5"), { first: 3, last: 5 });
  assert.equal(readSpan("5-3"), null);
});

test("no cell of a CSV is a formula, and quotes are doubled", () => {
  const table = { name: "t", columns: [{ key: "name" }, { key: "n" }], rows: [["=1+1", 2.5], ['a "b", c', null], ["-x", -3]] };
  assert.equal(toCsv(table), "name,n\r\n'=1+1,2.5\r\n\"a \"\"b\"\", c\",\r\n'-x,-3\r\n");
  assert.deepEqual(JSON.parse(toJson(table)).rows[1], { name: 'a "b", c', n: null });
  assert.equal(fileName("s", "<a>/b", "csv"), "s--a-b.csv");
});

test("long names are cut on charts, and isolated from the text around them", () => {
  assert.equal(label("abc"), "\u2068abc\u2069");
  assert.equal([...label("\u202e".repeat(500))].length, 30);
});

test("windows are named by their days, and by hours where they are not whole days", () => {
  assert.equal(windowLabel("2026-01-05T00:00:00+01:00", "2026-01-08T00:00:00+01:00", 86400), "Mon 5 Jan – Wed 7 Jan");
  assert.equal(windowLabel("2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00", 86400), "Sun 29 Mar");
  assert.equal(windowLabel("2026-01-05T07:00:00Z", "2026-01-05T08:00:00Z", 3600), "Mon 5 Jan 07:00");
});

test("times are in days and hours, whatever a period is", () => {
  const named = (seconds, periods) => [lengthName({ period_seconds: seconds }, periods), periodName({ period_seconds: seconds }), periodsName({ period_seconds: seconds }, periods)];
  assert.deepEqual(named(86400, 7), ["7 days", "day", "7 days"]);
  assert.deepEqual(named(3600, 1), ["1 hour", "hour", "1 hour"]);
  assert.deepEqual(named(900, 4), ["60 minutes", "15 minutes", "4 periods of 15 minutes"]);
});

test("figures of an audit are written in their unit", () => {
  assert.deepEqual(["chance", "chance", "share", "bits", "nats"].map((unit, at) => inUnit(unit, [0.5, 1e-5, 0.012, 2, 3][at])), ["50.00 %", "1.0e-3 %", "+1.20 points", "2.000 bits", "3.000"]);
});

test("verdicts are shown where results carry them, and nowhere else", () => {
  const check = (adjusted, smallest) => ({ p: adjusted / 2, adjusted, smallest });
  const part = { name: "a_b", verdict: "contradicted", sum: check(0.001, 0.02), widths: null, negativity: check(1, 0.05), jump: null, flow: null };
  const integrity = { verdict: "contradicted", level: 0.01, looks: 1, flow: null, attributes: [part] };
  const window = { first: 0, last: 0, begin: day(0), end: day(1), visitors: quantity(9), attributes: [], integrity };
  const survey = (periods) => ({ revision: 1, about: { period_seconds: 86400 }, periods, provisional: new Map() });
  const card = integrityCard(), [chart] = card.views, found = survey(new Map([[0, { period: 0, windows: [window], triangle: [] }]]));
  assert.equal(chart.shown({ survey: survey(new Map()) }), false);
  assert.equal(chart.shown({ survey: found }), true);
  assert.deepEqual(chart.table({ survey: found }).rows.map((row) => row.slice(2)), [["a b", "contradicted", 0.001, null, 1, null, 0.02]]);
  assert.equal(card.line({ survey: found, words: {} }), "Of 1 day: 1 day contradicted.");
});

test("arrivals are beside a band of what is usual in the other periods, and one that is far off is marked", () => {
  const fresh = [1000, 100, 95, 110, 300, 102];
  const window = (period) => ({ first: period, last: period, begin: day(period), end: day(period + 1), visitors: quantity(1000), new: quantity(fresh[period]), attributes: [], integrity: { attributes: [] } });
  const survey = { revision: 1, about: { horizon: 3 }, periods: new Map(fresh.map((_, period) => [period, { period, windows: [window(period)], triangle: [] }])), provisional: new Map() };
  const found = arrivals(survey);
  assert.deepEqual(found.map((one) => one.row.period), [1, 2, 3, 4, 5], "in the first period everybody is new");
  assert.deepEqual(found.filter((one) => one.odd).map((one) => one.row.period), [4]);
  const usual = (100 + 95 + 110 + 102) / 4, spread = Math.sqrt([100, 95, 110, 102].reduce((sum, one) => sum + (one - usual) ** 2, 0) / 3);
  assert.ok(Math.abs(found[3].usual - usual) < 1e-9 && Math.abs(found[3].high - (usual + 5.84 * spread * Math.sqrt(1.25))) < 1e-6);
  assert.equal(arrivalsView().shown({ survey }), true);
  assert.equal(arrivalsView().shown({ survey: { ...survey, about: { horizon: 1 } } }), false, "nobody is known to return");
});

test("of the longest windows the newest one is among the first figures", () => {
  const window = (first, last, value) => ({ first, last, begin: day(first), end: day(last + 1), visitors: value == null ? null : quantity(value), attributes: [] });
  const survey = (...windows) => ({ revision: 1, finals: 1, about: {}, periods: new Map(windows.map((one, at) => [at, { period: at, windows: [one], triangle: [] }])), provisional: new Map() });
  assert.deepEqual(widestWindow(survey(window(0, 0, 75), window(1, 1, 147), window(2, 2, 90))).visitors.value, 90);
  assert.deepEqual(widestWindow(survey(window(0, 2, 300), window(1, 3, 310), window(2, 4, null), window(5, 5, 9))).visitors.value, 310);
  assert.equal(widestWindow(survey(window(0, 0, null))), null);
  const month = (...of) => ({ ...window(...of), kind: "month" });
  assert.equal(widestWindow(survey(month(0, 30, 20), month(31, 58, 40), window(59, 59, 9))).visitors.value, 40, "February is shorter");
});

test("the methods of an evaluation come with the smallest headline error first", () => {
  const score = (label, eps, value) => ({ label, eps, headline: "clip", mse: { raw: { value: 1 }, clip: { value } } });
  const scores = [score("a", 1, 0.3), score("b", 1, 0.1), score("a", 2, 0.1), score("b", 2, 0.2)];
  assert.deepEqual(methodsOf({ document: { record: { scores } } }), ["b", "a"]);
});

test("an hour that the clock repeats is there twice, by its offsets", () => {
  const hours = ["01:00:00+02:00", "02:00:00+02:00", "02:00:00+01:00", "03:00:00+01:00"].map((hour) => `2026-10-25T${hour}`);
  const windows = hours.slice(0, 3).map((begin, at) => ({ first: at, last: at, begin, end: hours[at + 1] }));
  periodsOf({ revision: 1, provisional: new Map(), periods: new Map([[0, { windows }]]) });
  assert.deepEqual(hours.map(clockOf), ["01:00", "02:00", "02:00 +01:00", "03:00"]);
  assert.deepEqual(windows.map(({ begin, end }) => windowLabel(begin, end, 3600).slice(11)), ["01:00", "02:00 +02:00", "02:00 +01:00"]);
  assert.deepEqual(hours.map((hour) => cellText(column("begin", "from"), hour).slice(11)), ["01:00", "02:00 +02:00", "02:00 +01:00", "03:00"]);
});

test("what is rounded to zero has no sign", () => {
  assert.equal(percent(-0.04), "0.0 %");
  assert.equal(signed(-0.04), "0.0 %");
  assert.equal(signed(-0.05), "-0.1 %");
  assert.equal(whole(-0.4), "0");
  assert.equal(fixed(-1e-9, 2), "0.00");
});
