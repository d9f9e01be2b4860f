// The frame of every chart: title, what it shows, its controls, the drawing, the table behind it, downloads and a link.

import { cellText } from "../state/tables.js";
import { saveDrawing, saveTable } from "./download.js";
import { make } from "./dom.js";
import { drawWhenSeen } from "./visible.js";

const MOST_ROWS = 400;

// `spec`: { id, title, hint, controls, key, table, draw }, functions of the page's context but for the id. `draw` gets a box
// and a table. The frame shows nothing where `table` returns null.
export function frame(spec, context) {
  const title = make("h3", { id: `${spec.id}-title` }), hint = make("p", { class: "hint" });
  const controls = make("div", { class: "controls" }), key = make("p", { class: "key" });
  const box = make("div", { class: "chart", "data-chart": spec.id, role: "group", "aria-labelledby": `${spec.id}-title` });
  const behind = make("details", { class: "behind" }, make("summary", {}, "Table and downloads"));
  const element = make("section", { class: `frame ${spec.wide ? "wide" : ""}`, id: spec.id, "aria-labelledby": `${spec.id}-title` }, title, hint, controls, key, box, behind);
  const body = make("div", {});
  behind.append(body);
  const shown = { element, table: null };

  const fill = () => {
    if (!behind.open || !shown.table) return;
    body.replaceChildren(buttons(spec, context, box, () => shown.table), tableElement(shown.table, `${spec.id}-title`));
  };
  behind.addEventListener("toggle", fill);

  shown.update = () => {
    element.hidden = !spec.shown(context);
    if (element.hidden) return;
    title.textContent = spec.title(context);
    hint.textContent = spec.hint?.(context) ?? "";
    const made = spec.controls?.(context);
    if (made && !controls.contains(document.activeElement)) controls.replaceChildren(...made);
    key.replaceChildren(...(spec.key?.(context) ?? []));
    drawWhenSeen(box, () => {
      shown.table = spec.table(context);
      spec.draw(box, shown.table, context);
      fill();
    });
  };
  return shown;
}

function buttons(spec, context, box, table) {
  const button = (text, pressed) => make("button", { type: "button", onclick: pressed }, text);
  const survey = context.view.survey ?? "page";
  return make("div", { class: "buttons" },
    button("CSV", () => saveTable(survey, spec.id, table(), "csv")),
    button("JSON", () => saveTable(survey, spec.id, table(), "json")),
    ...(spec.tableOnly ? [] : [
      button("SVG", () => saveDrawing(survey, spec.id, box, "svg")),
      button("PNG", () => saveDrawing(survey, spec.id, box, "png")),
    ]),
    make("a", { href: context.linkTo({ at: spec.id }) }, "Link to this view"));
}

// A table that can be scrolled by keyboard. Long ones are cut: downloads have all rows.
export function tableElement(table, labelledBy) {
  const head = table.columns.map((one) => make("th", { scope: "col", class: one.show ? "number" : "" }, one.label));
  const rows = table.rows.slice(0, MOST_ROWS).map((row) => make("tr", {},
    ...row.map((value, at) => make("td", { class: table.columns[at].show ? "number" : "name" }, cellText(table.columns[at], value)))));
  const element = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  const scroll = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": labelledBy }, element);
  if (table.rows.length <= MOST_ROWS) return scroll;
  const rest = `The first ${MOST_ROWS} of ${table.rows.length.toLocaleString("en-GB")} rows. The downloads have all.`;
  return make("div", {}, scroll, make("p", { class: "hint" }, rest));
}

// An entry of a chart's key: a sign and its meaning.
export function sign(kind, meaning) {
  return make("span", {}, make("i", { class: kind, "aria-hidden": "true" }), meaning);
}
