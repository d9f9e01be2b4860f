// A card: a title, a switch between the views of one thing, what the view shows, its controls, the drawing, and its table.

import { cellText } from "../state/tables.js";
import { saveDrawing, saveTable } from "./download.js";
import { make } from "./dom.js";
import { drawWhenSeen } from "./visible.js";

const MOST_ROWS = 400;

// `spec`: { id, title, views }, or one view with an id. A view: { see, name, shown, hint, controls, key, table, draw }: all but
// `see` and `name`, its place in the switch, are functions of the page's context. `draw` gets a box, a function that returns the
// table, and the context. `plain`: the table itself is shown, and nothing drawn. `folded`: the card is one line, which opens it.
function frame(spec, context) {
  const views = spec.views ?? [spec];
  const title = make("h3", { id: `${spec.id}-title` }), line = make("span", { class: "hint" }), tabs = make("div", { class: "switch", role: "group", "aria-labelledby": `${spec.id}-title` });
  const hint = make("p", { class: "hint" }), controls = make("div", { class: "controls" }), key = make("p", { class: "key" });
  const box = make("div", { class: "chart", "data-chart": spec.id, role: "group", "aria-labelledby": `${spec.id}-title` }), behind = make("div", { class: "behind" });
  const below = [hint, controls, key, box, behind];
  const element = make("section", { class: "frame", id: spec.id, "aria-labelledby": `${spec.id}-title` },
    ...(spec.folded ? [make("details", {}, make("summary", {}, title, " ", line), tabs, ...below)] : [make("div", { class: "head" }, title, tabs), ...below]));
  let table = null, opened = false;

  const active = () => {
    const possible = views.filter((view) => view.shown(context));
    return [possible.find((view) => view.see && view.see === context.view[`see.${spec.id}`]) ?? possible[0], possible];
  };
  const showTabs = (view, possible) => {
    const names = possible.map((one) => one.see).join(" ") + (view.plain ? " plain" : "");
    if (tabs.dataset.names !== names) {
      const tab = (see, text, pressed) => make("button", { type: "button", "data-see": see, onclick: pressed }, text);
      tabs.dataset.names = names;
      tabs.replaceChildren(...(possible.length > 1 ? possible.map((one) => tab(one.see, one.name, () => context.set({ [`see.${spec.id}`]: one.see }))) : []),
        tab("table", view.plain ? "Downloads" : "Table", () => { opened = !opened; drawn(); }));
    }
    for (const button of tabs.children) button.setAttribute("aria-pressed", button.dataset.see === "table" ? opened : button.dataset.see === view.see);
  };
  const drawn = () => {
    const [view, possible] = active();
    table = once(() => view.table(context));
    showTabs(view, possible);
    hint.textContent = view.hint?.(context) ?? "";
    const made = view.controls?.(context) ?? [];
    if (box.dataset.see !== view.see || !controls.contains(document.activeElement)) controls.replaceChildren(...made);
    box.dataset.see = view.see ?? "";
    key.replaceChildren(...(view.key?.(context) ?? []));
    const numbers = () => (table().rows.length ? [tableElement(table(), `${spec.id}-title`)] : []);
    if (view.plain) box.replaceChildren(...numbers());
    else view.draw(box, table, context);
    behind.replaceChildren(...(opened ? [buttons(spec, view, context, box, () => table()), ...(view.plain ? [] : numbers())] : []));
  };
  return {
    element,
    update: () => {
      element.hidden = !active()[0];
      if (element.hidden) return;
      title.textContent = spec.title(context);
      line.textContent = spec.line?.(context) ?? "";
      drawWhenSeen(box, drawn);
    },
  };
}

function once(made) {
  let kept = null;
  return () => (kept ??= made());
}

function buttons(spec, view, context, box, table) {
  const button = (text, pressed) => make("button", { type: "button", onclick: pressed }, text);
  const name = context.view.survey ?? context.survey?.id ?? "page", file = view.see ? `${spec.id}-${view.see}` : spec.id;
  return make("div", { class: "buttons" },
    ...["csv", "json"].map((format) => button(format.toUpperCase(), () => saveTable(name, file, table(), format))),
    ...(view.plain ? [] : ["svg", "png"].map((format) => button(format.toUpperCase(), () => saveDrawing(name, file, box, format)))),
    make("a", { href: context.linkTo({ at: spec.id }) }, "Link to this view"));
}

// A table that can be scrolled by keyboard. Long ones are cut: downloads have all rows.
export function tableElement(table, labelledBy) {
  const shown = table.columns.map((one, at) => ({ ...one, at })).filter((one) => one.label != null);
  const head = shown.map((one) => make("th", { scope: "col", class: one.show ? "number" : "" }, one.label));
  const cell = (one, row) => make("td", { class: one.show ? "number" : "name" }, cellText(one, row[one.at], row));
  const rows = table.rows.slice(0, MOST_ROWS).map((row) => make("tr", {}, ...shown.map((one) => cell(one, row))));
  const element = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  const scroll = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": labelledBy }, element);
  if (table.rows.length <= MOST_ROWS) return scroll;
  const rest = `The first ${MOST_ROWS} of ${table.rows.length.toLocaleString("en-GB")} rows. The downloads have all.`;
  return make("div", {}, scroll, make("p", { class: "hint" }, rest));
}

// The first of many rows of a drawing, and a button for all of them. `id` is of the card.
const FEW = 12;
export function firstRows(context, id, rows) {
  const all = context.view.all === id || rows.length <= FEW + 2;
  const text = all ? `Show the first ${FEW} only` : `Show all ${rows.length.toLocaleString("en-GB")}`;
  const button = make("button", { type: "button", class: "more", onclick: () => context.set({ all: all ? "" : id }) }, text);
  return [all ? rows : rows.slice(0, FEW), rows.length > FEW + 2 ? [button] : []];
}

// An entry of a chart's key: a sign and its meaning.
export function sign(kind, meaning) {
  return make("span", {}, make("i", { class: kind, "aria-hidden": "true" }), meaning);
}

// A part of a page that is text: paragraphs, the important ones marked.
export function textPart(id, title, paragraphs) {
  const element = make("section", { class: "frame", id, "aria-labelledby": `${id}-title` }, make("h3", { id: `${id}-title` }, title),
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
