// Losses that few devices need: of ordered values, and of questions that two surveys share.

const ROUNDING = 2 ** -62; // what two cuts may add to or take from a probability

export function moreLosses({ byDistance, largest, mostDigits, range, sum }) {
  // Neighbours' losses add up to a bound for any two values, which geometric noise attains.
  function matrixLoss(first, second) {
    const next = second && rowsOf(second);
    const matrix = rowsOf(first).map((row) => {
      const product = new Array(row.length).fill(0);
      if (next) row.forEach((share, i) => next[i].forEach((each, column) => (product[column] += share * each)));
      return next ? product : row;
    });
    const pairs = matrix.slice(1).map((row, i) => [matrix[i], row]);
    const ways = [pairs.map(([row, other]) => steepest(other, row)), pairs.map(([row, other]) => steepest(row, other))];
    return { whole: largest(ways.map(sum)), unit: largest(ways.map(largest)) };
  }

  function rowsOf({ ends, inside }) {
    return ends.map((_, i) => {
      const row = byDistance(i, ends, inside);
      const total = sum(row);
      return row.map((each) => each / total);
    });
  }

  function steepest(row, other) {
    const ratios = row.map((one, i) => (one > 2 * ROUNDING ? (one - ROUNDING) / (other[i] + ROUNDING) : 1));
    return Math.log(largest(ratios));
  }

  // What two answers to a shared question have in common, in bits; never too few.
  function bitsOf(one, other) {
    const { size: m, kind, parameter, k, bits, first } = one;
    const [a, b] = [one.second, other.second];
    let traits = kind === "hashed" ? mostDigits(parameter) * Math.log2(parameter) : 0;
    if (kind === "threshold") traits = Math.log2(parameter);
    if (kind === "buckets") traits = sum(range(parameter).map((i) => Math.log2((k - i) / (i + 1)))); // sets of d among k
    if (one.fakes || !(first.p && a?.p && b?.p)) return traits + (bits ? m : Math.log2(m)); // no more than the memo has
    if (!bits) {
      const apart = a.q * b.q + (a.q * (b.p - b.q) + b.q * (a.p - a.q)) / m;
      const same = apart + ((a.p - a.q) * (b.p - b.q)) / m;
      return traits + m * same * Math.log2(m * m * same) + m * (m - 1) * apart * Math.log2(m * m * apart);
    }
    const ones = first.q + (first.p - first.q) / k;
    const said = (p, bit) => (bit ? p : 1 - p);
    const common = [[0, 0], [0, 1], [1, 0], [1, 1]].map(([x, y]) => {
      const both = ones * said(a.p, x) * said(b.p, y) + (1 - ones) * said(a.q, x) * said(b.q, y);
      const alone = said(ones * a.p + (1 - ones) * a.q, x) * said(ones * b.p + (1 - ones) * b.q, y);
      return both * Math.log2(both / alone);
    });
    return traits + m * sum(common);
  }

  const drawnBits = ({ sampling, hides }, { questions: [{ share }] }) => (sampling && !hides ? -Math.log2(share) : 0);

  // Also by which question a device drew.
  const sharedBits = (terms, one, theirs, other) =>
    sum(one.questions.map((each) => bitsOf(each, other.questions.find(({ id }) => id === each.id)))) +
    Math.max(drawnBits(terms, one), drawnBits(theirs, other));

  return { matrixLoss, sharedBits };
}
