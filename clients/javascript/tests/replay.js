// Each step of a case of clients/vectors.json, with what a device makes of it; in Node.js and in browsers.

import { internals } from "../device.js";

const DO = { leave: "leave", forget_clock: "forgetClock" };
const bytesOf = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));

// `open` makes a device from its options; `digest` is SHA-256 of bytes.
export async function replayed({ name, limits, terms, steps }, any, open, digest) {
  let [now, key] = [0, null];
  // What a device draws from the system: for a period what the step says, otherwise the hash of what it is for.
  const drawn = (what) => (what.startsWith("period ") ? bytesOf(key) : digest(internals.written([name, what])));
  const device = open({
    limits: limits === "any" ? any : limits,
    now: () => now,
    uptime: () => ["never restarted", now / 1000],
    entropy: drawn,
  });
  const found = [];
  for (const { report, unlisted, explained, refused, ...step } of steps) {
    now = Date.parse(step.now);
    key = step.key;
    try {
      found.push({ ...step, ...(await done(device, terms, step)) });
    } catch (error) {
      if (!error.code) throw error;
      found.push({ ...step, refused: error.code });
    }
  }
  return found;
}

async function done(device, terms, { do: what, survey, pinned, credential, values }) {
  if (what === "join") {
    const bytes = new TextEncoder().encode(terms[survey]);
    const pin = pinned ? (await internals.readTerms(bytes)).pin : undefined;
    await device.join(bytes, { pin, trustFirstUse: true, credential });
  } else if (what === "settle") {
    const { report, unlisted } = await device.settle(survey, values);
    return { report, ...(unlisted.length ? { unlisted } : {}) };
  } else if (what === "explain") {
    const { week, answers, metres, presence, ...explained } = await device.explain();
    return { explained: rounded(explained) };
  } else await device[DO[what]](survey);
  return {};
}

export function rounded(given) {
  if (typeof given === "number") return Number(given.toFixed(9));
  if (typeof given !== "object" || Array.isArray(given)) return given;
  return Object.fromEntries(Object.entries(given).map(([name, each]) => [name, rounded(each)]));
}
