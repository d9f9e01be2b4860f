// Tables of shaded cells: calendars, triangles, flows. Nine shades, each with an ink that can be read on it.

import { label } from "../state/words.js";
import { draw, make } from "./dom.js";
import { sign } from "./frame.js";

const SHADES = 9;
const LEFT = 12;

// The shade of a value between 0 and the largest one; null where it is not known.
export function shade(value, most) {
  if (value == null) return null;
  return Math.max(0, Math.min(SHADES - 1, Math.floor((SHADES * value) / (most > 0 ? most : 1))));
}

// `cells`: [{ row, column, value, text, title }], by the places of their row and column. `axes`: { rows, columns, rowTitle,
// columnTitle }, with the names of both.
export function heat(box, cells, axes, name) {
  const width = Math.max(220, box.clientWidth);
  const rowRoom = LEFT + 7 * Math.min(16, Math.max(2, ...axes.rows.map((row) => [...row].length)));
  const size = (width - rowRoom - 4) / Math.max(1, axes.columns.length);
  const high = Math.max(15, Math.min(40, axes.rows.length > 12 ? 18 : 34)), slanted = size < 7 * Math.min(12, Math.max(...axes.columns.map((one) => [...one].length)));
  const head = slanted ? 62 : 24, height = head + high * axes.rows.length + 24;
  const svg = draw("svg", { class: "heat", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name });
  const most = Math.max(0, ...cells.map((cell) => cell.value ?? 0));
  const step = Math.max(1, Math.ceil((slanted ? 22 : 1) / size));
  axes.columns.forEach((column, at) => {
    if (at % step) return;
    const x = rowRoom + (at + 0.5) * size;
    svg.append(draw("text", slanted ? { x, y: head - 6, transform: `rotate(-40 ${x} ${head - 6})` } : { x, y: head - 8, "text-anchor": "middle" }, label(column, 12)));
  });
  axes.rows.forEach((row, at) => svg.append(draw("text", { x: rowRoom - 6, y: head + (at + 0.5) * high + 4, "text-anchor": "end" }, label(row, 16))));
  for (const cell of cells) {
    const level = shade(cell.value, most), x = rowRoom + cell.column * size, y = head + cell.row * high;
    const group = draw("g", { class: level == null ? "cell none" : `cell level${level}` },
      draw("rect", { x: x + 0.75, y: y + 0.75, width: Math.max(1, size - 1.5), height: high - 1.5, rx: 3 }),
      draw("title", {}, cell.title));
    const room = cell.text && size >= 7.2 * [...cell.text].length + 4 && high >= 16;
    if (room) group.append(draw("text", { x: x + size / 2, y: y + high / 2 + 4, "text-anchor": "middle" }, cell.text));
    svg.append(group);
  }
  svg.append(draw("text", { class: "axis-title", x: rowRoom, y: height - 6 }, [axes.columnTitle, axes.rowTitle].filter(Boolean).join("; ")));
  box.replaceChildren(svg);
}

// The key of shades: from nothing to the largest value.
export function shadesKey(most, text) {
  const steps = Array.from({ length: SHADES }, (_, at) => make("i", { class: `step level${at}`, "aria-hidden": "true" }));
  return [make("span", { class: "steps" }, "0", make("span", { class: "strip" }, ...steps), text(most)), sign("none", "suppressed or nothing")];
}
