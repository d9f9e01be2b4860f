// Tables: the numbers behind every chart, for reading and for downloads.
// A table is { name, columns: [{ key, label, show }], rows: [[...]] }; `show` makes the text of a
// number from it and its row. A column without a label is in downloads only.

import { offsetOf } from "./words.js";

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d/; // as published: shown without its zone, unless the clock shows it twice
const FORMULA = /^[=+\-@\t\r]/;

export function column(key, label, show = null) {
  return { key, label, show };
}

export function cellText(tableColumn, value, row) {
  if (value == null) return "–";
  if (tableColumn.show) return tableColumn.show(value, row);
  return TIME.test(value) ? value.slice(0, 16).replace("T", " ") + offsetOf(value) : String(value);
}

// A table as CSV. Text that a spreadsheet would take for a formula gets an apostrophe in front.
export function toCsv(table) {
  const quoted = (value) => {
    if (value == null) return "";
    if (typeof value === "number") return String(value);
    const text = FORMULA.test(value) ? `'${value}` : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [table.columns.map((one) => quoted(one.key)), ...table.rows.map((row) => row.map(quoted))];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

// A table as JSON: one object for each row.
export function toJson(table) {
  const rows = table.rows.map((row) => Object.fromEntries(table.columns.map((one, at) => [one.key, row[at] ?? null])));
  return `${JSON.stringify({ name: table.name, rows }, null, 1)}\n`;
}

export function fileName(survey, chart, suffix) {
  const plain = `${survey}-${chart}`.replaceAll(/[^A-Za-z0-9._-]+/g, "-").slice(0, 120);
  return `${plain}.${suffix}`;
}
