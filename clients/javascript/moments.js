// When a settled report may be sent: at a moment of its own, drawn evenly from the time in which
// the collector takes it.
//
// What decides it is the calendar, the clock and a draw. No value does, nor how long it took to
// make the report, nor when another report is sent: whoever sees when reports arrive pairs two of
// one device no better than at random.

// More than settling takes: a report that is sent before would show how long it took.
const SETTLING_SECONDS = 10;
const DAY = 86_400;

// `began`: when settling began. `end`: of its period. `drawn`: from 0 to 1. `spread`: the most
// seconds, or null.
export function firstMoment(began, end, grace, drawn, spread) {
  // The second half of the grace is left for reports whose first attempt fails.
  const seconds = Math.min(end + grace / 2 - began, spread ?? Infinity);
  const head = seconds > SETTLING_SECONDS ? SETTLING_SECONDS : 0;
  return began + head + drawn * (seconds - head);
}

// After an attempt that failed, and of a report whose moment has passed without one.
export function anotherMoment(now, end, grace, drawn, spread) {
  return now + drawn * Math.min(end + grace - now, spread ?? Infinity);
}

// What an app says about sending. To a loopback address all is sent at once: nobody is there to see
// when it arrives.
export function sendingOf({ spread, wait, apart }, loopback, refuse) {
  const isSeconds = (given) => typeof given === "number" && given >= 0 && given <= DAY;
  const hint = "give seconds, at most a day";
  if (spread !== null && !isSeconds(spread)) refuse("settings", "`spread` is no time", hint);
  if (!isSeconds(wait)) refuse("settings", "`wait` is no time", hint);
  return { apart: apart ?? !loopback, spread, wait };
}
