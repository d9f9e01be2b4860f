// Which cards a survey has, and in which order: one for each question, and below them, folded, how it was asked.

import { capitalised } from "../state/words.js";
import { framed } from "../parts/frame.js";
import { baselineView, everybodyView, overTimeView } from "./attribute.js";
import { calendarView, triangleView } from "./calendars.js";
import { cautionsChart, guaranteesChart, notesPart, precisionChart, suppressedChart } from "./costs.js";
import { pairsView } from "./crosses.js";
import { devicesView } from "./devices.js";
import { forecastChart } from "./forecasts.js";
import { integrityCard } from "./integrity.js";
import { flowsMapView, mapView } from "./map.js";
import { amountView, dwellView, flowsView, tripsView } from "./roles.js";
import { truthChart } from "./truth.js";
import { busiestView, gapsView, nowView } from "./windows.js";

const FEW_VALUES = 14; // of cards that may stand side by side
const kept = new Map();

function attributeCard(attribute) {
  const now = { cross: pairsView, transition: flowsView }[attribute.role] ?? nowView;
  const own = { area: [mapView, now, overTimeView, baselineView, busiestView], dwell: [now, dwellView, overTimeView, baselineView], amount: [now, amountView, overTimeView, baselineView], transition: [now, flowsMapView, tripsView, overTimeView, baselineView] }[attribute.role] ?? [now, overTimeView, baselineView];
  return { id: `of-${attribute.name.replaceAll("*", "-by-")}`, title: () => capitalised(attribute.name), views: own.map((view) => view(attribute)) };
}

// The attributes whose cards stand side by side: small ones that follow one another, in pairs.
function besideAnother({ attributes, shapes }) {
  const found = new Set(), small = (attribute) => attribute?.values.length <= FEW_VALUES && shapes?.attribute !== attribute.name;
  attributes.forEach((attribute, at) => {
    if (found.has(attribute) || !small(attribute) || !small(attributes[at + 1])) return;
    found.add(attribute).add(attributes[at + 1]);
  });
  return found;
}

// The sections of a survey, made once: what changes inside them is drawn again, not built again.
export function surveySections(context) {
  const { survey, words } = context, outline = `${survey.id} ${survey.about.fingerprint} ${survey.about.shapes?.attribute ?? ""}`;
  if (!kept.has(outline)) {
    const parts = (...specs) => specs.map((spec) => framed(spec, context)), half = besideAnother(survey.about);
    const devices = { id: "over-time", title: () => capitalised(words.many), views: [devicesView(), everybodyView(), calendarView(), triangleView(), gapsView()] };
    kept.set(outline, [
      { id: "devices", title: capitalised(words.many), parts: parts(devices) },
      ...survey.about.attributes.map((attribute) => ({ id: `answers-${attribute.name}`, title: capitalised(attribute.name), half: half.has(attribute), parts: parts(attributeCard(attribute)) })),
      { id: "outlook", title: "Forecast", parts: parts(forecastChart()) },
      { id: "trust", title: "How it was asked", parts: [...parts(integrityCard(), truthChart(), guaranteesChart(), precisionChart(), cautionsChart(), suppressedChart()), notesPart()] },
    ]);
  }
  return kept.get(outline);
}
