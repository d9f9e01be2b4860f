// The live page of one survey: the page of a report, fed by a stream.

import { make } from "../js/parts/dom.js";
import { liveBar } from "./bar.js";
import { connect } from "./stream.js";

const TABLES = ["values", "groups", "visitors", "gaps", "rankings", "dwell", "amounts", "flows", "trips", "histograms"];
const survey = new URLSearchParams(location.search).get("survey");
const page = globalThis.hearsayPage;

function line(table, attribute = null) {
  const query = attribute == null ? "" : `?attribute=${encodeURIComponent(attribute)}`;
  const link = (format) => make("a", { href: `download/${encodeURIComponent(survey)}/${table}.${format}${query}`, download: true }, format);
  return make("li", {}, attribute == null ? `${table}: ` : `${table} of ${attribute}: `, link("csv"), " ", link("parquet"), " ", link("json"));
}

// Links to the tables as files, also of single attributes once they are known.
function downloads() {
  const list = make("ul");
  const fill = () => {
    const attributes = page.state.surveys.get(survey)?.about?.attributes ?? [];
    list.replaceChildren(...TABLES.map((table) => line(table)), ...attributes.map((one) => line("values", one.name)));
  };
  return make("details", { ontoggle: fill }, make("summary", {}, "Tables"), list);
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
