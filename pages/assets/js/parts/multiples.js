// Small multiples: one small drawing for each of many series, made when it is seen.

import { make } from "./dom.js";
import { timeline } from "./timeline.js";
import { drawWhenSeen, forget } from "./visible.js";

const FIRST = 12;
const shownIn = new WeakMap(); // the points of a drawing, and its width: the same ones are not drawn again

// `cells`: [{ id, title, points }], where `points` is a function. `more`: { all, show } says whether all are shown, and how
// to ask for that.
export function multiples(box, cells, options, more) {
  const shown = more.all ? cells : cells.slice(0, FIRST);
  const names = shown.map((cell) => cell.id).join(" ");
  let grid = box.querySelector(".multiples");
  if (!grid || grid.dataset.names !== names) {
    forget(box);
    grid = make("div", { class: "multiples" }, ...shown.map((cell) => make("div", { class: "cell" },
      make("h4", {}, cell.title), make("div", { class: "chart", "data-chart": cell.id }))));
    grid.dataset.names = names;
    box.replaceChildren(grid);
    if (cells.length > FIRST) {
      const text = more.all ? `Show the first ${FIRST} only` : `Show all ${cells.length.toLocaleString("en-GB")}`;
      box.append(make("button", { type: "button", class: "more", onclick: () => more.show(!more.all) }, text));
    }
    if (!cells.length) box.append(make("p", { class: "hint" }, "Nothing fits."));
  }
  [...grid.children].forEach((element, at) => {
    const cell = shown[at], small = element.lastChild;
    drawWhenSeen(small, () => {
      const points = cell.points(), before = shownIn.get(small);
      if (before?.points === points && before.width === small.clientWidth) return;
      shownIn.set(small, { points, width: small.clientWidth });
      timeline(small, { lines: [{ name: cell.title, kind: options.kind ?? "", points }] }, { height: 130, ticks: 3, ...options, label: `${cell.title}: ${options.label}` });
    });
  });
}
