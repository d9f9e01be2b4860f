// Maps: areas shaded by what is known of them in one period, with a slider through time; and flows between areas.

import { isKnown } from "../state/quantities.js";
import { periodsOf, pointAt, windowName } from "../state/series.js";
import { column } from "../state/tables.js";
import { capitalised, label, number, percent, readable, short, signed, whole, windowLabel } from "../state/words.js";
import { choice, draw, make } from "../parts/dom.js";
import { shade, shadesKey } from "../parts/heat.js";
import { sign } from "../parts/frame.js";
import { changesIn } from "./attribute.js";
import { flowEnds, flowRows, flowsView, isClear } from "./roles.js";
import { windowHint, windowOf } from "./windows.js";

const SHOWS = { people: number, share: percent, change: signed };
const ON_MAP = { people: (value) => short(Math.max(0, value)), share: (value) => percent(Math.min(100, Math.max(0, value)), 0), change: (value) => `${value > 0 ? "+" : ""}${whole(value)} %` };
const LARGEST_CHANGE = 50; // per cent, from which on shades no longer grow
const MOST_ARROWS = 60; // more cannot be told apart
const WIDEST = 9;

export function mapView(attribute) {
  const places = new Map(Array.from(attribute.values, (_, place) => [attribute.values.at(place), place]));
  const features = ({ survey }) => survey.about.shapes.features.filter((feature) => places.has(feature.properties.name));
  const rowsOf = (context) => periodsOf(context.survey).filter((row) => row.attributes.get(attribute.name)?.values);
  const chosen = (context) => rowsOf(context).find((row) => String(row.period) === context.view.period) ?? rowsOf(context).at(-1);
  const showOf = (context) => (context.view.map in SHOWS ? context.view.map : "people");
  const name = (context, row) => windowLabel(row.begin, row.end, context.survey.about.period_seconds);
  return {
    see: "map", name: "Map",
    shown: (context) => context.survey.about.shapes?.attribute === attribute.name && rowsOf(context).length > 0,
    hint: (context) => {
      const row = chosen(context), missing = attribute.values.length - new Set(features(context).map((feature) => feature.properties.name)).size;
      const total = isKnown(row.visitors) ? `${whole(row.visitors.value)} ${context.words.many} in total. ` : "";
      return `${name(context, row)}${row.state === "provisional" ? ", so far" : ""}: ${total}Touch an area for its interval of 95 %.${missing ? ` ${missing} of ${attribute.values.length} values have no shape.` : ""}`;
    },
    controls: (context) => {
      const rows = rowsOf(context), at = rows.indexOf(chosen(context)), said = make("output", {}, name(context, rows[at]));
      const move = (event) => {
        const row = rows[Number(event.target.value)];
        said.textContent = name(context, row);
        context.set({ period: String(row.period) });
      };
      const slider = make("input", { type: "range", name: "period", min: 0, max: rows.length - 1, step: 1, value: at, oninput: move });
      const shows = [["people", `numbers of ${context.words.people}`], ["share", "shares in %"], ["change", "change against the baseline"]];
      return [make("label", { class: "choice slider" }, make("span", {}, "Time"), slider, said), choice("map", "Show", shows, showOf(context), (map) => context.set({ map }))];
    },
    key: (context) => (showOf(context) === "change"
      ? [make("span", { class: "steps" }, `−${LARGEST_CHANGE} %`, make("span", { class: "strip" }, ...Array.from({ length: 9 }, (_, at) => make("i", { class: `step turn${at}` }))), `+${LARGEST_CHANGE} %`), sign("none", "suppressed, or nothing to compare with")]
      : shadesKey(largest(context, attribute, showOf(context)), SHOWS[showOf(context)])),
    table: (context) => {
      const show = showOf(context), row = chosen(context), changed = changesIn(context, attribute, row), place = (feature) => places.get(feature.properties.name);
      return {
        name: `${attribute.name} map`,
        columns: [column("value", readable(attribute.name)), column("period", null), column("begin", "from"), column(show, show, SHOWS[show]), column("low", "low", SHOWS[show]), column("high", "high", SHOWS[show])],
        rows: features(context).map((feature) => {
          const point = show === "change" ? changed(place(feature)) : pointAt(row, attribute, place(feature), show);
          return [feature.properties.name, row.period, row.begin, point.value, point.low, point.high];
        }),
      };
    },
    draw: (box, table, context) => {
      const show = showOf(context), most = show === "change" ? LARGEST_CHANGE : largest(context, attribute, show);
      drawMap(box, features(context), table().rows, { classOf: (value) => level(show, value, most), text: SHOWS[show], brief: ON_MAP[show], name: `Map of ${capitalised(attribute.name)}; the table has all numbers` });
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

function drawMap(box, features, rows, { classOf, text, brief, name }) {
  const { svg, said, path, shapes } = outlined(box, features, name);
  shapes.forEach((feature, at) => {
    const [value, , , middle, low, high] = rows[at];
    const tell = `${label(value, 60)}: ${middle == null ? "nothing published" : `${text(middle)} (${text(low)} to ${text(high)})`}`;
    const group = touched(said, tell, `cell ${classOf(middle)}`, draw("path", { d: path(feature) ?? "" }));
    const [[x0, y0], [x1, y1]] = path.bounds(feature), [x, y] = path.centroid(feature), figure = middle == null ? "" : brief(middle);
    const named = x1 - x0 > 7.4 * Math.min(14, [...value].length) + 6 && y1 - y0 > (figure ? 36 : 18);
    if (named) group.append(draw("text", { x, y: figure ? y - 4 : y + 4, "text-anchor": "middle" }, label(value, 14)));
    if (figure && x1 - x0 > 7.4 * figure.length && y1 - y0 > 14) group.append(draw("text", { class: "figures-on-map", x, y: named ? y + 12 : y + 4, "text-anchor": "middle" }, figure));
    svg.append(group);
  });
}

// An empty map in a box. Longitudes are shortened as they are at the middle latitude: areas of a city or a country keep their
// proportions. What a pointer or a finger is on is said below the map.
function outlined(box, features, name) {
  const width = Math.max(240, box.clientWidth), most = Math.min(460, Math.max(260, width * 0.62)), all = { type: "FeatureCollection", features };
  const [[west, south], [east, north]] = d3.geoPath(d3.geoIdentity()).bounds(all), squeeze = Math.cos((((south + north) / 2) * Math.PI) / 180) || 1;
  const height = Math.min(most, 16 + ((width - 16) * (north - south)) / ((east - west) * squeeze || 1));
  const shapes = features.map((feature) => ({ ...feature, geometry: { ...feature.geometry, coordinates: narrowed(feature.geometry.coordinates, squeeze) } }));
  const path = d3.geoPath(d3.geoIdentity().reflectY(true).fitExtent([[8, 8], [width - 8, height - 8]], { type: "FeatureCollection", features: shapes }));
  const svg = draw("svg", { class: "map heat", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name }), said = make("p", { class: "hint said", "aria-hidden": "true" }, "\u00a0");
  box.replaceChildren(svg, said);
  return { svg, said, path, shapes };
}

function touched(said, tell, kind, shape) {
  const show = () => { said.textContent = tell; };
  return draw("g", { class: kind, onpointerenter: show, onclick: show }, shape, draw("title", {}, tell));
}

// Arrows between the middles of areas, as wide as many people went. Only flows that are more than noise have one.
export function flowsMapView(attribute) {
  const ends = new Set(attribute.values.flatMap((value) => flowEnds(value) ?? [])), flows = flowsView(attribute);
  const features = ({ survey: { about: { shapes } } }) => [...(shapes?.features ?? []), ...(shapes?.places ?? [])].filter((feature) => ends.has(feature.properties.name));
  const arrows = (context) => {
    const places = new Set(features(context).map((feature) => feature.properties.name));
    return flowRows(context, attribute).filter((row) => isClear(row) && row[0] !== row[1] && places.has(row[0]) && places.has(row[1])).sort((a, b) => b[2] - a[2]);
  };
  return {
    ...flows, see: "map", name: "Map", key: undefined,
    shown: (context) => flows.shown(context) && features(context).length > 1,
    hint: (context) => windowHint(context, attribute, () => {
      const { length } = arrows(context), most = length > MOST_ARROWS ? `the ${MOST_ARROWS} largest of ${length}` : length || "none";
      return `: flows between areas that are more than noise (${most}), as wide as many ${context.words.people} went. The table has all.`;
    }),
    draw: (box, table, context) => {
      if (!table().rows.length) return box.replaceChildren();
      const { svg, said, path, shapes } = outlined(box, features(context), `Flows of ${context.words.people} on a map, ${windowName(context.survey, windowOf(context))}; the table has all numbers`);
      const middles = new Map(shapes.map((feature) => [feature.properties.name, path.centroid(feature)])), shown = arrows(context).slice(0, MOST_ARROWS);
      for (const feature of shapes) {
        const { name } = feature.properties, [x, y] = path.centroid(feature);
        svg.append(draw("g", { class: "cell none" }, draw("path", { d: path(feature) ?? "" }), draw("title", {}, name), draw("text", { x, y: y - 8, "text-anchor": "middle" }, label(name, 14))));
      }
      const most = shown[0]?.[2];
      for (const [from, to, people, low, high] of shown.reverse()) { // the largest on top
        const tell = `${label(from, 30)} to ${label(to, 30)}: ${number(people)} (${number(low)} to ${number(high)})`;
        svg.append(touched(said, tell, "flow", draw("path", { d: arrow(middles.get(from), middles.get(to), Math.max(1.5, (WIDEST * people) / most)) })));
      }
    },
  };
}

// The outline of a bent arrow, so that the one back is beside it.
function arrow([x0, y0], [x1, y1], width) {
  const length = Math.hypot(x1 - x0, y1 - y0) || 1, [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length], head = Math.min(length / 2, 5 + 1.5 * width);
  const at = (along, across) => `${x0 + along * ux - across * uy} ${y0 + along * uy + across * ux}`;
  const bend = 0.16 * length, neck = length - head;
  return `M${at(0, 0)}Q${at(length / 2, bend + width / 2)} ${at(neck, width / 2)}L${at(neck, width / 2 + head / 3)}L${at(length, 0)}L${at(neck, -width / 2 - head / 3)}L${at(neck, -width / 2)}Q${at(length / 2, bend - width / 2)} ${at(0, 0)}Z`;
}

function narrowed(coordinates, by) {
  return typeof coordinates[0] === "number" ? [coordinates[0] * by, coordinates[1]] : coordinates.map((one) => narrowed(one, by));
}
