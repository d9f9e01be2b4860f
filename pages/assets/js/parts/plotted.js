// A chart that Observable Plot draws: one picture with one name, for those who see it and for those who hear it.

export function plotted(box, options) {
  const made = Plot.plot({ className: "plot", width: Math.max(240, box.clientWidth), ...options });
  for (const part of made.querySelectorAll("[aria-label], [aria-description]")) {
    part.removeAttribute("aria-label");
    part.removeAttribute("aria-description");
  }
  made.setAttribute("role", "img");
  box.replaceChildren(made);
}
