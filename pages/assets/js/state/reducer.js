// The state of a page: what it was told, by survey. One reducer serves static pages and the live page.

import { named } from "./names.js";

export function emptyState() {
  return { surveys: new Map(), documents: new Map() };
}

function emptySurvey(id) {
  return {
    id, revision: 0, published: 0, about: null, live: null, status: null,
    periods: new Map(), provisional: new Map(), forecast: null, unexpected: new Map(), nowcasts: new Map(),
  };
}

// Takes one event into the state, in place, and returns the id of the survey that it changed (null: a document). A later
// event with the same key replaces the earlier one, and a final removes the provisional result of its period.
export function apply(state, event) {
  const { kind, survey: id, key, record } = event;
  if (kind === "evaluation" || kind === "audit" || kind === "learning" || kind === "outlook") {
    state.documents.set(key, event);
    return null;
  }
  if (!state.surveys.has(id)) state.surveys.set(id, emptySurvey(id));
  const survey = state.surveys.get(id);
  survey.revision += 1;
  if (kind !== "live" && kind !== "status") survey.published += 1;
  if (kind === "survey") survey.about = { ...record, attributes: record.attributes.map(named) };
  else if (kind === "mobility") survey.periods.set(record.period, record);
  else if (kind === "nowcast") survey.nowcasts.set(record.period, record);
  else if (kind === "forecast") takeForecast(survey, record);
  else if (kind === "live") takeLive(survey, record);
  else if (kind === "status") survey.status = record;
  if (kind === "mobility") survey.provisional.delete(record.period);
  if (kind === "mobility" || kind === "nowcast") joinNowcasts(survey.periods.get(record.period), survey.nowcasts.get(record.period));
  return id;
}

// Nowcasts come apart from the mobility report of their period, before or after it. Static pages have them in it.
function joinNowcasts(report, nowcasts) {
  const window = report?.windows.find(({ first, last }) => first === last);
  for (const { attribute, nowcast } of nowcasts?.tables ?? []) {
    const part = window?.attributes?.find(({ name }) => name === attribute);
    if (part?.values) part.values.nowcast = { value: nowcast };
  }
}

// The newest forecast is kept whole. Of earlier ones, only what was unexpected is shown.
function takeForecast(survey, record) {
  const unexpected = record.tables.flatMap((table) => table.unexpected.map((name) => cellKey(table, name)));
  survey.unexpected.set(record.period, new Set(unexpected));
  if (record.begins && record.period >= (survey.forecast?.period ?? -1)) survey.forecast = record;
}

// What a forecast is of: the visitors, a value or a group.
export function cellKey(table, name) {
  return JSON.stringify([table.kind, table.attribute ?? null, name]);
}

function takeLive(survey, record) {
  survey.live = record;
  survey.provisional = new Map();
  for (const histogram of record.open) {
    if (!survey.periods.has(histogram.period)) survey.provisional.set(histogram.period, histogram);
  }
}
