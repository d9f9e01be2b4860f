// A device: one secret, the surveys it answers, what it may reveal, and the report that it is about to send.
//
// The order is always: settle (the report of a period is made and stored), then send. Whatever happens in between, the
// same bytes are sent again, or none.

import { randomBytes } from "@noble/hashes/utils.js";
import { hex, unhex, utf8 } from "./bytes.js";
import { DeviceError, refuse } from "./errors.js";
import { fetchTerms, postReport } from "./gateway.js";
import { nearestInside } from "./areas.js";
import { metres, planeOf, settled } from "./places.js";
import { checkedLimits, requireWithin } from "./limits.js";
import { Respondent } from "./respondent.js";
import { readTerms, textOf, verifyTerms } from "./terms.js";

const ATTEMPTS = 100;

export class Device {
  #storage;
  #limits;
  #pins;
  #now;
  #secret;

  // pins: { survey id: fingerprint }; only these surveys are answered, under these terms.
  // now: milliseconds since 1970, for tests. secret: 32 bytes, for tests; left out, the system draws it.
  constructor(storage, { limits, pins, now = Date.now, secret } = {}) {
    this.#storage = storage;
    this.#limits = checkedLimits(limits);
    this.#pins = pins;
    this.#now = now;
    this.#secret = secret;
  }

  // Verify the terms of a survey and keep them for good. Terms other than the kept ones are refused.
  async join(bytes) {
    const terms = verifyTerms(bytes);
    if (this.#pins && this.#pins[terms.id] !== terms.fingerprint)
      refuse("pin", `survey ${terms.id}: not the terms that this app was made for`);
    return this.#change((state) => {
      const { report, life } = terms.losses;
      if (!Object.hasOwn(state.surveys, terms.id)) {
        const text = textOf(bytes);
        state.surveys[terms.id] = {
          terms: text,
          fingerprint: terms.fingerprint,
          losses: { report, life },
          answers: 0,
          cells: {},
        };
      }
      const pinned = state.surveys[terms.id].fingerprint;
      if (pinned !== terms.fingerprint) refuse("changed", `the terms of survey ${terms.id} have changed`);
      requireWithin(this.#limits, state.surveys, terms.id);
      return { id: terms.id, fingerprint: terms.fingerprint, losses: { report, life } };
    });
  }

  // Join a survey under the terms that a gateway has. Nothing about the person is sent.
  async joinFrom(gateway, id, options = {}) {
    const terms = await fetchTerms(gateway, id, options);
    if (readTerms(terms).id !== id) refuse("terms", "the gateway answered with another survey");
    return this.join(terms);
  }

  // What the next report says: the one that is settled, or the one that these values would make. Nothing is stored or
  // sent.
  async preview(id, values) {
    const { text } = await this.#storage.read();
    const state = this.#parsed(text);
    const survey = this.#survey(state, id);
    this.#forgetLate(survey);
    const settled = survey.owed !== undefined;
    const { period, text: report, says, memos } = survey.owed ?? this.#settle(state, id, values);
    return { period, settled, report, says, memos };
  }

  // Make the report of this period and store it. Settled again, it is the first one, whatever the values.
  async settle(id, values) {
    const { period, text, says } = await this.#change((state) => this.#settle(state, id, values));
    return { period, report: text, says };
  }

  // Record that the settled report of a period has arrived; for apps that send it themselves.
  async confirm(id, period) {
    await this.#change((state) => this.#finish(state, id, period, true));
  }

  // Report this period through a gateway: terms at the first time, an earlier report that is still owed, then this one.
  async send(gateway, id, values, options = {}) {
    const { text } = await this.#storage.read();
    if (!Object.hasOwn(this.#parsed(text).surveys, id)) await this.joinFrom(gateway, id, options);
    const owed = await this.#sendOwed(gateway, id, options);
    if (owed?.now) return { period: owed.period };
    const { period } = await this.settle(id, values);
    if (!(await this.#sendOwed(gateway, id, options)) && (await this.#delivered(id)) !== period)
      refuseLate(id, period); // it is not owed any more, and no other process delivered it
    return { period };
  }

  async #delivered(id) {
    const { text } = await this.#storage.read();
    return this.#survey(this.#parsed(text), id).delivered;
  }

  // Send the report that is settled and not confirmed, if its period still takes it.
  async #sendOwed(gateway, id, options) {
    const owed = await this.#change((state) => {
      const survey = this.#survey(state, id);
      const terms = this.#forgetLate(survey);
      return survey.owed && { ...survey.owed, now: survey.owed.period === this.#period(terms) };
    });
    if (!owed) return undefined;
    const outcome = await postReport(gateway, owed.text, options);
    await this.#change((state) => this.#finish(state, id, owed.period, outcome === "counted"));
    if (outcome === "late") refuseLate(id, owed.period);
    return owed;
  }

  #finish(state, id, period, arrived) {
    const survey = this.#survey(state, id);
    if (survey.owed?.period !== period) return; // another process of this device was faster
    delete survey.owed;
    if (arrived) survey.delivered = period;
  }

  #settle(state, id, values) {
    const survey = this.#survey(state, id);
    const terms = this.#forgetLate(survey);
    const period = this.#period(terms);
    if (period < 0) refuse("early", `survey ${id} has not begun`);
    if (period > terms.calendar.last) refuse("over", `survey ${id} is over`);
    if (survey.owed?.period === period) return survey.owed;
    if (survey.owed) refuse("owed", `survey ${id}: the report of period ${survey.owed.period} is to be sent first`);
    if (survey.settled >= period) refuse("reported", `survey ${id}: period ${period} is reported`);
    const respondent = new Respondent(terms, unhex(state.secret));
    const attributes = terms.questions.filter(({ axes }) => axes === undefined);
    const places = Object.fromEntries(attributes.map((question) => [question.name, placeOf(question, values, survey)]));
    for (const { name, axes } of terms.questions) if (axes) places[name] = pairOf(axes, places, attributes);
    const answers = respondent.questions(period).map((question) => {
      const cell = terms.longitudinal
        ? heldCell(survey, terms, question, respondent.cell(question, places[question.name]))
        : places[question.name];
      return [question, respondent.answer(question, period, cell)];
    });
    if (answers.length > 0) survey.answers += 1;
    requireWithin(this.#limits, state.surveys, id);
    const gap = survey.delivered === undefined ? terms.horizon : Math.min(terms.horizon, period - survey.delivered);
    const text = JSON.stringify({
      survey: id,
      fingerprint: terms.fingerprint,
      period: period.toString(16).padStart(8, "0"),
      token: respondent.token(period),
      gap: gap.toString(16).padStart(4, "0"),
      answers: Object.fromEntries(answers.map(([{ name }, answer]) => [name, answer.hex])),
    });
    const named = (kind) =>
      Object.fromEntries(answers.map(([{ name, values }, answer]) => [name, answer[kind].map((i) => values[i])]));
    const says = named("supports");
    survey.settled = period;
    survey.owed = { period, text, says, memos: terms.longitudinal ? named("memo") : {} };
    return survey.owed;
  }

  // A report that no period takes any more is never sent. Returns the survey's terms.
  #forgetLate(survey) {
    const terms = readTerms(utf8(survey.terms));
    if (survey.owed) {
      const end = terms.calendar.begin(survey.owed.period + 1) + 1000 * terms.grace;
      if (this.#now() >= end) delete survey.owed;
    }
    return terms;
  }

  #period({ calendar }) {
    return calendar.of(this.#now());
  }

  #survey(state, id) {
    if (!Object.hasOwn(state.surveys, id)) refuse("unknown", `this device has not joined survey ${id}`);
    const survey = state.surveys[id];
    if (this.#pins && this.#pins[id] !== survey.fingerprint)
      refuse("pin", `survey ${id}: not the terms that this app was made for`);
    return survey;
  }

  // Change the stored state: all of it or nothing, and again if another process was faster.
  async #change(change) {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const { text, revision } = await this.#storage.read();
      const state = this.#parsed(text);
      const result = change(state);
      const after = JSON.stringify(state);
      if (after === text || (await this.#storage.write(after, revision))) return result;
    }
    return refuse("busy", "other processes of this device do not stop changing its state");
  }

  #parsed(text) {
    if (text === null) {
      this.#secret ??= randomBytes(32);
      return { format: 1, secret: hex(this.#secret), surveys: {} };
    }
    const state = JSON.parse(text);
    if (state.format !== 1) throw new DeviceError("state", "the stored state is of another release of this library");
    return state;
  }
}

function refuseLate(id, period) {
  refuse("late", `period ${period} of survey ${id} is closed; its report was not counted`);
}

function placeOf(question, values, survey) {
  if (question.grid && typeof values[question.name] === "object") return cellOf(question, values[question.name], survey);
  const place = Object.hasOwn(values, question.name) ? question.values.indexOf(String(values[question.name])) : -1;
  if (place < 0) refuse("value", `${question.name} needs one of the survey's values`);
  return place;
}

// The place of a pair: the values of both attributes, of which the first changes last.
function pairOf([first, second], places, attributes) {
  return places[first] * attributes.find(({ name }) => name === second).k + places[second];
}

// The cell of a position, { latitude, longitude } or { x, y } in the grid's metres: the last one, while the device is near
// it. It is kept in the device's state, so that a position that jitters has one memo.
function cellOf({ name, grid, inside }, position, survey) {
  const plane = planeOf(grid);
  const at = "latitude" in position && plane ? metres(plane, position) : position;
  if (!Number.isFinite(at.x) || !Number.isFinite(at.y))
    refuse("value", `${name} needs a cell, a latitude and longitude that its grid knows, or x and y in metres`);
  survey.stays ??= {};
  const last = survey.stays[name];
  const number = settled(grid, at, last === undefined ? undefined : inside[last]);
  survey.stays[name] = nearestInside(number, grid, inside);
  return survey.stays[name];
}

// The cell whose memo is reported. At the cap it is the last one for good, whatever the value.
function heldCell(survey, { memoCap }, { name }, cell) {
  if (memoCap === undefined) return cell;
  if (!Object.hasOwn(survey.cells, name)) survey.cells[name] = [];
  const cells = survey.cells[name];
  if (cells.length < memoCap && !cells.includes(cell)) cells.push(cell);
  else if (cells.length >= memoCap) return cells.at(-1);
  return cell;
}
