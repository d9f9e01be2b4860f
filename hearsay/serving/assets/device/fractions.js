// Floats as exact fractions: a float is a whole number over a power of two.

const view = new DataView(new ArrayBuffer(8));

// [numerator, exponent]: the float is numerator / 2^exponent, exactly.
export function fraction(x) {
  if (!(x >= 0) || !Number.isFinite(x)) throw new RangeError("not a probability");
  view.setFloat64(0, x);
  const bits = view.getBigUint64(0);
  const exponent = Number(bits >> 52n) & 0x7ff;
  const mantissa = bits & 0xfffffffffffffn;
  return exponent === 0 ? [mantissa, 1074] : [mantissa | 0x10000000000000n, 1075 - exponent];
}

// The same proportions in whole numbers.
export function wholeNumbers(floats) {
  const found = floats.map(fraction);
  const scale = Math.max(...found.map(([numerator, exponent]) => (numerator ? exponent : -Infinity)), 0);
  return found.map(([numerator, exponent]) => {
    if (!numerator) return 0n;
    return numerator << BigInt(scale - exponent);
  });
}

// The float nearest to numerator / 2^exponent; of two equally near ones that with the even last bit.
export function nearest(numerator, exponent) {
  if (numerator === 0n) return 0;
  const spare = numerator.toString(2).length - 53;
  if (spare <= 0) return scaled(Number(numerator), exponent);
  if (exponent - spare > 1074) throw new RangeError("too small for a float of full precision");
  const by = BigInt(spare);
  let kept = numerator >> by;
  const rest = numerator - (kept << by);
  const half = 1n << (by - 1n);
  if (rest > half || (rest === half && kept & 1n)) kept += 1n;
  return scaled(Number(kept), exponent - spare);
}

// In two steps, because 2^-1074 times 2^-1 would be 0.
function scaled(number, exponent) {
  const half = Math.trunc(exponent / 2);
  return number * 2 ** -half * 2 ** -(exponent - half);
}
