// The page of all surveys: how each of them is doing.

import { figure, make } from "../js/parts/dom.js";
import { DAY, dayLabel, label, signed, timeOf, wall, whole } from "../js/state/words.js";
import { liveBar } from "./bar.js";
import { connect } from "./stream.js";

const COLUMNS = ["Survey", "Reports over time", "Last final", "Open now", "Refused", "Integrity"];
const surveys = new Map(), shown = new Map();
const body = make("tbody", { role: "rowgroup" });
const lead = make("p", { class: "lead" }), figures = make("div", { class: "figures" }), alarms = make("div", {});
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

// The change of the last final in per cent against the one that began a day before it; null where either is not known.
export function sinceYesterday({ last_final: last, periods }) {
  const before = last && periods.find((period) => wall(period.begin) === wall(last.begin) - DAY);
  return last?.n != null && before?.n ? 100 * (last.n / before.n - 1) : null;
}

function lastFinal(record) {
  const last = record.last_final, by = sinceYesterday(record);
  return last ? `${moment(last)}: ${reports(last)}${by == null ? "" : ` (${signed(by)} against the day before)`}` : "none";
}

// Everything together: what comes in now, what is refused, what is open, what is not counted yet, and what is final.
function showFigures(records) {
  const sum = (of) => records.reduce((total, record) => total + of(record), 0), all = (counts) => Object.values(counts).reduce((a, b) => a + b, 0);
  const [newest] = records.filter((record) => record.last_final).sort((a, b) => wall(b.last_final.begin) - wall(a.last_final.begin)), by = newest && sinceYesterday(newest);
  const lag = records.map((record) => record.lag).find((one) => one != null), lost = sum((record) => record.lost);
  figures.replaceChildren(
    figure("reports now", whole(sum(({ open }) => all(open.map((period) => period.n ?? 0)))), "in what is open"),
    figure("refused", whole(sum((record) => all(record.rejects))), lost ? `and lost, at most: ${whole(lost)}` : ""),
    figure("open", whole(sum((record) => record.open.length)), "not final yet"),
    figure("lag", lag == null ? "–" : whole(lag), "records not counted yet"),
    figure("last final", newest ? moment(newest.last_final) : "none", newest ? `${reports(newest.last_final)}${by == null ? "" : `, ${signed(by)} since the day before`}` : ""));
  const said = records.flatMap((record) => record.alarms.slice(-3).map((alarm) => `${label(record.title, 60)}, ${moment(alarm)}: ${alarm.verdict}`));
  alarms.replaceChildren(...said.map((text) => make("p", { class: "notice", role: "alert" }, text)));
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
  const counted = Object.entries(record.integrity).map(([verdict, periods]) => `${verdict}: ${whole(periods)} times`);
  return list([...counted, ...record.alarms.slice(-3).map((alarm) => `${moment(alarm)}: ${alarm.verdict}`)]);
}

function row(id, record) {
  const cell = (at, name, content) => make("td", { role: "cell", "data-cell": name, "data-label": COLUMNS[at] }, content);
  return make("tr", { role: "row", "data-survey": id },
    make("td", { role: "cell", class: "name" }, make("a", { href: `?survey=${encodeURIComponent(id)}` }, label(record.title || id, 80)), make("div", { class: "hint" }, id)),
    make("td", { role: "cell" }, bars(record)),
    cell(2, "last", lastFinal(record)),
    cell(3, "open", list(record.open.map((period) => `${moment(period)}: ${reports(period)} so far`))),
    cell(4, "refused", refused(record)),
    cell(5, "integrity", integrity(record)));
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
  showFigures(ids.map((id) => ({ ...surveys.get(id), title: surveys.get(id).title || id })));
  lead.textContent = ids.length ? `${whole(ids.length)} ${ids.length === 1 ? "survey" : "surveys"}` : "No survey is published yet.";
}

document.getElementById("header").replaceChildren(make("p", { class: "kicker" }, "hearsay"), make("h1", {}, "Surveys"), lead, figures, alarms);
document.getElementById("main").replaceChildren(make("div", { class: "frame overview", tabindex: 0, role: "region", "aria-label": "Surveys" },
  make("table", { class: "surveys", role: "table" },
    make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...COLUMNS.map((name) => make("th", { scope: "col", role: "columnheader" }, name)))), body),
  make("p", { class: "hint" }, "A suppressed number is below the survey's minimum, and in no sum.")));
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
