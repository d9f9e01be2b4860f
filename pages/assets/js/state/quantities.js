// Numbers with standard errors and intervals: { value, error, low, high }, all null where nothing is known.

export const UNKNOWN = Object.freeze({ value: null, error: null, low: null, high: null });

export function exactly(value) {
  return { value, error: 0, low: value, high: value };
}

export function isKnown(quantity) {
  return quantity != null && quantity.value != null;
}

// One entry of columns of numbers.
export function entry(columns, place) {
  if (columns == null) return UNKNOWN;
  const at = (column) => (column == null ? null : column[place] ?? null);
  return { value: at(columns.value), error: at(columns.error), low: at(columns.low), high: at(columns.high) };
}

// Left times right, estimated independently: as analytics/estimation/estimates.py has it.
export function product(left, right) {
  if (!isKnown(left) || !isKnown(right)) return UNKNOWN;
  const value = left.value * right.value;
  const error = left.error == null || right.error == null ? null
    : Math.sqrt((left.error * right.value) ** 2 + (left.value * right.error) ** 2 + (left.error * right.error) ** 2);
  const down = left.low == null || right.low == null ? null
    : value - Math.hypot((left.value - left.low) * right.value, left.value * (right.value - right.low));
  const up = left.high == null || right.high == null ? null
    : value + Math.hypot((left.high - left.value) * right.value, left.value * (right.high - right.value));
  return { value, error, low: down, high: up };
}

// Now divided by then, with the interval that recovers the variances of both ends (MOVER); nothing where `then` may be 0.
export function ratio(now, then) {
  if (![now, then].every((q) => isKnown(q) && q.low != null && q.high != null)) return UNKNOWN;
  const { value: a, low: la, high: ua } = now, { value: b, low: lb, high: ub } = then;
  if (!(lb > 0) || !(2 * b > ub)) return UNKNOWN;
  const low = (a * b - Math.sqrt((a * b) ** 2 - la * ub * (2 * a - la) * (2 * b - ub))) / (ub * (2 * b - ub));
  const high = (a * b + Math.sqrt((a * b) ** 2 - ua * lb * (2 * a - ua) * (2 * b - lb))) / (lb * (2 * b - lb));
  if (!Number.isFinite(low) || !Number.isFinite(high)) return UNKNOWN;
  const error = now.error == null || then.error == null ? null : Math.hypot(now.error / b, (a * then.error) / b ** 2);
  return { value: a / b, error, low, high };
}

// The change from then to now in per cent.
export function change(now, then) {
  const by = ratio(now, then);
  if (!isKnown(by)) return UNKNOWN;
  const percent = (part) => (part == null ? null : (part - 1) * 100);
  return { value: percent(by.value), error: by.error == null ? null : by.error * 100, low: percent(by.low), high: percent(by.high) };
}

// The median of several: the one in the middle, or the mean of the two there, with the mean of all distances to the ends
// of their intervals. The parts share noise where devices keep their memos, so their errors do not average out.
export function median(parts) {
  const known = parts.filter((part) => isKnown(part) && part.low != null && part.high != null);
  if (!known.length) return UNKNOWN;
  const values = known.map((part) => part.value).sort((a, b) => a - b);
  const half = values.length >> 1;
  const value = values.length % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
  const mean = (of) => known.reduce((sum, part) => sum + of(part), 0) / known.length;
  return {
    value, error: mean((part) => part.error ?? 0),
    low: value - mean((part) => part.value - part.low), high: value + mean((part) => part.high - part.value),
  };
}
