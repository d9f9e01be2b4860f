// Downloads of a chart: its table as CSV and JSON, its drawing as SVG and PNG. Nothing leaves the page.

import { fileName, toCsv, toJson } from "../state/tables.js";

const DRAWN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "stroke-opacity", "font-size", "font-weight", "font-family", "text-anchor", "color"];

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export function saveTable(survey, chart, table, format) {
  const text = format === "csv" ? toCsv(table) : toJson(table);
  const type = format === "csv" ? "text/csv;charset=utf-8" : "application/json";
  save(new Blob([text], { type }), fileName(survey, chart, format));
}

// A drawing that stands on its own: every style that the page gives it is written into it.
export function standalone(svg) {
  const copy = svg.cloneNode(true);
  const originals = [svg, ...svg.querySelectorAll("*")], copies = [copy, ...copy.querySelectorAll("*")];
  originals.forEach((original, at) => {
    if (original.localName === "style") return;
    const style = getComputedStyle(original);
    for (const name of DRAWN) {
      const value = style.getPropertyValue(name);
      if (value) copies[at].style?.setProperty(name, value);
    }
    for (const { name, value } of [...copies[at].attributes]) if (/^var\(/.test(value)) copies[at].removeAttribute(name);
  });
  const { width, height } = svg.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", Math.ceil(width));
  copy.setAttribute("height", Math.ceil(height));
  copy.style.setProperty("background", getComputedStyle(document.documentElement).getPropertyValue("--paper").trim());
  return new XMLSerializer().serializeToString(copy);
}

// Several drawings of one chart as one, as they stand on the page.
export function together(box) {
  const drawings = [...box.querySelectorAll("svg")].filter((svg) => svg.parentElement.closest("svg") == null);
  if (drawings.length === 1) return standalone(drawings[0]);
  const outer = box.getBoundingClientRect();
  const parts = drawings.map((svg) => {
    const { x, y } = svg.getBoundingClientRect();
    return `<g transform="translate(${Math.round(x - outer.x)},${Math.round(y - outer.y)})">${standalone(svg)}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.ceil(outer.width)}" height="${Math.ceil(outer.height)}">${parts.join("")}</svg>`;
}

export function saveDrawing(survey, chart, box, format) {
  const text = together(box);
  const svg = new Blob([text], { type: "image/svg+xml;charset=utf-8" });
  if (format === "svg") {
    save(svg, fileName(survey, chart, "svg"));
    return;
  }
  const { width, height } = box.getBoundingClientRect();
  const image = new Image(), address = URL.createObjectURL(svg);
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(width * 2);
    canvas.height = Math.ceil(height * 2);
    const context = canvas.getContext("2d");
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--paper").trim();
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.scale(2, 2);
    context.drawImage(image, 0, 0);
    URL.revokeObjectURL(address);
    canvas.toBlob((blob) => save(blob, fileName(survey, chart, "png")));
  };
  image.src = address;
}
