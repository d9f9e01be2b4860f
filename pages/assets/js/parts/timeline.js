// Numbers over time as one drawing of few elements, whatever the number of periods: bars, intervals, points and lines.

import { dayLabel, label, number } from "../state/words.js";
import { draw, make } from "./dom.js";

const MARGIN = { top: 8, right: 10, bottom: 24, left: 46 };
const ROOM_FOR_WHISKERS = 9; // pixels a period must have for intervals of its own; with less they become a band
const MANY_PERIODS = 40;
const FEW_DAYS = 2.5; // for which times of the day are written instead of dates
let drawings = 0;

// `parts`: { bars: [{ name, kind, points }], lines: [{ name, kind, points }] }. Points are { x0, x1, value, low, high, state,
// nowcast, truth, odd, text, when }, with times in milliseconds; `text` and
// `when` are functions; bars of several series are stacked.
export function timeline(box, parts, options = {}) {
  const width = Math.max(200, box.clientWidth), height = options.height ?? 240;
  const id = `t${(drawings += 1)}`;
  const all = [...(parts.bars ?? []), ...(parts.lines ?? [])].flatMap((one) => one.points);
  if (!all.some((p) => p.value != null)) {
    box.replaceChildren(make("p", { class: "hint" }, options.empty ?? "Nothing is published yet."));
    return;
  }
  const x = (options.linear ? d3.scaleLinear : d3.scaleUtc)([d3.min(all, (p) => p.x0), d3.max(all, (p) => p.x1)], [MARGIN.left, width - MARGIN.right]);
  const y = d3.scaleLinear(extent(parts, options), [height - MARGIN.bottom, MARGIN.top]).nice(5);
  const svg = draw("svg", { class: "timeline", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": options.label ?? "" });
  const middles = [...new Map(all.map((p) => [p.x0, p.x1]))].sort((a, b) => a[0] - b[0]);
  svg.append(definitions(id, width, height), axes(x, y, width, height, { ...options, middles }));
  const inside = draw("g", { "clip-path": `url(#${id}-clip)` });
  svg.append(inside);
  const spacing = (width - MARGIN.left - MARGIN.right) / Math.max(1, middles.length);
  stack(parts.bars ?? []).forEach((bar) => inside.append(...barPaths(bar, x, y, id)));
  for (const line of parts.lines ?? []) inside.append(...linePaths(line, x, y, id, spacing));
  const pointed = pointing(svg, parts, x, y, width, height);
  box.replaceChildren(svg, pointed);
}

function extent(parts, options) {
  let low = options.zero === false ? Infinity : 0, high = options.zero === false ? -Infinity : 0;
  const tell = (value) => {
    if (value == null) return;
    low = Math.min(low, value);
    high = Math.max(high, value);
  };
  for (const bar of stack(parts.bars ?? [])) for (const p of bar.points) { tell(p.top); tell(p.low); tell(p.high); }
  for (const line of parts.lines ?? []) for (const p of line.points) for (const name of ["value", "low", "high", "nowcast", "truth", "outerLow", "outerHigh"]) tell(p[name]);
  if (!(high > low)) high = low + 1;
  const [floor, ceiling] = options.within ?? [-Infinity, Infinity];
  return [Math.max(low, floor), Math.min(high, ceiling)]; // what cannot be is cut off
}

function stack(bars) {
  const heights = new Map();
  return bars.map((bar) => ({
    ...bar,
    points: bar.points.filter((p) => p.value != null).map((p) => {
      const base = heights.get(p.x0) ?? 0;
      heights.set(p.x0, base + p.value);
      return { ...p, base, top: base + p.value };
    }),
  }));
}

function definitions(id, width, height) {
  const pattern = draw("pattern", { id: `${id}-hatch`, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    draw("line", { class: "hatch", x1: 0, x2: 0, y1: 0, y2: 5 }));
  const area = draw("rect", { x: MARGIN.left, y: 0, width: width - MARGIN.left, height: height - MARGIN.bottom + 6 });
  return draw("defs", {}, pattern, draw("clipPath", { id: `${id}-clip` }, area));
}

function axes(x, y, width, height, options) {
  const group = draw("g", { class: "axes", "aria-hidden": "true" });
  const format = options.format ?? number;
  for (const tick of y.ticks(options.ticks ?? 5)) {
    group.append(draw("line", { class: tick === 0 ? "zero" : "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(tick), y2: y(tick) }));
    group.append(draw("text", { x: MARGIN.left - 6, y: y(tick) + 4, "text-anchor": "end" }, format(tick)));
  }
  const show = options.linear ? number : timeFormat(x.domain());
  for (const [place, time] of timeTicks(x, width, options)) {
    if (place < MARGIN.left + 8 || place > width - 18) continue;
    group.append(draw("text", { x: place, y: height - 6, "text-anchor": "middle" }, show(time)));
  }
  return group;
}

// Where times are written: below the middle of every period, or of every second, third, ... where they are many; of very
// many, at round times.
function timeTicks(x, width, options) {
  const periods = options.middles, most = Math.max(2, Math.floor((width - MARGIN.left) / 62));
  if (options.linear) return x.ticks(most).map((tick) => [x(tick), tick]);
  const step = Math.ceil(periods.length / most);
  const round = x.ticks(most).filter((tick) => daysOf(x.domain()) <= FEW_DAYS || tick % 86400000 === 0);
  if (periods.length > MANY_PERIODS && round.length > 1) return round.map((tick) => [x(tick), tick]);
  return periods.filter((_, at) => at % step === 0).map(([from, to]) => [x((from + to) / 2), from]);
}

function daysOf([from, to]) {
  return (to - from) / 86400000;
}

function timeFormat(domain) {
  const days = daysOf(domain);
  if (days <= FEW_DAYS) return (time) => d3.utcFormat(time % 86400000 === 0 ? "%-d %b" : "%H:%M")(time);
  return days <= 200 ? d3.utcFormat("%-d %b") : d3.utcFormat("%b %Y");
}

function barPaths(bar, x, y, id) {
  const one = { final: "", provisional: "" };
  for (const p of bar.points) {
    const left = x(p.x0), right = x(p.x1), gap = Math.min(3, (right - left) * 0.12);
    one[p.state ?? "final"] += `M${round(left + gap)} ${round(y(p.base))}V${round(y(p.top))}H${round(right - gap)}V${round(y(p.base))}Z`;
  }
  const paths = [];
  if (one.final) paths.push(draw("path", { class: `bar ${bar.kind}`, d: one.final }));
  if (one.provisional) paths.push(draw("path", { class: `bar provisional ${bar.kind}`, d: one.provisional, style: `fill:url(#${id}-hatch)` }));
  return paths;
}

function linePaths(line, x, y, id, spacing) {
  const at = (p) => x((p.x0 + p.x1) / 2), known = line.points.filter((p) => p.value != null);
  const paths = [], final = known.filter((p) => p.state !== "provisional"), open = known.filter((p) => p.state === "provisional");
  const band = (name, low, high) => draw("path", { class: `${name} ${line.kind}`, d: d3.area().defined((p) => p[low] != null && p[high] != null).x(at).y0((p) => y(p[low])).y1((p) => y(p[high]))(line.points.filter((p) => p.state !== "provisional")) ?? "" });
  if (known.some((p) => p.outerLow != null)) paths.push(band("band outer", "outerLow", "outerHigh"));
  if (line.points.some((p) => p.low != null)) {
    if (spacing >= ROOM_FOR_WHISKERS && !line.banded) paths.push(draw("path", { class: `whisker ${line.kind}`, d: final.filter((p) => p.low != null).map((p) => `M${round(at(p))} ${round(y(p.low))}V${round(y(p.high))}`).join("") }));
    else paths.push(band("band", "low", "high"));
    const half = Math.max(1.5, Math.min(5, spacing / 2));
    const hatched = open.filter((p) => p.low != null).map((p) => `M${round(at(p) - half)} ${round(y(p.low))}V${round(y(p.high))}h${round(2 * half)}V${round(y(p.low))}Z`).join("");
    if (hatched) paths.push(draw("path", { class: `provisional ${line.kind}`, d: hatched, style: `fill:url(#${id}-hatch)` }));
  }
  if (line.joined) paths.push(draw("path", { class: `line ${line.kind}`, d: d3.line().defined((p) => p.value != null).x(at).y((p) => y(p.value))(line.points) ?? "" }));
  if (known.some((p) => p.nowcast != null)) paths.push(draw("path", { class: `smooth ${line.kind}`, d: d3.line().defined((p) => p.nowcast != null).x(at).y((p) => y(p.nowcast))(line.points) ?? "" }));
  if (!line.joined) {
    const dot = spacing >= ROOM_FOR_WHISKERS ? 5 : 2.5, dots = (list) => list.map((p) => `M${round(at(p))} ${round(y(p.value))}h0`).join("");
    paths.push(draw("path", { class: `dots ${line.kind}`, d: dots(final), "stroke-width": dot }));
    if (open.length) paths.push(draw("path", { class: `rings ${line.kind}`, d: open.map((p) => `M${round(at(p) - 3)} ${round(y(p.value))}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0`).join("") }));
  }
  const truth = line.points.filter((p) => p.truth != null), size = spacing >= ROOM_FOR_WHISKERS ? 4 : 1.5;
  if (truth.length) paths.push(draw("path", { class: "truth", d: truth.map((p) => `M${round(at(p))} ${round(y(p.truth) - size)}l${size} ${size}l${-size} ${size}l${-size} ${-size}Z`).join("") }));
  const odd = line.points.filter((p) => p.odd && p.value != null);
  if (odd.length) paths.push(draw("path", { class: "odd", d: odd.map((p) => `M${round(at(p) - 4)} ${round(y(p.value) - 4)}l8 8m0 -8l-8 8`).join("") }));
  return paths;
}

function round(value) {
  return Math.round(value * 10) / 10;
}

// What the nearest period says, where a pointer is.
function pointing(svg, parts, x, y, width, height) {
  const box = make("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  const mark = draw("line", { class: "mark", y1: MARGIN.top, y2: height - MARGIN.bottom, visibility: "hidden" });
  svg.append(mark);
  const lists = [...(parts.bars ?? []), ...(parts.lines ?? [])];
  const times = lists[0].points.map((p) => p.x0);
  const say = (event) => {
    const time = Number(x.invert(d3.pointer(event, svg)[0]));
    const place = Math.max(0, d3.bisectRight(times, time) - 1), begin = times[place];
    const found = lists.map((list) => [list, list.points.find((p) => p.x0 === begin)]).filter(([, p]) => p && p.value != null);
    const said = found.map(([list, p]) => make("span", {}, p.text ? p.text() : `${label(list.name)} ${number(p.value)}`));
    const centre = lists[0].points[place];
    box.replaceChildren(make("b", {}, centre.when ? centre.when() : dayLabel(begin)), ...(said.length ? said : [make("span", {}, "nothing published")]));
    box.hidden = false;
    const middle = x((centre.x0 + centre.x1) / 2);
    mark.setAttribute("x1", middle);
    mark.setAttribute("x2", middle);
    mark.setAttribute("visibility", "visible");
    box.style.left = `${Math.max(0, Math.min(width - 190, middle + 8))}px`;
  };
  svg.addEventListener("pointermove", say);
  svg.addEventListener("pointerdown", say);
  svg.addEventListener("pointerleave", () => {
    box.hidden = true;
    mark.setAttribute("visibility", "hidden");
  });
  return box;
}
