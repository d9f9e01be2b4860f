"""Very many values at larger budgets: olh beside subset selection and projective geometry response (PGR).

The definitions are the published ones: subset selection of Ye and Barg (2018), PGR of Feldman, Nelson, Nguyen and
Talwar (2022). Their chances are checked here by listing every report of a small case. A value of PGR is a point (w, 1)
over the field of g elements, a report another point (a, b), and it supports the values with <a, w> + b = 0. That is an
answer of olh whose hash and symbol are known up to a common factor, so its supports are decoded as those of olh.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from math import comb, exp, lgamma, log, log2
from time import process_time

import numpy as np
from numpy.typing import NDArray

from bench._tables import Table, best_of
from protocols.mechanisms import RECORDS, Budget, FreshHash, bit_flip

REPORTS = 200_000
SIZES = (1_000, 10_000, 100_000, 1_000_000)
BUDGETS = (2.0, 3.0, 4.0)
PRIMES = [n for n in range(2, 200) if all(n % d for d in range(2, n))]
MOST_POINTS = 1 << 23
"""As many as olh may have hashes."""

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Chances:
    """That a report supports the true value, and another one."""

    own: float
    other: float

    @property
    def variance(self) -> float:
        """n times the variance of the estimate of a value that nobody has."""
        return self.other * (1 - self.other) / (self.own - self.other) ** 2


def subset_chances(k: int, d: int, eps: float) -> Chances:
    """A report is a set of d of the k values, exp(eps) times as likely if the true one is in it."""
    own = d * exp(eps) / (d * exp(eps) + k - d)
    return Chances(own, (own * (d - 1) + (1 - own) * d) / (k - 1))


def pgr_chances(g: int, m: int, eps: float) -> Chances:
    """A report is a point of m + 1 coordinates, exp(eps) times as likely if it is orthogonal to the true value's."""
    points, inside, both = ((g**n - 1) // (g - 1) for n in (m + 1, m, m - 1))
    total = exp(eps) * inside + points - inside
    return Chances(exp(eps) * inside / total, (exp(eps) * both + inside - both) / total)


def best_subset(k: int, eps: float) -> int:
    around = max(1, round(k / (exp(eps) + 1)))
    return min({max(1, around + step) for step in (-1, 0, 1)}, key=lambda d: subset_chances(k, d, eps).variance)


def best_pgr(k: int, eps: float) -> tuple[int, int]:
    """The field and the number of coordinates of values with the smallest variance, of those that fit."""
    fits = [(g, m) for g in PRIMES for m in [_digits(k, g)] if g**m <= MOST_POINTS and m > 1]
    return min(fits, key=lambda one: pgr_chances(one[0], one[1], eps).variance)


def run() -> Table:
    _check_small_cases()
    columns = ("values, eps", "olh: g", "bits", "decode s", "variance", "subset: bits", "variance",
               "PGR: g", "bits", "decode s", "variance", "measured")  # fmt: skip
    found = Table(f"olh and what was published since, {REPORTS:,} reports, CPU time", columns)
    for k, eps in product(SIZES, BUDGETS):
        _row(found, k, eps)
    found.remarks.append("variance: over the optimum, 4 e^eps / (e^eps - 1)^2; measured: of values that nobody has")
    return found


def _row(found: Table, k: int, eps: float) -> None:
    optimum = 4 * exp(eps) / (exp(eps) - 1) ** 2
    build = RECORDS["olh"].one_round
    assert build is not None
    mechanism = build(k, Budget(eps), None)
    encoding = mechanism.encoding
    assert isinstance(encoding, FreshHash)
    seen = encoding.seen(bit_flip(mechanism.first))
    olh = Chances(seen.p, seen.q).variance
    answers = np.random.default_rng(1).integers(encoding.answer.count, size=REPORTS, dtype=np.uint32)
    olh_seconds = best_of(2, lambda: encoding.supports(answers), process_time)
    d = best_subset(k, eps)
    subset_bits = (lgamma(k + 1) - lgamma(d + 1) - lgamma(k - d + 1)) / log(2)
    g, m = best_pgr(k, eps)
    chances = pgr_chances(g, m, eps)
    values = np.random.default_rng(2).integers(k // 2, size=REPORTS)  # the other half nobody has
    hashes, symbols = pgr_reports(values, g, m, chances.own)
    seconds = best_of(2, lambda: pgr_supports(hashes, symbols, g, m), process_time)
    supports = pgr_supports(hashes, symbols, g, m)[:k]
    estimates = (supports[k // 2 :] / REPORTS - chances.other) / (chances.own - chances.other)
    measured = float(np.mean(estimates**2)) * REPORTS
    found.row(
        f"{k:,}, {eps:g}",
        str(encoding.g), str(encoding.answer.bits), f"{olh_seconds:.2f}", f"{olh / optimum:.3f}",
        f"{subset_bits:,.0f}", f"{subset_chances(k, d, eps).variance / optimum:.3f}",
        str(g), str(int(np.ceil(log2((g ** (m + 1) - 1) // (g - 1))))), f"{seconds:.2f}",
        f"{chances.variance / optimum:.3f}", f"{measured / optimum:.3f}",
    )  # fmt: skip


def pgr_reports(values: Whole, g: int, m: int, own: float) -> tuple[Whole, Whole]:
    """Reports of so many people, as hash and symbol: any multiple of a point stands for it.

    One point has no hash, (0, 1): it supports nothing, and has the chance of a point that is not orthogonal.
    """
    random = np.random.default_rng(3)
    hashes = random.integers(1, g**m, size=len(values))
    true = FreshHash(g**m, g).hashed(hashes, values)
    other = (true + random.integers(1, g, size=len(values))) % g
    symbols = np.where(random.random(len(values)) < own, true, other)
    none = random.random(len(values)) < (1 - own) / g**m
    return np.where(none, 0, hashes), np.where(none, 1, symbols)


def pgr_supports(hashes: Whole, symbols: Whole, g: int, m: int) -> Whole:
    """How many reports support each of the g^m values: those that their hash sends to their symbol."""
    return FreshHash(g**m, g).supports((hashes * g + symbols).astype(np.uint32))


def _digits(k: int, g: int) -> int:
    return next(m for m in range(1, 40) if g**m >= k)


def _check_small_cases() -> None:
    """Compare the chances with those of listed reports, and fast supports with plain ones."""
    weight, k, d = exp(1.5), 7, 2
    sets = list(combinations(range(k), d))
    total = sum(weight if 0 in one else 1 for one in sets)
    assert len(sets) == comb(k, d)
    found = [sum((weight if 0 in one else 1) for one in sets if value in one) / total for value in (0, 1)]
    expected = subset_chances(k, d, 1.5)
    assert np.allclose(found, [expected.own, expected.other])
    g, m = 5, 2
    points = {max(tuple(c * x % g for x in point) for c in range(1, g)) for point in product(range(g), repeat=m + 1)}
    points.remove((0,) * (m + 1))
    assert len(points) == (g ** (m + 1) - 1) // (g - 1)
    own, other = (1, 3, 1), (4, 2, 1)
    supporting = [{p for p in points if np.dot(p, value) % g == 0} for value in (own, other)]
    total = sum(weight if p in supporting[0] else 1 for p in points)
    found = [sum(weight if p in supporting[0] else 1 for p in those) / total for those in supporting]
    chances = pgr_chances(g, m, 1.5)
    assert np.allclose(found, [chances.own, chances.other])
    values = np.random.default_rng(0).integers(g**m, size=500)
    hashes, symbols = pgr_reports(values, g, m, chances.own)
    plain = FreshHash(g**m, g).hashed(hashes[:, None], np.arange(g**m)[None, :]) == symbols[:, None]
    assert (plain.sum(axis=0) == pgr_supports(hashes, symbols, g, m)).all()
