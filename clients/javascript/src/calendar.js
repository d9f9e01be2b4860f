// When periods begin (docs/device-protocol.md, "Reporting"). Instants are milliseconds since 1970.

const DAY = 86_400_000;
const LAST = 2 ** 32 - 2;

// Periods of so many seconds from the start on. With the changes of a time zone, periods of whole days begin with a
// local day: at its first existing instant.
export function calendarOf(start, seconds, changes, until) {
  const length = 1000 * seconds;
  if (changes === undefined) return { ...even(start, length), last: LAST };
  const calendar = length % DAY === 0 ? localDays(start, length, changes) : even(start, length);
  return { ...calendar, last: Math.min(LAST, calendar.of(1000 * until) - 1) };
}

const even = (start, length) => ({
  begin: (period) => start + period * length,
  of: (instant) => Math.floor((instant - start) / length),
});

function localDays(start, length, changes) {
  const stretches = changes.map(({ since, offset }, i) => ({
    since: i === 0 ? -Infinity : 1000 * since,
    until: i + 1 < changes.length ? 1000 * changes[i + 1].since : Infinity,
    offset: 1000 * offset,
  }));
  const local = (instant) => instant + stretches.find(({ until }) => instant < until).offset;
  // When clocks first show a local time, or a later one.
  const firstInstant = (time) => {
    const { since, offset } = stretches.find((stretch) => stretch.until + stretch.offset > time);
    return Math.max(since, time - offset);
  };
  const firstDay = Math.floor(local(start) / DAY) * DAY;
  const begin = (period) => firstInstant(firstDay + period * length);
  const of = (instant) => {
    let period = Math.floor((local(instant) - firstDay) / length);
    while (begin(period + 1) <= instant) period += 1; // clocks went back to the day before
    return period;
  };
  return { begin, of };
}
