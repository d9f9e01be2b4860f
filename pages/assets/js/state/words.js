// Numbers, names and times as people read them.

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
export const DAY = 86400000;
const LONGEST_LABEL = 28;

export const NOTHING = "–";

const WHOLE = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const THREE_DIGITS = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 3 });

export function whole(value) {
  return value == null ? NOTHING : WHOLE.format(Math.round(value) + 0); // -0 + 0 is 0
}

// A number with as many digits as its size needs.
export function number(value) {
  if (value == null) return NOTHING;
  const size = Math.abs(value);
  if (size >= 100 || value === 0) return whole(value);
  return THREE_DIGITS.format(value);
}

// With so many digits; what is rounded to zero has no sign.
export function fixed(value, digits) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text;
}

export function percent(value, digits = 1) {
  return value == null ? NOTHING : `${fixed(value, digits)} %`;
}

export function percentShare(value) {
  return percent(value * 100, 2);
}

export function signed(value) {
  return value == null ? NOTHING : `${value > 0 ? "+" : ""}${fixed(value, 1)} %`;
}

export function short(value) {
  if (value == null) return NOTHING;
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
  return size >= 1e4 ? `${(value / 1e3).toFixed(1)}k` : whole(value);
}

// A name on a chart: cut where it is long, and isolated so that its direction of writing does not reach the text around it.
export function label(name, longest = LONGEST_LABEL) {
  const characters = [...String(name)];
  const shown = characters.length > longest ? `${characters.slice(0, longest - 1).join("")}…` : String(name);
  return `\u2068${shown}\u2069`;
}

export function readable(name) {
  return String(name).replaceAll("_", " ").replaceAll("*", " by ");
}

const LENGTHS = [["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

// The length of some periods of a survey, in the unit of one of them: 1 day, 24 hours, 45 minutes.
export function lengthName(about, periods = 1) {
  const [unit, size] = LENGTHS.find(([, seconds]) => about.period_seconds % seconds === 0), count = (periods * about.period_seconds) / size;
  return `${whole(count)} ${unit}${count === 1 ? "" : "s"}`;
}

// One period of a survey, as in "each day": day, hour, 15 minutes.
export function periodName(about) {
  return lengthName(about).replace(/^1 /, "");
}

// Several of them, with their number: 7 days, 3 periods of 15 minutes.
export function periodsName(about, count) {
  const name = periodName(about);
  return /^\d/.test(name) ? `${whole(count)} ${count === 1 ? "period" : "periods"} of ${name}` : lengthName(about, count);
}

export function capitalised(name) {
  const text = readable(name);
  return text[0].toUpperCase() + text.slice(1);
}

// Times are shown as the clock on the wall had them where the survey is: their zone is left out, and never converted.
export function wall(text) {
  let time = walls.get(text);
  if (time == null) walls.set(text, (time = Date.parse(`${text.slice(0, 19)}Z`)));
  return time;
}

const walls = new Map(); // reading a time is slow, and all charts have the same ones

export function dayOf(text) {
  return text.slice(0, 10);
}

export function timeOf(text) {
  return text.slice(11, 16);
}

// Local times that the clock has shown twice, and which of them are the second ones: only their offsets tell them apart.
const twice = new Map();

// Notice what the clock shows twice among the beginnings of periods, in their order.
export function noticeTimes(texts) {
  const shown = new Map();
  for (const text of texts) {
    const wallTime = text.slice(0, 19), before = shown.get(wallTime);
    if (before && before !== text) twice.set(before, false).set(text, true);
    else shown.set(wallTime, text);
  }
}

// The offset of a time that the clock shows twice, with a space before it; nothing of all others.
export function offsetOf(text) {
  return twice.has(text) ? ` ${text.slice(19)}` : "";
}

// The time of the day, for calendars: of those that the clock shows twice, the second one has its offset.
export function clockOf(text) {
  return timeOf(text) + (twice.get(text) ? offsetOf(text) : "");
}

export function weekday(text) {
  return (new Date(wall(text)).getUTCDay() + 6) % 7;
}

export function dayLabel(time) {
  const at = new Date(time);
  return `${DAYS[at.getUTCDay()]} ${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
}

// A window by its days, and its hours where it is not made of whole days. `begin` and `end` are as published.
export function windowLabel(begin, end, periodSeconds) {
  const from = wall(begin), to = wall(end);
  const wholeDays = from % DAY === 0 && to % DAY === 0;
  const last = wholeDays ? to - DAY : to - periodSeconds * 1000;
  const name = (time) => dayLabel(time) + (wholeDays ? "" : ` ${new Date(time).toISOString().slice(11, 16)}`);
  const first = name(from) + (wholeDays ? "" : offsetOf(begin));
  return from >= last ? first : `${first} – ${name(last)}`;
}
