// Which charts a survey has, and in which order.

import { readable } from "../state/words.js";
import { framed } from "../parts/frame.js";
import { changeNowChart, compareChart, rankingChart } from "./areas.js";
import { capitalised, changeChart, overTimeChart } from "./attribute.js";
import { calendarChart, triangleChart } from "./calendars.js";
import { cautionsChart, guaranteesChart, notesPart, precisionChart, suppressedChart } from "./costs.js";
import { pairsChart } from "./crosses.js";
import { devicesChart } from "./devices.js";
import { forecastChart } from "./forecasts.js";
import { integrityChart } from "./integrity.js";
import { mapChart } from "./map.js";
import { dwellCharts, flowsChart, groupsChart } from "./roles.js";
import { truthChart } from "./truth.js";
import { gapsChart, windowChart } from "./windows.js";

const kept = new Map();

function attributeCharts(attribute) {
  if (attribute.role === "cross") return [pairsChart(attribute), windowChart(attribute), overTimeChart(attribute), changeChart(attribute)];
  const areas = attribute.role === "area" ? [mapChart(attribute), rankingChart(attribute), changeNowChart(attribute)] : [];
  const dwell = attribute.role === "dwell" ? dwellCharts(attribute) : [], flows = attribute.role === "transition" ? [flowsChart(attribute)] : [];
  return [...areas, ...flows, ...dwell, windowChart(attribute), groupsChart(attribute), compareChart(attribute), overTimeChart(attribute), changeChart(attribute)];
}

// The sections of a survey, made once: what changes inside them is drawn again, not built again.
export function surveySections(context) {
  const { survey, words } = context, outline = `${survey.id} ${survey.about.fingerprint} ${survey.about.shapes?.attribute ?? ""}`;
  if (!kept.has(outline)) {
    const parts = (specs) => specs.map((spec) => framed(spec, context));
    kept.set(outline, [
      { id: "devices", title: capitalised(words.many), parts: parts([devicesChart(), triangleChart(), calendarChart(), gapsChart()]) },
      ...survey.about.attributes.map((attribute) => ({ id: `answers-${attribute.name}`, title: capitalised(readable(attribute.name)), parts: parts(attributeCharts(attribute)) })),
      { id: "outlook", title: "Forecast", parts: parts([forecastChart()]) },
      { id: "accuracy", title: "Accuracy", parts: parts([truthChart()]) },
      { id: "trust", title: "Integrity", parts: parts([integrityChart()]) },
      { id: "cost", title: "What it cost", parts: [...parts([guaranteesChart(), precisionChart(), cautionsChart(), suppressedChart()]), notesPart()] },
    ]);
  }
  return kept.get(outline);
}
