// The map: areas shaded by what is known of them in one period, with a slider through time.

import { isKnown } from "../state/quantities.js";
import { periodsOf, pointAt } from "../state/series.js";
import { column } from "../state/tables.js";
import { label, number, percent, readable, signed, windowLabel } from "../state/words.js";
import { choice, draw, make } from "../parts/dom.js";
import { shade, shadesKey } from "../parts/heat.js";
import { sign } from "../parts/frame.js";
import { capitalised, changesIn } from "./attribute.js";

const SHOWS = { people: number, share: percent, change: signed };
const LARGEST_CHANGE = 50; // per cent, from which on shades no longer grow

export function mapChart(attribute) {
  const id = `${attribute.name}-map`, places = new Map(Array.from(attribute.values, (_, place) => [attribute.values.at(place), place]));
  const features = ({ survey }) => survey.about.shapes.features.filter((feature) => places.has(feature.properties.name));
  const rowsOf = (context) => periodsOf(context.survey).filter((row) => row.attributes.get(attribute.name)?.values);
  const chosen = (context) => rowsOf(context).find((row) => String(row.period) === context.view.period) ?? rowsOf(context).at(-1);
  const showOf = (context) => (context.view.map in SHOWS ? context.view.map : "people");
  const name = (context, row) => windowLabel(row.begin, row.end, context.survey.about.period_seconds);
  return {
    id, wide: true,
    shown: (context) => context.survey.about.shapes?.attribute === attribute.name && rowsOf(context).length > 0,
    title: () => `Map of ${readable(attribute.name)}`,
    hint: (context) => {
      const missing = attribute.values.length - new Set(features(context).map((feature) => feature.properties.name)).size;
      return `One period at a time; point at an area for its interval of 95 %.${missing ? ` ${missing} of ${attribute.values.length} values have no shape.` : ""}`;
    },
    controls: (context) => {
      const rows = rowsOf(context), at = rows.indexOf(chosen(context));
      const said = make("output", {}, name(context, rows[at]));
      const move = (event) => context.set({ period: String(rows[Number(event.target.value)].period) });
      const shown = (event) => { said.textContent = name(context, rows[Number(event.target.value)]); move(event); };
      const slider = make("input", { type: "range", name: "period", min: 0, max: rows.length - 1, step: 1, value: at, oninput: shown });
      const shows = [["people", `numbers of ${context.words.people}`], ["share", "shares in %"], ["change", "change against the baseline"]];
      return [make("label", { class: "choice slider" }, make("span", {}, "Period"), slider, said), choice("map", "Show", shows, showOf(context), (map) => context.set({ map }))];
    },
    key: (context) => (showOf(context) === "change"
      ? [make("span", { class: "steps" }, `−${LARGEST_CHANGE} %`, make("span", { class: "strip" }, ...Array.from({ length: 9 }, (_, at) => make("i", { class: `step turn${at}` }))), `+${LARGEST_CHANGE} %`), sign("none", "suppressed, or nothing to compare with")]
      : shadesKey(largest(context, attribute, showOf(context)), SHOWS[showOf(context)])),
    table: (context) => ({
      name: `${attribute.name} map`,
      columns: [column("value", readable(attribute.name)), column("period", "period"), column("begin", "from"), column(showOf(context), showOf(context), SHOWS[showOf(context)]), column("low", "low", SHOWS[showOf(context)]), column("high", "high", SHOWS[showOf(context)])],
      rows: features(context).map((feature) => {
        const row = chosen(context), place = places.get(feature.properties.name);
        const point = showOf(context) === "change" ? changesIn(context, attribute, row)(place) : pointAt(row, attribute, place, showOf(context));
        return [feature.properties.name, row.period, row.begin, point.value, point.low, point.high];
      }),
    }),
    draw: (box, table, context) => {
      const show = showOf(context), most = show === "change" ? LARGEST_CHANGE : largest(context, attribute, show);
      drawMap(box, features(context), table().rows, (value) => level(show, value, most), SHOWS[show], `Map of ${capitalised(attribute.name)}; the table below has all numbers`);
    },
  };
}

// The largest value of all periods, so that shades mean the same through time.
function largest(context, attribute, show) {
  let most = 0;
  for (const row of periodsOf(context.survey)) {
    const part = row.attributes.get(attribute.name);
    if (!part?.values || !isKnown(row.visitors)) continue;
    const scale = show === "share" ? 100 : row.visitors.value;
    for (const share of part.values.share.value) most = Math.max(most, (share ?? 0) * scale);
  }
  return most;
}

function level(show, value, most) {
  if (value == null) return "none";
  if (show !== "change") return `level${shade(value, most)}`;
  return `turn${Math.max(0, Math.min(8, Math.round(4 + (4 * value) / most)))}`;
}

// Longitudes are shortened as they are at the middle latitude: areas of a city or a country keep their proportions.
function drawMap(box, features, rows, classOf, show, name) {
  const width = Math.max(240, box.clientWidth), height = Math.min(520, Math.max(260, width * 0.62));
  const all = { type: "FeatureCollection", features };
  const flat = d3.geoIdentity().reflectY(true), [[, south], [, north]] = d3.geoPath(d3.geoIdentity()).bounds(all);
  const squeeze = Math.cos((((south + north) / 2) * Math.PI) / 180) || 1;
  const squeezed = features.map((feature) => ({ ...feature, geometry: { ...feature.geometry, coordinates: narrowed(feature.geometry.coordinates, squeeze) } }));
  flat.fitExtent([[8, 8], [width - 8, height - 8]], { type: "FeatureCollection", features: squeezed });
  const path = d3.geoPath(flat), svg = draw("svg", { class: "map heat", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name });
  squeezed.forEach((feature, at) => {
    const [value, , , middle, low, high] = rows[at];
    const said = middle == null ? "nothing published" : `${show(middle)} (${show(low)} to ${show(high)})`;
    const group = draw("g", { class: `cell ${classOf(middle)}` }, draw("path", { d: path(feature) ?? "" }), draw("title", {}, `${label(value, 60)}\n${said}`));
    const [[x0, y0], [x1, y1]] = path.bounds(feature), [x, y] = path.centroid(feature), text = label(value, 14);
    if (x1 - x0 > 7.4 * Math.min(14, [...value].length) + 6 && y1 - y0 > 18) group.append(draw("text", { x, y: y + 4, "text-anchor": "middle" }, text));
    svg.append(group);
  });
  box.replaceChildren(svg);
}

function narrowed(coordinates, by) {
  return typeof coordinates[0] === "number" ? [coordinates[0] * by, coordinates[1]] : coordinates.map((one) => narrowed(one, by));
}
