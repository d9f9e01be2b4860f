// A device in another language: answers one survey, one report per period, in plain Node.js (20 or later).
//
//   node client.mjs http://gateway:8080 state.json colour=red plan=free
//
// It asks the gateway for the survey's terms, keeps its own state in a file, and posts one JSON report. It implements
// what a client must: direct mechanisms (grr, l-grr) of surveys that ask one attribute per device (one attribute, or
// solution smp). README.md explains every step.

import { randomBytes, randomInt } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";

const [gateway, stateFile, ...answers] = process.argv.slice(2);
if (!answers.length) fail("usage: node client.mjs GATEWAY STATE_FILE ATTRIBUTE=VALUE ...");
const values = Object.fromEntries(answers.map((answer) => answer.split("=", 2)));
const terms = await (await fetch(`${gateway}/terms`)).json();
const state = existsSync(stateFile) ? JSON.parse(readFileSync(stateFile, "utf8")) : {};
if (state.survey && state.survey !== terms.survey) fail(`${stateFile} belongs to survey ${state.survey}`);
// Memos belong to the terms they were drawn under: under others they would mean something else, and cost twice.
if (state.fingerprint && state.fingerprint !== terms.fingerprint) fail(`the terms of ${state.survey} have changed`);

const now = process.env.NOW ? Date.parse(process.env.NOW) : Date.now();
const period = Math.floor((now - Date.parse(terms.start)) / (1000 * terms.period_seconds));
if (period < 0) fail("the survey has not begun");
if (state.delivered !== undefined && period <= state.delivered) done("this period is reported");

// Drawn once, for life: which attribute this device answers.
state.survey ??= terms.survey;
state.fingerprint ??= terms.fingerprint;
state.attribute ??= terms.attributes[randomInt(terms.attributes.length)].name;

// The period's report is written to disk before it is first sent: a second attempt sends the same bytes. New noise in a
// second attempt would reveal more than the survey declares.
if (state.pending?.period !== period) {
  state.pending = { period, report: makeReport() };
  save();
}
const response = await fetch(`${gateway}/reports`, { method: "POST", body: state.pending.report });
if (response.status !== 201) fail(`not delivered (${response.status}); run again: the same report will be sent`);
state.delivered = period;
delete state.pending;
save();
done("reported");

function makeReport() {
  const attribute = terms.attributes.find((each) => each.name === state.attribute);
  const k = attribute.values.length;
  const value = attribute.values.indexOf(values[attribute.name]);
  if (value < 0) fail(`${attribute.name} must be one of ${attribute.values.join(", ")}`);
  // Round 1 is drawn once for each value that the device ever has, and kept: otherwise it could be averaged away.
  state.memos ??= {};
  const memo = attribute.memoised ? (state.memos[value] ??= perturb(value, attribute.first, k)) : perturb(value, attribute.first, k);
  const answer = attribute.second ? perturb(memo, attribute.second, k) : memo;
  // The gap says how many periods ago this device last reported, at most the horizon; the horizon if never.
  const gap = state.delivered === undefined ? terms.horizon : Math.min(terms.horizon, period - state.delivered);
  // Fixed-width hexadecimal: all reports of this shape have the same length.
  return JSON.stringify({
    survey: terms.survey,
    fingerprint: terms.fingerprint,
    period: hex(period, 4),
    token: token(),
    gap: hex(gap, 2),
    answers: { [attribute.name]: littleEndian(answer, attribute.bytes) },
  });
}

// Keep the symbol with probability p, else take one of the others. Integers: compare 64 random bits with p * 2^64.
function perturb(symbol, { p }, k) {
  if (randomBytes(8).readBigUInt64BE() < BigInt(p * 2 ** 64)) return symbol;
  const other = randomInt(k - 1);
  return other < symbol ? other : other + 1;
}

// Not zero, and new in every period: it lets the collector refuse a second report, and links nothing.
function token() {
  const bytes = randomBytes(8);
  return bytes.readBigUInt64BE() ? bytes.toString("hex") : token();
}

function hex(number, bytes) {
  return number.toString(16).padStart(2 * bytes, "0");
}

function littleEndian(number, bytes) {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntLE(number, 0, bytes);
  return buffer.toString("hex");
}

// On disk before anything is sent: a memo that is lost would be drawn again.
function save() {
  const file = openSync(`${stateFile}.new`, "w", 0o600);
  writeSync(file, JSON.stringify(state));
  fsyncSync(file);
  closeSync(file);
  renameSync(`${stateFile}.new`, stateFile);
}

function done(message) {
  console.log(message);
  process.exit(0);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
