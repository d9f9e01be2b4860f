// Which charts a survey has, and in which order.

import { frame } from "../parts/frame.js";
import { devicesChart } from "./devices.js";

const kept = new Map();

// A frame that reads the newest context whenever it is updated.
function framed(spec, context) {
  const live = { ...context }, made = frame(spec, live);
  return { element: made.element, update: (now) => { Object.assign(live, now); made.update(); } };
}

// The sections of a survey, made once: what changes inside them is drawn again, not built again.
export function surveySections(context) {
  const { survey, words } = context, outline = `${survey.id} ${survey.about.fingerprint}`;
  if (!kept.has(outline)) {
    kept.set(outline, [
      { id: "devices", title: words.many[0].toUpperCase() + words.many.slice(1), parts: [devicesChart()].map((spec) => framed(spec, context)) },
    ]);
  }
  return kept.get(outline);
}
