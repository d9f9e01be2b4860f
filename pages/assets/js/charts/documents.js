// Pages of single documents: which of them there is, and its sections.

import { make } from "../parts/dom.js";
import { auditSections } from "./audit.js";
import { evaluationSections } from "./evaluation.js";
import { learningSections } from "./learning.js";
import { outlookSections } from "./outlook.js";

const DOCUMENTS = {
  audit: { kicker: "Audit", sections: auditSections },
  evaluation: { kicker: "Evaluation", sections: evaluationSections },
  learning: { kicker: "Evaluation", sections: learningSections },
  outlook: { kicker: "Forecasts", sections: outlookSections },
};
const keptDocuments = new Map();

export function documentSections(context) {
  const { document: shown } = context;
  if (!keptDocuments.has(shown.key)) keptDocuments.set(shown.key, DOCUMENTS[shown.kind].sections(context));
  return keptDocuments.get(shown.key);
}

export function showDocumentHeader(header, { document: shown }) {
  header.replaceChildren(
    make("p", { class: "kicker" }, DOCUMENTS[shown.kind].kicker),
    make("h1", {}, shown.record.title),
    ...shown.record.lead.map((text) => make("p", { class: "lead" }, text)));
}
