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

// A labelled day; `limits` are the first and the last one that can be chosen.
export function dayInput(name, text, value, [min, max], changed) {
  return make("label", { class: "choice" }, make("span", {}, text), make("input", { type: "date", name, value, min, max, onchange: (event) => event.target.value && changed(event.target.value) }));
}

// A number to know first, with what it is above and what belongs to it below.
export function figure(title, value, below = "") {
  return make("div", { class: "figure" }, make("span", {}, title), make("b", {}, value), make("span", { class: "range" }, below));
}
