// The calendar of periods, and the triangle of all windows.

import { isKnown } from "../state/quantities.js";
import { remembered } from "../state/remembered.js";
import { periodsOf } from "../state/series.js";
import { column } from "../state/tables.js";
import { capitalised, clockOf, dayLabel, dayOf, lengthName, periodName, short, timeOf, wall, weekday, whole, windowLabel } from "../state/words.js";
import { heat, shadesKey } from "../parts/heat.js";

const WEEK = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const DAY_LENGTH = 86400000;

export function calendarView() {
  return {
    see: "calendar", name: "Calendar",
    shown: ({ survey }) => periodsOf(survey).length > 1 && survey.about.period_seconds <= 86400,
    hint: ({ survey, words }) => `${capitalised(words.many)} of each ${periodName(survey.about)}, by date.`,
    key: ({ survey }) => shadesKey(Math.max(0, ...periodsOf(survey).map((row) => row.visitors.value ?? 0)), whole),
    table: calendarTable,
    draw: (box, table, context) => {
      const { rows, columns, cells } = laidOut(context.survey);
      heat(box, cells, { rows, columns, columnTitle: hourly(context.survey) ? "" : "weeks, by their Monday" }, "Calendar; the table has all numbers");
    },
  };
}

function hourly(survey) {
  return survey.about.period_seconds < 86400;
}

function laidOut(survey) {
  const periods = periodsOf(survey), byTime = hourly(survey);
  const monday = (row) => wall(dayOf(row.begin) + "T00:00:00") - weekday(row.begin) * DAY_LENGTH;
  const columnOf = byTime ? (row) => dayOf(row.begin) : monday, rowOf = byTime ? (row) => clockOf(row.begin) : (row) => WEEK[weekday(row.begin)];
  const columns = [...new Set(periods.map(columnOf))], rows = byTime ? [...new Set(periods.map(rowOf))].sort() : WEEK;
  const cells = periods.map((row) => ({
    row: rows.indexOf(rowOf(row)), column: columns.indexOf(columnOf(row)), value: row.visitors.value, text: isKnown(row.visitors) ? short(row.visitors.value) : "",
    title: `${windowLabel(row.begin, row.end, survey.about.period_seconds)}: ${isKnown(row.visitors) ? whole(row.visitors.value) : row.suppressed ? "suppressed" : "not published"}${row.state === "provisional" ? " so far" : ""}`,
  }));
  return { rows, columns: columns.map((one) => dayLabel(byTime ? wall(`${one}T00:00:00`) : one).slice(4)), cells };
}

function calendarTable({ survey, words }) {
  const columns = [column("begin", "from"), column("end", "to"), column("state", "state"), column(words.many, words.many, whole)];
  return { name: "calendar", columns, rows: periodsOf(survey).map((row) => [row.begin, row.end, row.suppressed ? "suppressed" : row.state, row.visitors.value]) };
}

// The cells of the triangle by step: a step is the shortest run that ends with a period. Runs that begin before the first
// step are left out: the reports of their first periods are gone.
export function triangleOf(survey) {
  return remembered(survey, "triangle", () => madeTriangle(survey));
}

function madeTriangle(survey) {
  const records = [...survey.periods.values()].filter((record) => record.triangle.length).sort((a, b) => a.period - b.period);
  const periods = new Map(periodsOf(survey).map((row) => [row.period, row]));
  const steps = records.map((record) => ({ first: Math.max(...record.triangle.map((cell) => cell.first)), last: record.period }));
  const places = new Map(steps.map((step, at) => [step.first, at]));
  const name = (step) => (periods.has(step.first) && periods.has(step.last) ? windowLabel(periods.get(step.first).begin, periods.get(step.last).end, survey.about.period_seconds) : "");
  const cells = records.flatMap((record, at) => record.triangle.filter((cell) => places.has(cell.first))
    .map((cell) => ({ from: places.get(cell.first), to: at, first: cell.first, last: record.period, visitors: cell.visitors })));
  const brief = ({ first }) => (periods.has(first) ? beginning(periods.get(first).begin) : `${first}`);
  return { steps, name: (at) => name(steps[at]), brief: (at) => brief(steps[at]), cells };
}

export function triangleView() {
  return {
    see: "different", name: "Different ones",
    shown: ({ survey }) => survey.about.horizon > 1 && survey.periods.size > 1 && triangleOf(survey).steps.length > 1,
    hint: ({ survey, words }) => `Different ${words.many} in every stretch of time, by its beginning and its length in steps of ${lengthName(survey.about, stepOf(survey))}.`,
    key: ({ survey }) => shadesKey(Math.max(0, ...triangleOf(survey).cells.map((cell) => cell.visitors?.value ?? 0)), whole),
    table: ({ survey, words }) => ({
      name: "triangle",
      columns: [column("first", null), column("last", null), column("begins", "from"), column("length", "length"), column(words.many, words.many, whole), column("low", "low", whole), column("high", "high", whole)],
      rows: triangleOf(survey).cells.map((cell) => [cell.first, cell.last, triangleName(survey, cell), lengthName(survey.about, cell.last - cell.first + 1), cell.visitors?.value ?? null, cell.visitors?.low ?? null, cell.visitors?.high ?? null]),
    }),
    draw: (box, table, { survey, words }) => {
      const { steps, name, brief, cells } = triangleOf(survey), last = steps.length - 1, most = 31, from = Math.max(0, last - most + 1);
      const shown = cells.filter((cell) => cell.from >= from), longest = Math.max(...shown.map((cell) => cell.to - cell.from)) + 1;
      const rows = Array.from({ length: longest }, (_, at) => `${at + 1}`);
      heat(box, shown.map((cell) => ({
        row: cell.to - cell.from, column: cell.from - from, value: cell.visitors?.value ?? null, text: cell.visitors ? short(cell.visitors.value) : "",
        title: `from ${name(cell.from)}, length ${cell.to - cell.from + 1}: ${cell.visitors ? `${whole(cell.visitors.value)} ${words.many}` : "suppressed"}`,
      })), { rows, columns: steps.slice(from).map((_, at) => brief(from + at)), columnTitle: "columns: beginning", rowTitle: "rows: length" }, `Different ${words.many} in every stretch of time; the table has all numbers`);
    },
  };
}

// When a step begins: its day, or its time where it begins within a day.
function beginning(begin) {
  return timeOf(begin) === "00:00" ? dayLabel(wall(begin)).slice(4) : timeOf(begin);
}

// How many periods the shortest stretch has.
function stepOf(survey) {
  const [{ first, last }] = triangleOf(survey).steps;
  return last - first + 1;
}

function triangleName(survey, cell) {
  return periodsOf(survey).find((row) => row.period === cell.first)?.begin ?? "";
}
