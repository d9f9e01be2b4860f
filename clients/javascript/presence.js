// What published numbers tell about who reported (docs/device-protocol.md, "Presence").

import { has, isNumber, need, onlyKeys, wholeIn } from "./errors.js";

// What numbers are published of, in the order in which terms name them.
const SERIES = ["period", "day", "week", "month", "year"];
const LISTS = ["numbers", "new", "tables"];
const MOST_ROLLING = 2;
const MOST_DAYS = 366;
const MOST_HIDDEN = 1e9;

const CAPPED =
  "Under memo_cap, what this device answers later may depend on it, too, and is protected by the noise " +
  "of the answers alone.";
const EXACT =
  "Published numbers of visitors are exact. Anyone who knows which devices usually report can see " +
  "how many came and how many stayed away.";

// What terms declare. Versions 1 and 2 promise nothing here that a device could check.
export function presenceOf(declared, version) {
  if (version < 3) return { version };
  const isExact = has(declared, "publish_from");
  need(isExact !== has(declared, "presence_epsilon"), "one of publish_from and presence_epsilon");
  const given = [...LISTS, "rolling"].filter((name) => has(declared, name));
  if (isExact) {
    need(given.length === 0, "lists of what is published need presence_epsilon");
    const publishFrom = wholeIn(declared.publish_from, 0, MOST_HIDDEN, "publish_from");
    return { version, publishFrom };
  }
  const epsilon = declared.presence_epsilon;
  need(isNumber(epsilon) && epsilon > 0, "presence_epsilon");
  for (const name of given) {
    if (name === "rolling") requireWindows(declared.rolling);
    else requireSeries(declared[name], name);
  }
  need(!has(declared, "numbers") || declared.numbers.length > 0, "numbers");
  return { version, epsilon, capped: has(declared, "memo_cap") };
}

function requireSeries(given, name) {
  need(Array.isArray(given), name);
  const inOrder = SERIES.filter((each) => given.includes(each));
  need(given.length === inOrder.length && given.every((each, i) => each === inOrder[i]), name);
}

function requireWindows(given) {
  need(Array.isArray(given) && given.length <= MOST_ROLLING, "rolling");
  for (const window of given) {
    onlyKeys(window, "days every", "rolling");
    wholeIn(window.days, 1, MOST_DAYS, "rolling");
    wholeIn(window.every, 1, MOST_DAYS, "rolling");
  }
}

// For the person whose device it is. `chance`: the largest share of right guesses whether this
// device reported in one period, of somebody who knows everything about all other devices, from all
// that is published. With a `memo_cap`, later answers are not counted.
export function explained(presence) {
  const bound = presence.epsilon === undefined ? 1 : chance(presence.epsilon);
  return { chance: bound, text: words(presence, bound) };
}

function words({ version, epsilon, publishFrom, capped }, bound) {
  if (epsilon !== undefined) {
    const noise =
      "Every published number has noise, which the collector adds. An attacker who knows everything " +
      "about all other devices guesses whether this device reported in one period, and is right in at " +
      `most ${percent(bound)} of cases (random guessing: 50 %). Over several periods this adds up.`;
    return capped ? `${noise} ${CAPPED}` : noise;
  }
  if (publishFrom === undefined)
    return (
      `The terms are of version ${version}: count on no protection of presence. Anyone who knows which ` +
      "devices usually report may see in published numbers how many came and how many stayed away."
    );
  if (publishFrom === 0) return EXACT;
  return `${EXACT} Numbers below ${publishFrom} are hidden because they say little; hiding them protects nobody.`;
}

// How often the right one of two equally likely answers is guessed.
export const chance = (told) => 1 / (1 + Math.exp(-told));

// Rounded up: a bound stays a bound.
const percent = (share) => `${(Math.ceil(1000 * share) / 10).toFixed(1)} %`;
