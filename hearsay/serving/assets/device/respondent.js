// What one device answers under some terms: a function of its secret, the terms, and what it is asked about.

import { hex } from "./bytes.js";
import { encodingOf } from "./encodings.js";
import { draws } from "./keystream.js";
import { uniform } from "./tables.js";

export class Respondent {
  #terms;
  #secret;

  constructor(terms, secret) {
    this.#terms = terms;
    this.#secret = secret;
  }

  // The questions that this device answers in a period; none if it is not its turn.
  questions(period) {
    const { questions, discloses, oneIn } = this.#terms;
    if (oneIn > 1 && uniform(oneIn).one(this.#draws(0, "place")) !== period % oneIn) return [];
    return discloses ? [questions[this.#sampled]] : questions;
  }

  // What is memoised for a value: the value, its hash or its bucket.
  cell(question, value) {
    return encodingOf(question).cell(value, this.#trait(question));
  }

  // { hex, supports, memo }: the answer of a period, the values that it speaks for, and those that the memo behind it
  // speaks for. Of a survey that memoises, `cell` is the memo's; otherwise it is the value.
  answer(question, period, cell) {
    const encoding = encodingOf(question);
    const { longitudinal, questions, sampling } = this.#terms;
    const [what, tweak] = longitudinal ? ["memo", cell] : ["once", period];
    const own = question.fakes === null || !sampling || questions[this.#sampled] === question;
    const memo = encoding.memoise(cell, own, this.#draws(tweak, what, question.name));
    const drawn = encoding.perturb(memo, this.#draws(period, "report", question.name));
    const trait = this.#trait(question);
    const [supports, remembered] = [drawn, memo].map((symbols) => encoding.supports(symbols, trait));
    return { hex: hex(encoding.finish(drawn, trait)), supports, memo: remembered };
  }

  // 16 digits, not zero: the same for every attempt at one period, and nothing to another period's.
  token(period) {
    const [first, second] = this.#draws(period, "token").longs(2);
    return (first || second | 1n).toString(16).padStart(16, "0");
  }

  get #sampled() {
    return this.#terms.sampled.one(this.#draws(0, "sampled"));
  }

  #trait(question) {
    return encodingOf(question).trait(this.#draws(0, "trait", question.name));
  }

  #draws(tweak, what, ...names) {
    return draws(this.#secret, [what, this.#terms.id, this.#terms.fingerprint, ...names], tweak);
  }
}
