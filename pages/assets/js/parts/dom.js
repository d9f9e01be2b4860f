// Elements. Text becomes text nodes and nothing else, so a name cannot become markup.

const SVG = "http://www.w3.org/2000/svg";

export function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

export function option(value, text, chosen = false) {
  return make("option", { value, selected: chosen }, text);
}

// A labelled choice; `choices` are [value, text].
export function choice(name, text, choices, chosen, changed) {
  const select = make("select", { name, onchange: (event) => changed(event.target.value) }, ...choices.map(([value, title]) => option(value, title, String(value) === String(chosen))));
  return make("label", { class: "choice" }, make("span", {}, text), select);
}

const grown = new WeakMap();

// A choice among many that become more: it is made once for its owner, and gets what is new. `entries` are { group, value,
// text }, in their order; `text` is a function.
export function growingChoice(owner, name, title, entries, chosen, changed) {
  if (!grown.has(owner)) grown.set(owner, new Map());
  const own = grown.get(owner);
  if (!own.has(name)) {
    const select = make("select", { name }), kept = { select, groups: new Map(), known: new Set() };
    select.addEventListener("change", () => kept.changed(select.value));
    kept.label = make("label", { class: "choice" }, make("span", {}, title), select);
    own.set(name, kept);
  }
  const kept = own.get(name);
  kept.changed = changed;
  for (const { group, value, text } of entries) {
    if (kept.known.has(value)) continue;
    kept.known.add(value);
    if (group && !kept.groups.has(group)) {
      kept.groups.set(group, make("optgroup", { label: group }));
      kept.select.append(kept.groups.get(group));
    }
    (group ? kept.groups.get(group) : kept.select).append(option(value, text()));
  }
  if (kept.select.value !== String(chosen)) kept.select.value = String(chosen);
  return kept.label;
}
