// The page: takes events, shows one survey (or a document), and keeps what is shown in the address.

import { apply, emptyState } from "./state/reducer.js";
import { readView, writeView } from "./state/permalink.js";
import { make } from "./parts/dom.js";
import { drawAll, forget } from "./parts/visible.js";
import { documentSections, showDocumentHeader } from "./charts/documents.js";
import { surveySections } from "./charts/sections.js";
import { showHeader } from "./charts/header.js";

const state = emptyState();
const shown = { survey: null, outline: "", frames: [] };
let view = readView(location.hash);
let due = false;

function element(id) {
  return document.getElementById(id);
}

function contextOf(survey, shownDocument) {
  const linkTo = (patch) => writeView({ ...view, survey: survey?.id, ...patch });
  return { state, survey, document: shownDocument, view, words: survey?.about.words, set, linkTo };
}

function set(patch) {
  view = { ...view, ...patch };
  history.replaceState(null, "", writeView(view));
  later();
}

function later() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    show();
  });
}

// The survey that the address names, or the first one that is known.
function chosen() {
  const known = [...state.surveys.values()].filter((survey) => survey.about);
  return known.find((survey) => survey.id === view.survey) ?? known[0] ?? null;
}

function show() {
  const survey = chosen(), [shownDocument] = state.documents.values();
  if (!survey && !shownDocument) return;
  const context = contextOf(survey, shownDocument), sections = survey ? surveySections(context) : documentSections(context);
  const outline = [survey?.id, survey?.about.fingerprint, ...sections.map((section) => section.id)].join(" ");
  (survey ? showHeader : showDocumentHeader)(element("header"), context);
  if (outline !== shown.outline) build(sections, outline);
  for (const part of shown.frames) part.update(context);
  for (const section of sections) {
    const empty = section.parts.every((part) => part.element.hidden);
    element(section.id).hidden = empty;
    element(`to-${section.id}`).hidden = empty;
  }
  document.title = survey ? survey.about.title : shownDocument.record.title;
  document.body.dataset.drawn = "yes";
}

function build(sections, outline) {
  const main = element("main");
  forget(main);
  shown.outline = outline;
  shown.frames = sections.flatMap((section) => section.parts);
  main.replaceChildren(...sections.map((section) => make("section", { class: section.half ? "group half" : "group", id: section.id, "aria-labelledby": `${section.id}-title` },
    make("h2", { id: `${section.id}-title`, class: section.parts.length === 1 ? "unseen" : null }, section.title), ...section.parts.map((part) => part.element))));
  const nav = element("nav");
  nav.hidden = sections.length < 2;
  nav.replaceChildren(...sections.map((section) => make("a", { id: `to-${section.id}`, href: writeView({ ...view, at: section.id }), onclick: (event) => jump(event, section.id) }, section.title)));
}

function jump(event, id) {
  event.preventDefault();
  set({ at: id });
  goTo(id);
}

function goTo(id) {
  const target = id && element(id);
  if (!target) return;
  target.scrollIntoView();
  target.setAttribute("tabindex", "-1");
  target.focus({ preventScroll: true });
}

// Takes events from a feed: all of a static page, or those that a live page is sent.
function receive(events) {
  for (const event of events) apply(state, event);
  later();
}

addEventListener("hashchange", () => {
  view = readView(location.hash);
  show();
  goTo(view.at);
});
// On paper everything is open, and drawn as wide as a sheet is; documents have their tables, too.
const unfolded = [];
addEventListener("beforeprint", () => {
  document.documentElement.classList.add("paper");
  for (const folded of document.querySelectorAll("main details:not([open])")) {
    folded.open = true;
    unfolded.push(() => { folded.open = false; });
  }
  show();
  drawAll(document);
  if (state.documents.size) {
    for (const button of document.querySelectorAll("[data-see=table][aria-pressed=false]")) {
      button.click();
      unfolded.push(() => button.click());
    }
  }
});
addEventListener("afterprint", () => {
  document.documentElement.classList.remove("paper");
  for (const fold of unfolded.splice(0)) fold();
  later();
});
addEventListener("resize", later);
globalThis.hearsayPage = { receive, state };
const events = element("events")?.textContent.trim();
if (events) {
  receive(JSON.parse(events));
  show();
  goTo(view.at);
}
