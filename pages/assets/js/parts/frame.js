// The frame of every chart: title, what it shows, its controls, the drawing, the table behind it, downloads and a link.

import { cellText } from "../state/tables.js";
import { saveDrawing, saveTable } from "./download.js";
import { make } from "./dom.js";
import { drawWhenSeen } from "./visible.js";

const MOST_ROWS = 400;

// `spec`: { id, shown, title, hint, controls, key, table, draw }; all but the id are functions of the page's context. `draw`
// gets a box, a function that returns the table, and the context. `plain`: the table itself is shown, and nothing drawn.
function frame(spec, context) {
  const title = make("h3", { id: `${spec.id}-title` }), hint = make("p", { class: "hint" });
  const controls = make("div", { class: "controls" }), key = make("p", { class: "key" });
  const box = make("div", { class: "chart", "data-chart": spec.id, role: "group", "aria-labelledby": `${spec.id}-title` });
  const behind = make("details", { class: "behind" }, make("summary", {}, spec.plain ? "Downloads" : "Table and downloads"));
  const element = make("section", { class: spec.wide ? "frame wide" : "frame", id: spec.id, "aria-labelledby": `${spec.id}-title` }, title, hint, controls, key, box, behind);
  const body = make("div", {});
  behind.append(body);
  let table = () => spec.table(context);

  const fill = () => {
    if (!behind.open) return;
    const numbers = spec.plain ? [] : [tableElement(table(), `${spec.id}-title`)];
    body.replaceChildren(buttons(spec, context, box, () => table()), ...numbers);
  };
  behind.addEventListener("toggle", fill);

  const drawn = () => {
    table = once(() => spec.table(context));
    hint.textContent = spec.hint?.(context) ?? "";
    const made = spec.controls?.(context) ?? [];
    const same = made.length === controls.children.length && made.every((one, at) => one === controls.children[at]);
    if (!same && !controls.contains(document.activeElement)) controls.replaceChildren(...made);
    key.replaceChildren(...(spec.key?.(context) ?? []));
    if (spec.plain) box.replaceChildren(...(table().rows.length ? [tableElement(table(), `${spec.id}-title`)] : []));
    else spec.draw(box, table, context);
    fill();
  };
  return {
    element,
    update: () => {
      element.hidden = !spec.shown(context);
      if (element.hidden) return;
      title.textContent = spec.title(context);
      drawWhenSeen(box, drawn);
    },
  };
}

function once(made) {
  let kept = null;
  return () => (kept ??= made());
}

function buttons(spec, context, box, table) {
  const button = (text, pressed) => make("button", { type: "button", onclick: pressed }, text);
  const name = context.view.survey ?? context.survey?.id ?? "page";
  return make("div", { class: "buttons" },
    button("CSV", () => saveTable(name, spec.id, table(), "csv")),
    button("JSON", () => saveTable(name, spec.id, table(), "json")),
    ...(spec.plain ? [] : [
      button("SVG", () => saveDrawing(name, spec.id, box, "svg")),
      button("PNG", () => saveDrawing(name, spec.id, box, "png")),
    ]),
    make("a", { href: context.linkTo({ at: spec.id }) }, "Link to this view"));
}

// A table that can be scrolled by keyboard. Long ones are cut: downloads have all rows.
export function tableElement(table, labelledBy) {
  const head = table.columns.map((one) => make("th", { scope: "col", class: one.show ? "number" : "" }, one.label));
  const cell = (value, at, row) => make("td", { class: table.columns[at].show ? "number" : "name" }, cellText(table.columns[at], value, row));
  const rows = table.rows.slice(0, MOST_ROWS).map((row) => make("tr", {}, ...row.map(cell)));
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

// A part of a page that is text: paragraphs, the important ones marked.
export function textPart(id, title, paragraphs) {
  const element = make("section", { class: "frame wide", id, "aria-labelledby": `${id}-title` }, make("h3", { id: `${id}-title` }, title),
    ...paragraphs.map(([kind, head, text]) => make("p", { class: kind }, ...(head ? [make("strong", {}, head), " "] : []), text)));
  element.hidden = !paragraphs.length;
  return { element, update: () => {} };
}

// A frame that reads the newest context whenever it is updated.
export function framed(spec, context) {
  const live = { ...context }, made = frame(spec, live);
  return {
    element: made.element,
    update: (now) => {
      Object.assign(live, now);
      made.update();
    },
  };
}
