"use strict";
// Draws the page from the data embedded in it. The only state is the chosen window; nothing is fetched.

const data = JSON.parse(document.getElementById("data").textContent);
let INK, SOFT, LINE, PAPER, ACCENT, PALE, WARM, SHADES;
const percent = Math.round(data.confidence * 100);

const $ = (id) => document.getElementById(id);
const whole = (x) => x == null ? "–" : Math.round(x).toLocaleString("en");
const signed = (x) => x == null ? "–" : (x > 0 ? "+" : x < 0 ? "−" : "") + Math.abs(x).toFixed(1) + " %";
const likely = (p) => `${Math.round(p * 100)}\u00a0%`;
const known = (numbers) => numbers.value.length > 0 && numbers.value[0] != null;

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function takeColours() { // from the style sheet, light or dark
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  [INK, SOFT, LINE, PAPER, ACCENT, PALE, WARM] = ["ink", "soft", "line", "paper", "accent", "accent-soft", "warm"].map(colour);
  SHADES = [[0, colour("few")], [0.5, colour("some")], [0.72, colour("many")], [1, colour("most")]];
}

function layout(extra = {}) {
  const axis = { gridcolor: LINE, zeroline: false, linecolor: LINE, tickfont: { color: SOFT }, automargin: true };
  const titled = (given) => given.title ? { ...given, title: { font: { size: 13, color: SOFT }, ...given.title } } : given;
  const { xaxis = {}, yaxis = {}, ...rest } = extra;
  return {
    font: { family: "system-ui, -apple-system, Segoe UI, Roboto, Liberation Sans, Arial, sans-serif", size: 13, color: INK },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 8, r: 12, t: 12, b: 8 },
    hoverlabel: { bgcolor: PAPER, bordercolor: LINE, font: { color: INK } },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", traceorder: "normal" },
    xaxis: { ...axis, ...titled(xaxis) }, yaxis: { ...axis, ...titled(yaxis) }, ...rest,
  };
}

// Slanted labels end below their tick, so the last one is not cut off on a narrow screen.
function slanted(labels) { return labels * 90 > Math.min(innerWidth, 1120) ? -40 : 0; }

function draw(id, traces, extra) {
  Plotly.react(id, traces, layout(extra), { displayModeBar: false, responsive: true });
}

function bars(numbers) { // the two sides of each interval, for error bars
  return {
    type: "data", symmetric: false, color: INK, thickness: 1.2, width: 3,
    array: numbers.value.map((v, i) => v == null ? 0 : numbers.high[i] - v),
    arrayminus: numbers.value.map((v, i) => v == null ? 0 : v - numbers.low[i]),
  };
}

function figure(title, numbers, format = whole, note = "") {
  const exact = numbers.low[0] === numbers.high[0];
  const interval = exact || numbers.low[0] == null ? "" : `${format(numbers.low[0])} to ${format(numbers.high[0])}`;
  const shown = make("b", {}, format(numbers.value[0]));
  return make("div", { class: "figure" }, make("span", {}, title), shown, make("span", { class: "range" }, [interval, note].filter(Boolean).join(" · ")));
}

// ── the whole time ─────────────────────────────────────────────────────────────────────────────────────────────────

function headline() {
  $("title").textContent = data.title;
  const noised = data.presence === "noised" ? `counts of visitors carry noise of scale ${+data.scale.toPrecision(3)}` : "counts of visitors are exact";
  $("lead").textContent = `${data.span} · ${noised} · intervals of ${percent} %`;
  const published = data.windows.filter((w) => !w.suppressed);
  const longest = data.windows[data.chosen];
  const busiest = data.periods.map((i) => data.windows[i]).filter((w) => !w.suppressed)
    .reduce((a, b) => (a && a.visitors.value[0] >= b.visitors.value[0] ? a : b), null);
  const cards = [];
  if (longest && !longest.suppressed) cards.push(figure("visitors, " + longest.label, longest.visitors));
  if (busiest) cards.push(figure("in the busiest period", busiest.visitors, whole, busiest.label));
  const areas = longest && longest.attributes.find((a) => a.ranking);
  if (areas) {
    const [name, , probability] = areas.ranking.places[0];
    cards.push(figure("busiest area", { value: [name], low: [null], high: [null] }, (x) => x, `with probability ${likely(probability)}`));
  }
  cards.push(figure("windows in this report", { value: [published.length], low: [null], high: [null] }, whole,
    published.length < data.windows.length ? `${data.windows.length - published.length} suppressed` : "none suppressed"));
  $("headline").append(...cards);
}

function visitors() {
  const shown = data.periods.map((i) => data.windows[i]);
  const begin = shown.map((w) => w.begin), labels = shown.map((w) => w.label);
  const column = (name) => shown.map((w) => w[name].value[0]);
  const traces = [];
  const hover = "%{customdata}<br>%{y:,.0f} %{fullData.name}<extra></extra>";
  if (shown.some((w) => known(w.new))) {
    traces.push({ type: "bar", name: "returning", x: begin, y: column("returning"), customdata: labels, marker: { color: PALE }, hovertemplate: hover });
    traces.push({ type: "bar", name: "new", x: begin, y: column("new"), customdata: labels, marker: { color: ACCENT }, hovertemplate: hover });
    const rest = shown.map((w) => known(w.new) ? null : w.visitors.value[0]);
    $("visitors-grey").hidden = rest.every((v) => v == null);
    if (!$("visitors-grey").hidden) traces.push({ type: "bar", name: "not split", x: begin, y: rest, customdata: labels, marker: { color: LINE }, hovertemplate: hover });
  } else {
    traces.push({ type: "bar", name: "visitors", x: begin, y: column("visitors"), customdata: labels, marker: { color: ACCENT }, hovertemplate: hover });
  }
  if (data.presence === "noised") {
    const all = { value: column("visitors"), low: shown.map((w) => w.visitors.low[0]), high: shown.map((w) => w.visitors.high[0]) };
    traces.push({ type: "scatter", mode: "markers", name: `${percent} % interval`, x: begin, y: all.value, marker: { size: 1, color: INK }, error_y: bars(all), hoverinfo: "skip" });
  }
  if (shown.some((w) => w.truth != null)) {
    traces.push({ type: "scatter", mode: "markers", name: "truth", x: begin, y: shown.map((w) => w.truth), marker: { symbol: "diamond-open", size: 9, color: WARM, line: { width: 2 } }, hoverinfo: "skip" });
  }
  draw("visitors", traces, { barmode: "stack", bargap: shown.length > 60 ? 0.05 : 0.25, yaxis: { rangemode: "tozero" }, xaxis: { type: "date", ticklabeloverflow: "allow", ...(shown.length <= 31 ? { tickvals: begin, ticktext: labels, tickangle: slanted(shown.length) } : {}) } });
}

function heat(id, x, y, z, text, extra, hover) {
  const known = z.flat().filter((v) => v != null);
  draw(id, [{
    type: "heatmap", x, y, z, text, textfont: { size: 12 }, texttemplate: text ? "%{text}" : "", colorscale: SHADES, zmin: Math.min(0, ...known), zmax: Math.max(1, ...known), xgap: 2, ygap: 2,
    hoverongaps: false, showscale: !text, colorbar: { thickness: 10, outlinewidth: 0, len: 0.9 }, hovertemplate: hover,
  }], extra);
}

function grid(rows, columns) { return Array.from({ length: rows }, () => Array(columns).fill(null)); }

function triangle() {
  const { steps, cells, unit } = data.triangle, size = steps.length;
  $("triangle-section").hidden = size === 0;
  $("unit").textContent = unit;
  const longest = Math.max(0, ...cells.map(([first, last]) => last - first)) + 1;
  const z = grid(longest, size);
  for (const [first, last, value] of cells) z[last - first][first] = value;
  const text = size <= 10 ? z.map((row) => row.map((v) => v == null ? "" : v >= 10000 ? (v / 1000).toFixed(1) + "k" : whole(v))) : undefined;
  heat("triangle", steps, z.map((_, i) => i + 1), z, text,
    { xaxis: { title: { text: `first ${unit.slice(0, -1)}`, standoff: 8 }, type: "category", showgrid: false, tickangle: size > 4 ? -40 : 0, nticks: 14 }, yaxis: { title: { text: `length in ${unit}` }, dtick: Math.max(1, Math.round(longest / 10)), showgrid: false } },
    "from %{x}, %{y} long: %{z:,.0f} visitors<extra></extra>");
}

function calendar() {
  const shown = data.periods.map((i) => data.windows[i]);
  const day = (w) => w.begin.slice(0, 10);
  const byTime = data.periodSeconds % 86400 !== 0;
  const weekday = (w) => (new Date(day(w) + "T00:00:00Z").getUTCDay() + 6) % 7;
  const monday = (w) => new Date(Date.parse(day(w) + "T00:00:00Z") - weekday(w) * 864e5).toISOString().slice(0, 10);
  const names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
  const columns = [...new Set(shown.map(byTime ? day : monday))];
  const rows = byTime ? [...new Set(shown.map((w) => w.begin.slice(11, 16)))].sort() : names;
  const z = grid(rows.length, columns.length);
  for (const w of shown) z[byTime ? rows.indexOf(w.begin.slice(11, 16)) : weekday(w)][columns.indexOf(byTime ? day(w) : monday(w))] = w.visitors.value[0];
  const pretty = columns.map((d) => new Date(d + "T00:00:00Z").toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC", ...(byTime ? { weekday: "short" } : {}) }));
  const text = rows.length <= 12 && columns.length <= 6 ? z.map((row) => row.map((v) => v == null ? "" : whole(v))) : undefined;
  heat("calendar", pretty, rows, z, text,
    { xaxis: { title: { text: byTime ? "" : "week from", standoff: 8 }, type: "category", showgrid: false, tickangle: columns.length > 6 ? -40 : 0 }, yaxis: { autorange: "reversed", type: "category", showgrid: false } },
    "%{x} %{y}: %{z:,.0f} visitors<extra></extra>");
}

function truth() {
  const known = data.periods.flatMap((i) => data.windows[i].attributes.map((a) => [data.windows[i], a])).filter(([, a]) => a.values.truth);
  $("truth-section").hidden = known.length === 0;
  if (!known.length) return;
  const names = [...new Set(known.map(([, a]) => a.name))];
  let top = 1;
  const traces = names.map((name) => {
    const x = [], y = [], text = [], low = [], high = [];
    for (const [w, a] of known) if (a.name === name) a.values.label.forEach((label, i) => {
      x.push(a.values.truth[i]); y.push(a.values.value[i]); text.push(`${label}, ${w.label}`); low.push(a.values.low[i]); high.push(a.values.high[i]);
      top = Math.max(top, a.values.truth[i], a.values.value[i]);
    });
    const error = x.length <= 400 ? { ...bars({ value: y, low, high }), color: "rgba(91,107,121,.28)", width: 0 } : undefined;
    return { type: "scatter", mode: "markers", name, x, y, text, error_y: error, marker: { size: 7, opacity: 0.75 }, hovertemplate: "%{text}<br>truth %{x:,.0f}, estimate %{y:,.0f}<extra></extra>" };
  });
  traces.push({ type: "scatter", mode: "lines", x: [0, top], y: [0, top], line: { color: INK, width: 1, dash: "dot" }, hoverinfo: "skip", showlegend: false });
  draw("truth", traces, { colorway: [ACCENT, WARM, "#6366f1", "#db2777", "#65a30d", "#0284c7", "#8b5cf6", "#a16207"], xaxis: { title: { text: "people, truth" } }, yaxis: { title: { text: "people, estimate" } } });
}

// ── one window ─────────────────────────────────────────────────────────────────────────────────────────────────────

function chooser() {
  const kinds = { cumulative: "Since the beginning", week: "Weeks", day: "Days", hour: "Hours", period: "Periods" };
  for (const [kind, title] of Object.entries(kinds)) {
    const group = make("optgroup", { label: title });
    data.windows.forEach((w, i) => { if (w.kind === kind) group.append(make("option", { value: i }, w.label + (w.suppressed ? " (suppressed)" : ""))); });
    if (group.children.length) $("window").append(group);
  }
  $("window").value = data.chosen;
  $("window").addEventListener("change", (event) => show(Number(event.target.value)));
}

function show(index) {
  const w = data.windows[index];
  $("figures").replaceChildren();
  $("notice").hidden = !w.suppressed && !w.lost;
  $("detail").hidden = Boolean(w.suppressed);
  if (w.suppressed === "minimum") $("notice").textContent = `This window is suppressed: it has fewer than ${data.minimum} visitors.`;
  else if (w.suppressed) $("notice").textContent = "This window is suppressed: its difference to a shorter window would be the number of a few people.";
  else if (w.lost) $("notice").textContent = "Presence records were lost during this window: some visitors may be counted twice.";
  if (w.suppressed) return;
  const cards = [figure("visitors", w.visitors, whole, w.truth == null ? "" : `truth ${whole(w.truth)}`)];
  if (known(w.new)) cards.push(figure("new", w.new, whole, `last report ${data.horizon} or more periods ago, or none`), figure("returning", w.returning));
  if (w.change) cards.push(figure(`against ${w.change.against}`, w.change, signed));
  if (w.baseline) cards.push(figure("against the baseline", w.baseline, signed));
  if (w.shortfall != null) cards.push(figure("late reports", { value: [w.shortfall], low: [null], high: [null] }, whole, "not counted"));
  $("figures").append(...cards);
  $("gaps-section").hidden = !w.gaps.value.some((v) => v > 0);
  if (!$("gaps-section").hidden) {
    draw("gaps", [{ type: "bar", x: w.gaps.label, y: w.gaps.value, marker: { color: ACCENT }, error_y: data.presence === "noised" ? bars(w.gaps) : undefined, hovertemplate: "%{x} periods: %{y:,.0f}<extra></extra>" }],
      { xaxis: { type: "category", title: { text: "periods away" } }, yaxis: { title: { text: "visitors" } } });
  }
  $("attributes").hidden = !w.attributes.length;
  w.attributes.forEach((a, i) => attribute(a, i, w.visitors.value[0]));
}

function attribute(a, place, visitors) {
  const id = `attribute-${place}`;
  if (!$(id)) {
    $("attributes").append(make("section", { id },
      make("h2", {}, a.name.replaceAll("_", " "), make("span", { class: "tag", id: `${id}-tag`, title: "mechanism: how devices add noise" })),
      make("p", { class: "hint", id: `${id}-hint` }), make("div", { id: `${id}-body` })));
  }
  $(`${id}-tag`).textContent = a.mechanism;
  const body = $(`${id}-body`);
  if (a.suppressed || !a.values.label.length) {
    body.replaceChildren();
    $(`${id}-hint`).textContent = a.suppressed ? "Suppressed: too few answers." : "No answers.";
    return;
  }
  $(`${id}-hint`).textContent = `Visitors by ${a.counted}, from ${whole(a.answers)} answers, with intervals of ${percent} %.`
    + (a.values.of > a.values.label.length ? ` The ${whole(a.values.label.length)} most frequent of ${whole(a.values.of)} values are shown.` : "");
  const extras = [a.ranking && ranking(a.ranking), a.dwell && dwell(a.dwell), a.groups.label.length && groups(a.groups)].filter(Boolean);
  const chart = make("div", { class: "chart", id: `${id}-bars`, style: `height:${Math.max(150, 60 + 25 * a.values.label.length)}px` });
  const key = [["bar", "consistent histogram"], ["dot", `unbiased estimate and its ${percent} % interval`]];
  if (a.values.smoothed) key.push(["smoothed", "smoothed with earlier periods"]);
  if (a.values.truth) key.push(["truth", "truth"]);
  const legend = key.map(([sign, meaning]) => make("span", {}, make("i", { class: sign }), meaning));
  const sides = make("div", { class: extras.length || a.flows.length ? "sides" : "" }, make("div", {}, make("p", { class: "key" }, ...legend), chart));
  if (extras.length || a.flows.length) sides.append(make("div", {}, ...extras, ...(a.flows.length ? [make("div", { class: "chart square", id: `${id}-flows` })] : [])));
  body.replaceChildren(sides);
  horizontal(`${id}-bars`, a, visitors);
  if (a.flows.length) flows(`${id}-flows`, a.flows);
}

function horizontal(id, a, visitors) {
  const v = a.values;
  const order = v.label.map((_, i) => i);
  if (a.role === "area" || order.length > 15 && a.role === "plain") order.sort((i, j) => v.value[j] - v.value[i]);
  const pick = (list) => order.map((i) => list[i]);
  const numbers = { value: pick(v.value), low: pick(v.low), high: pick(v.high) }, y = pick(v.label);
  const traces = [
    { type: "bar", orientation: "h", y, x: pick(v.consistent).map((s) => s * visitors), marker: { color: PALE }, hovertemplate: "%{y}: %{x:,.0f}<extra>consistent</extra>" },
    {
      type: "scatter", mode: "markers", y, x: numbers.value, marker: { color: INK, size: 5 }, error_x: bars(numbers),
      customdata: pick(v.share.map((s, i) => [s * 100, v.low[i], v.high[i]])),
      hovertemplate: "%{y}: %{x:,.0f} (%{customdata[1]:,.0f} to %{customdata[2]:,.0f}), %{customdata[0]:.1f} %<extra></extra>",
    },
  ];
  if (v.smoothed) {
    const people = (part) => pick(v.smoothed[part]).map((s) => s * visitors);
    const low = people("low"), high = people("high");
    traces.push({
      type: "scatter", mode: "markers", y, x: people("value"), marker: { symbol: "circle-open", size: 10, color: ACCENT, line: { width: 2 } },
      customdata: low.map((l, i) => [l, high[i]]), hovertemplate: "%{y}: %{x:,.0f} (%{customdata[0]:,.0f} to %{customdata[1]:,.0f})<extra>smoothed</extra>",
    });
  }
  if (v.truth) traces.push({ type: "scatter", mode: "markers", y, x: pick(v.truth), marker: { symbol: "diamond", size: 9, color: WARM }, hovertemplate: "truth %{x:,.0f}<extra></extra>" });
  draw(id, traces, { showlegend: false, bargap: 0.35, yaxis: { type: "category", range: [y.length - 0.5, -0.5], showgrid: false }, xaxis: { title: { text: "people", standoff: 6 }, tickangle: 0, nticks: innerWidth > 520 ? 8 : 4, zeroline: true, zerolinecolor: SOFT } });
}

function table(head, rows) {
  const cell = (tag, content, i) => make(tag, i > 0 ? { class: "number" } : {}, content);
  return make("table", {}, make("thead", {}, make("tr", {}, ...head.map((h, i) => cell("th", h, i)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((c, i) => cell("td", c, i))))));
}

function ranking(r) {
  const meter = (p) => make("span", {}, make("span", { class: "meter" }, make("i", { style: `width:${p * 100}%` })), likely(p));
  return make("div", {}, make("h3", {}, "Busiest areas"),
    table(["area", "people", "probability of this place"], r.places.map(([name, people, p], i) => [`${i + 1}. ${name}`, whole(people), meter(p)])),
    make("p", { class: "hint" }, `Probability that all ${r.places.length} places are right: ${likely(r.probability)}`));
}

function dwell(d) {
  const rows = [];
  if (d.quartiles) ["a quarter stays at most", "half stays at most", "three quarters stay at most"].forEach((name, i) => rows.push([name, d.quartiles[i], d.low[i] === d.high[i] ? d.low[i] : `${d.low[i]} to ${d.high[i]}`]));
  if (d.mean) rows.unshift([`mean ${d.unit}`, d.mean.value.toFixed(2), `${d.mean.low.toFixed(2)} to ${d.mean.high.toFixed(2)}`]);
  return make("div", {}, make("h3", {}, "Dwell time"), table(["", "", "interval"], rows));
}

function groups(g) {
  return make("div", {}, make("h3", {}, "Groups"),
    table(["group", "people", "interval"], g.label.map((name, i) => [name, whole(g.value[i]), `${whole(g.low[i])} to ${whole(g.high[i])}`])));
}

function flows(id, list) {
  const origins = [...new Set(list.map((f) => f[0]))], destinations = [...new Set(list.map((f) => f[1]))];
  const z = grid(origins.length, destinations.length);
  for (const [origin, destination, [value]] of list) z[origins.indexOf(origin)][destinations.indexOf(destination)] = value;
  const text = z.length * destinations.length <= 100 ? z.map((row) => row.map((v) => v == null ? "" : whole(v))) : undefined;
  heat(id, destinations, origins, z, text,
    { xaxis: { title: { text: "to" }, type: "category", showgrid: false }, yaxis: { title: { text: "from" }, type: "category", autorange: "reversed", showgrid: false } },
    "%{y} to %{x}: %{z:,.0f}<extra></extra>");
}

function drawAll() {
  takeColours();
  visitors();
  triangle();
  calendar();
  truth();
  if (data.windows.length) show(Number($("window").value));
}

headline();
chooser();
drawAll();
matchMedia("screen and (prefers-color-scheme: dark)").addEventListener("change", drawAll);
$("fine").textContent = `Survey ${data.survey}, fingerprint ${data.fingerprint}.`;
document.body.dataset.drawn = "yes";
