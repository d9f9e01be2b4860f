// What a device keeps: one JSON document. Every change is durable before anything is sent.
//
// It has the keys of questions, from which memos are derived, and the bytes of reports that are
// owed. It has no list of memos, which would be a list of true values, and no key of a period: a
// copy reads nothing that is answered later.

import { refuse } from "./errors.js";

const FORMAT = 4;
const DAY = 86_400;

// The document in a text; null: there is none yet.
export function opened(text, where) {
  if (text === null) return empty();
  const found = parsed(text, where);
  const format = found?.format;
  if (format === FORMAT) return found;
  if (format === 3) return ofFormat3(found);
  if (format === 1)
    refuse("state", `${where} is of release 0.1`, "open it once with release 0.2, which moves it");
  return refuse("state", `${where} is of another release of hearsay`, "use that release");
}

function empty() {
  const lived = livedUntil(0, null);
  return { format: FORMAT, lived, keys: {}, kept: {}, surveys: {}, charges: [] };
}

function parsed(text, where) {
  try {
    return JSON.parse(text);
  } catch {
    return refuse("state", `${where} cannot be used as the state of a device`, "name another one");
  }
}

// Release 0.2 kept the key of each survey's next period. Memos, charges and owed reports stay what
// they are.
function ofFormat3({ keys, kept, surveys, charges, day }) {
  const moved = Object.entries(surveys).map(([id, joined]) => [id, joinedOfFormat3(joined)]);
  const lived = livedUntil(day, day * DAY);
  return { format: FORMAT, lived, keys, kept, surveys: Object.fromEntries(moved), charges };
}

function joinedOfFormat3({ key, key_period, settled, attempted, owed, ...stays }) {
  const known = new Set([...owed.map(({ period }) => period), settled, attempted]);
  known.delete(null);
  const joined = { ...stays, owed: owed.map(owedOfFormat3), dropped: [] };
  Object.assign(joined, { settled: null, runs: [], spent: [] });
  for (const period of [...known].sort((a, b) => a - b)) noteSettled(joined, period);
  // Of earlier periods nothing is known: they are not answered again.
  if (joined.runs.length > 0) joined.runs[0][0] = 0;
  return joined;
}

function owedOfFormat3({ not_before, attempted, refused, ...stays }) {
  return { ...stays, due: not_before, attempts: attempted ? 1 : 0 };
}

// ---- settled periods: a period has one report, ever
//
// `settled` is the last one, and `runs` are all of them: consecutive periods as [first, last].
// `spent` are runs of later ones, which were settled while the clock was ahead, and whose reports
// may have been seen.

const MOST_RUNS = 1000; // a device that reports every other hour makes them in three months: 20 kB

export function noteSettled(joined, period) {
  const { runs, settled } = joined;
  if (settled === period - 1) runs.at(-1)[1] = period;
  else runs.push([period, period]);
  joined.settled = period;
  // Of periods that are long over, it is enough that they are not answered again.
  if (runs.length > MOST_RUNS) runs.splice(0, 2, [runs[0][0], runs[1][1]]);
}

// Whether it is too late to settle a period, or forbidden for good.
export function isAnswered({ settled, spent }, period) {
  const isSpent = spent.some(([first, last]) => first <= period && period <= last);
  return isSpent || (settled !== null && period <= settled);
}

// Go back to the last settled period that has begun; false: there are no later ones.
export function forgetAfter(joined, begun) {
  const { runs, owed, settled } = joined;
  if (settled === null || settled <= begun) return false;
  const unseen = owed.filter(({ attempts }) => attempts === 0).map(({ period }) => period);
  const seen = unseen.reduce(without, partOf(runs, begun + 1, Infinity));
  joined.spent.push(...seen);
  joined.owed = owed.filter(({ period }) => period <= begun);
  joined.runs = partOf(runs, 0, begun);
  joined.settled = joined.runs.at(-1)?.[1] ?? null;
  return true;
}

function partOf(runs, from, to) {
  const inside = runs.filter(([first, last]) => from <= last && first <= to);
  return inside.map(([first, last]) => [Math.max(first, from), Math.min(last, to)]);
}

function without(runs, period) {
  return [...partOf(runs, 0, period - 1), ...partOf(runs, period + 1, Infinity)];
}

// ---- owed reports

export const owedIn = (joined, period) => joined.owed.find((each) => each.period === period);

const MOST_DROPPED = 100; // kept until the next answer to the app names them

// A report was delivered.
export function erase(joined, period) {
  joined.owed = joined.owed.filter((each) => each.period !== period);
}

// A report is of no use any more.
export function drop(joined, period) {
  erase(joined, period);
  joined.dropped = [...joined.dropped, period].slice(-MOST_DROPPED);
}

// An app has seen the bytes, and may send them: they count as sent.
export function handOut(owed) {
  owed.attempts = Math.max(owed.attempts, 1);
  return owed;
}

// ---- lived days: after 365 of them a charge is a year old
//
// They are not the clock's: whoever moves it forward by a year would renew all limits.

const MINUTE = 60;
const livedUntil = (day, clock) => ({ seconds: day * DAY, clock, start: null, ran: 0 });

export const today = ({ lived }) => Math.floor(lived.seconds / DAY);

// `ran`: for how many seconds the machine has run since its last `start`; of a page, since it was
// loaded.
export function live({ lived }, clock, [start, ran]) {
  const sameStart = lived.start === start && lived.ran <= ran;
  if (sameStart && ran - lived.ran < MINUTE) return; // or each call would write
  // Between two starts the machine was off, nobody knows for how long: a day is what an honest one
  // may always count.
  const most = sameStart ? ran - lived.ran : ran + DAY;
  if (lived.clock === null) lived.seconds = clock; // the first call: days are numbered as those of UTC
  else lived.seconds += Math.min(most, Math.max(0, clock - lived.clock));
  Object.assign(lived, { clock, start, ran });
}

// ---- in a browser: one record, locked between all pages and workers of an origin

export function database(name) {
  const failed = (error) =>
    refuse("state", `the browser's database fails: ${error?.name}`, "is storage allowed here?");
  const event = (request, what) =>
    new Promise((resolve, reject) => {
      request[`on${what}`] = () => resolve(request.result);
      request.onerror = request.onabort = () => reject(request.error);
    }).catch(failed);
  async function transaction(mode, ask) {
    const opening = indexedDB.open(name, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("state");
    const base = await event(opening, "success");
    try {
      const running = base.transaction("state", mode, { durability: "strict" });
      const request = ask(running.objectStore("state"));
      await event(running, "complete");
      return request.result;
    } finally {
      base.close();
    }
  }
  return {
    locked: (run) => navigator.locks.request(`hearsay-device ${name}`, run),
    read: async () => (await transaction("readonly", (store) => store.get("state")))?.text ?? null,
    write: (text) => transaction("readwrite", (store) => store.put({ text }, "state")),
  };
}
