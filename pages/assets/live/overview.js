// The page of all surveys: how each of them is doing.

import { make } from "../js/parts/dom.js";
import { label, wall, dayLabel, timeOf, whole } from "../js/state/words.js";
import { liveBar } from "./bar.js";
import { connect } from "./stream.js";

const COLUMNS = ["Survey", "Reports per period", "Last final", "Open periods", "Refused", "Lag", "Integrity"];
const surveys = new Map(), shown = new Map();
const body = make("tbody", { role: "rowgroup" });
const lead = make("p", { class: "lead" });
const bar = liveBar();

function moment(period) {
  const day = dayLabel(wall(period.begin));
  return timeOf(period.begin) === "00:00" ? day : `${day} ${timeOf(period.begin)}`;
}

function reports(period) {
  return period.suppressed ? "suppressed" : `${whole(period.n)} reports`;
}

function bars(record) {
  const listed = [...record.periods, ...record.open];
  const most = Math.max(1, ...listed.map((period) => period.n ?? 0));
  const described = listed.map((period) => `${moment(period)}: ${reports(period)}`).slice(-3).join(", ");
  return make("div", { class: "bars", role: "img", "aria-label": listed.length ? `The last: ${described}` : "None yet" },
    ...listed.map((period, at) => {
      const kind = period.n == null ? "none" : at >= record.periods.length ? "open" : "final";
      return make("i", { class: kind, title: `${moment(period)}: ${reports(period)}${kind === "open" ? " so far" : ""}`,
        style: period.n == null ? null : `height:${Math.max(2, Math.round((32 * period.n) / most))}px` });
    }));
}

function list(entries) {
  return entries.length ? make("ul", {}, ...entries.map((text) => make("li", {}, text))) : "–";
}

function refused(record) {
  const entries = Object.entries(record.rejects).map(([reason, rows]) => `${reason}: ${whole(rows)}`);
  if (record.lost) entries.push(`lost with the log, at most: ${whole(record.lost)}`);
  return list(entries);
}

function integrity(record) {
  if (!record.integrity) return "–";
  const counted = Object.entries(record.integrity).map(([verdict, periods]) => `${verdict}: ${whole(periods)} ${periods === 1 ? "period" : "periods"}`);
  return list([...counted, ...record.alarms.slice(-3).map((alarm) => `${moment(alarm)}: ${alarm.verdict}`)]);
}

function row(id, record) {
  const last = record.last_final;
  const cell = (at, name, content) => make("td", { role: "cell", "data-cell": name, "data-label": COLUMNS[at] }, content);
  return make("tr", { role: "row", "data-survey": id },
    make("td", { role: "cell", class: "name" }, make("a", { href: `?survey=${encodeURIComponent(id)}` }, label(record.title || id, 80)), make("div", { class: "hint" }, id)),
    make("td", { role: "cell" }, bars(record)),
    cell(2, "last", last ? `${moment(last)}: ${reports(last)}` : "none"),
    cell(3, "open", list(record.open.map((period) => `${moment(period)}: ${reports(period)} so far`))),
    cell(4, "refused", refused(record)),
    cell(5, "lag", record.lag == null ? "–" : whole(record.lag)),
    cell(6, "integrity", integrity(record)));
}

// Rows of surveys that did not change stay, and so does the keyboard's focus.
function show() {
  const ids = [...surveys.keys()].sort(), focused = document.activeElement?.closest("tr")?.dataset.survey;
  for (const id of ids) {
    const record = surveys.get(id);
    if (shown.get(id)?.record !== record) shown.set(id, { record, element: row(id, record) });
  }
  const elements = ids.map((id) => shown.get(id).element);
  if (elements.some((element, at) => body.children[at] !== element) || body.children.length !== elements.length) {
    body.replaceChildren(...elements);
    if (ids.includes(focused)) shown.get(focused).element.querySelector("a").focus({ preventScroll: true });
  }
  lead.textContent = ids.length ? `${whole(ids.length)} ${ids.length === 1 ? "survey" : "surveys"}` : "No survey is published yet.";
}

document.getElementById("header").replaceChildren(make("p", { class: "kicker" }, "hearsay"), make("h1", {}, "Surveys"), lead);
document.getElementById("main").replaceChildren(make("div", { class: "frame overview", tabindex: 0, role: "region", "aria-label": "Surveys" },
  make("table", { class: "surveys", role: "table" },
    make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...COLUMNS.map((name) => make("th", { scope: "col", role: "columnheader" }, name)))), body),
  make("p", { class: "hint" }, "Lag: records of all surveys that are not counted yet. A suppressed number is below the survey's minimum.")));
connect("events", {
  take(events) {
    for (const event of events) {
      if (event.survey === null) bar.about(event.record);
      else if (event.kind === "status") surveys.set(event.survey, event.record);
    }
    show();
  },
  reset() {
    surveys.clear();
    show();
  },
  said: bar.said,
});
