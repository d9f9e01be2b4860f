// For the chi-square tests in Python. Reads { terms, values, count, first } and writes what `count` devices answer in
// period 0, a line of JSON each. The secret of a device is the hash of its number.

import { readFileSync } from "node:fs";
import { sha256 } from "@noble/hashes/sha2.js";
import { utf8 } from "../src/bytes.js";
import { Respondent } from "../src/respondent.js";
import { verifyTerms } from "../src/terms.js";

const { terms: text, values, count } = JSON.parse(readFileSync(0, "utf8"));
const terms = verifyTerms(utf8(text));
const lines = [];
for (let device = 0; device < count; device++) {
  const respondent = new Respondent(terms, sha256(utf8(String(device))));
  const answers = respondent.questions(0).map((question) => {
    const place = question.values.indexOf(values[question.name]);
    const cell = terms.longitudinal ? respondent.cell(question, place) : place;
    return [question.name, respondent.answer(question, 0, cell).hex];
  });
  lines.push(JSON.stringify(Object.fromEntries(answers)));
}
console.log(lines.join("\n"));
