// The live page of one survey: the page of a report, fed by a stream.

import { make } from "../js/parts/dom.js";
import { liveBar } from "./bar.js";
import { connect } from "./stream.js";

const TABLES = ["values", "groups", "visitors", "gaps", "rankings", "dwell", "flows", "histograms"];
const survey = new URLSearchParams(location.search).get("survey");
const page = globalThis.hearsayPage;

function downloads() {
  const link = (table, format) => make("a", { href: `download/${encodeURIComponent(survey)}/${table}.${format}`, download: true }, format);
  return make("details", { class: "downloads" }, make("summary", {}, "Tables"),
    make("ul", {}, ...TABLES.map((table) => make("li", {}, `${table}: `, link(table, "csv"), " ", link(table, "parquet"), " ", link(table, "json")))));
}

const bar = liveBar(make("a", { href: "./" }, "All surveys"), downloads());
connect(`events?survey=${encodeURIComponent(survey)}`, {
  take(events) {
    for (const event of events) if (event.survey === null) bar.about(event.record);
    page.receive(events.filter((event) => event.survey !== null && event.kind !== "status"));
  },
  reset() {
    page.state.surveys.clear();
    page.state.documents.clear();
  },
  said: bar.said,
});
