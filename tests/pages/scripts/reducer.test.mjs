import assert from "node:assert/strict";
import { test } from "node:test";
import { apply, emptyState } from "../../../pages/assets/js/state/reducer.js";
import { periodsOf } from "../../../pages/assets/js/state/series.js";

const histogram = (period, n) => ({
  kind: "provisional", period, n, begin: `2026-01-0${period + 1}T00:00:00Z`, end: `2026-01-0${period + 2}T00:00:00Z`,
  attributes: [{ name: "a", n, estimate: [0.25, 0.75], error: [0.1, 0.1], low: [0.05, 0.55], high: [0.45, 0.95] }],
});
const live = (...open) => ({ kind: "live", survey: "s", key: "live/s", record: { closed_through: 0, open, rejects: {}, lates: {}, lost: {} } });
const final = (period, value) => ({
  kind: "mobility", survey: "s", key: `mobility/s/${period}`,
  record: { period, triangle: [], windows: [{ first: period, last: period, kind: "period", begin: `2026-01-0${period + 1}T00:00:00Z`, end: `2026-01-0${period + 2}T00:00:00Z`, visitors: { value, error: 0, low: value, high: value }, attributes: [] }] },
});

function told(...events) {
  const state = emptyState();
  for (const event of events) apply(state, event);
  return state.surveys.get("s");
}

test("a later event with the same key replaces the earlier one", () => {
  const survey = told(final(0, 10), final(0, 12));
  assert.deepEqual(periodsOf(survey).map((row) => row.visitors.value), [12]);
});

test("a final takes the place of the provisional result of its period", () => {
  const survey = told(live(histogram(0, 7), histogram(1, 3)), final(0, 9));
  assert.deepEqual(periodsOf(survey).map((row) => [row.period, row.state, row.visitors.value]), [[0, "final", 9], [1, "provisional", 3]]);
});

test("a live record that comes after the final does not bring the provisional result back", () => {
  const survey = told(final(0, 9), live(histogram(0, 7), histogram(1, 4)));
  assert.deepEqual(periodsOf(survey).map((row) => row.state), ["final", "provisional"]);
});

test("a newer live record replaces all provisional results", () => {
  const survey = told(live(histogram(0, 7), histogram(1, 3)), live(histogram(1, 5)));
  assert.deepEqual(periodsOf(survey).map((row) => [row.period, row.visitors.value]), [[1, 5]]);
});

test("the order of events of different periods does not matter", () => {
  const one = told(final(0, 1), final(1, 2), live(histogram(2, 3))), other = told(live(histogram(2, 3)), final(1, 2), final(0, 1));
  assert.deepEqual(periodsOf(one), periodsOf(other));
});

test("names of a range are made when they are asked for", () => {
  const attributes = [{ name: "a", range: { first: -5, last: 12, step: 5 } }, { name: "b", range: { first: 0, last: 999_999, step: 1 } }, { name: "c", values: ["x", "y"] }];
  const [steps, many, listed] = told({ kind: "survey", survey: "s", key: "survey/s", record: { attributes } }).about.attributes.map((attribute) => attribute.values);
  assert.deepEqual(Array.from(steps, (_, place) => steps.at(place)), ["-5--1", "0-4", "5-9", "10-12"]);
  assert.deepEqual(["0-4", "10-12", "10-14", "15-19", "x"].map(steps.indexOf), [1, 3, -1, -1, -1]);
  assert.deepEqual([many.length, many.at(77), many.indexOf("999999"), many.indexOf("1000000"), many.indexOf("07")], [1_000_000, "77", 999_999, -1, -1]);
  assert.deepEqual(listed, ["x", "y"]);
});

test("nowcasts are shown with the report of their period, whichever of them comes first", () => {
  const window = () => ({ first: 0, last: 0, attributes: [{ name: "plan", values: { share: { value: [0.4] } } }] });
  const report = () => ({ kind: "mobility", survey: "s", key: "mobility/s/0", record: { period: 0, windows: [window()], triangle: [] } });
  const nowcast = { kind: "nowcast", survey: "s", key: "nowcast/s/0", record: { period: 0, tables: [{ attribute: "plan", nowcast: [0.3] }] } };
  for (const events of [[report(), nowcast], [nowcast, report()]]) {
    const state = emptyState();
    for (const event of events) apply(state, event);
    assert.deepEqual(state.surveys.get("s").periods.get(0).windows[0].attributes[0].values.nowcast.value, [0.3]);
  }
});
