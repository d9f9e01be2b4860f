"""The release of a closed period of a survey with `presence_epsilon`: its cells, with noise (PROTOCOLS 7).

The number of reports is not protected by local randomisation. So a period is released once, as the cells n[gap]
and N[value], each with two-sided geometric noise (`protocols.privacy` has the scales). Everything published about the
period is computed from its release, and the exact counts are not kept. Numbers of late rows are not released: a report
may come late more than once, and after it was counted.

The noise derives from a key, the survey's terms, the period, and a digest of the exact cells. The same counts have the
same noise, so a republication has the same bytes. Other counts have independent noise: under the same one, two releases
would show their difference.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from math import exp

import numpy as np
from numpy.typing import NDArray

from analytics.windows import Agreed, UnitSums, agree, agree_flags
from protocols.arrays import Whole
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.survey import CalendarVisits
from stream_app.counting.counters import Counts, Statistics

DIGITS = 40  # a geometric number of 2^40 or more is practically impossible for any useful epsilon
WORD = 1 << 64
AT_ONCE = 1 << 12  # cells whose noise is drawn together


@dataclass(frozen=True, eq=False)
class Release:
    """A closed period as it may be published. Cells may be negative.

    If a report answers one attribute, each attribute has its own `n`; otherwise all have the same. Reports that answer
    none have an `n` of their own, and no supports.
    """

    n: Mapping[str, Whole]  # by attribute and gap, or flags
    N: Mapping[str, Whole]  # by attribute: N[value], of all gaps together
    agreed: Agreed  # visitors by gap, made to agree with one another and with earlier periods
    axis: Whole  # the gaps, or flags, that numbers by gap are of


def release(
    counts: Counts,
    scheme: Scheme,
    period: int,
    before: Release | None,
    keyring: Keyring,
    sums: UnitSums | None = None,
) -> Release:
    """Release a period; `before` is the release of the period before it, None if that had none.

    `sums` are those of calendar units through the period before it.
    """
    noise = scheme.presence
    assert noise is not None, "only a survey with presence_epsilon has releases"
    visits, names, kinds = scheme.visits, list(counts), scheme.kinds
    exact = {
        **{f"n {name}": _by_gap(counts[name], visits.cells) for name in kinds},
        **{f"N {name}": counts[name].supports for name in names},
    }
    scales = [noise.reports_scale] * len(kinds) + [noise.supports_scale(name) for name in names]
    cells = np.concatenate(list(exact.values()))
    rates = np.repeat(1 / np.array(scales), [len(part) for part in exact.values()])
    noised = cells + _noise(cells, rates, scheme, period, keyring)
    ends = np.cumsum([len(part) for part in exact.values()])[:-1]
    found = dict(zip(exact, np.split(noised, ends), strict=True))
    n = {name: found[f"n {name if name in kinds else kinds[0]}"] for name in names}
    total = sum(max(0, int(n[kind].sum())) for kind in kinds)
    reports = np.asarray(sum(n[kind] for kind in kinds))
    if isinstance(visits, CalendarVisits):
        agreed = Agreed(agree_flags(reports, total, visits, period, sums or {}), np.zeros(0, dtype=np.int64))
    else:
        agreed = agree(reports, total, None if before is None else before.agreed.left)
    return Release(n, {name: found[f"N {name}"] for name in names}, agreed, visits.cells)


def _by_gap(statistics: Statistics, axis: Whole) -> Whole:
    n = np.zeros(len(axis), dtype=np.int64)
    n[np.searchsorted(axis, statistics.gaps)] = statistics.n
    return n


def _noise(cells: Whole, rates: NDArray[np.float64], scheme: Scheme, period: int, keyring: Keyring) -> Whole:
    """Two-sided geometric noise for these exact cells."""
    digest = sha256(np.ascontiguousarray(cells, dtype="<i8").tobytes()).hexdigest()
    own = Keyring(keyring.key(("presence", scheme.survey.id, scheme.fingerprint)))  # not cached: a key for every digest
    parts = []
    for first in range(0, len(cells), AT_ONCE):
        some = np.arange(first, min(first + AT_ONCE, len(cells)), dtype=np.uint64)
        words = own.draws((digest,), some, period).blocks(DIGITS).view("<u8").reshape(len(some), 2, DIGITS)
        rate = rates[first : first + AT_ONCE]
        parts.append(geometric(words[:, 0], rate) - geometric(words[:, 1], rate))
    return np.concatenate(parts)


def geometric(words: NDArray[np.uint64], rates: NDArray[np.float64]) -> Whole:
    """Geometric numbers, P(X >= x) = e^(-rate x), from rows of uniform 64-bit words: one word for each binary digit.

    The binary digits of a geometric number are independent: digit i is 1 with odds e^(-rate 2^i) to 1.

    >>> words = Keyring(bytes(16)).draws(("g",), np.arange(20_000, dtype=np.uint64)).blocks(20).view("<u8")
    >>> bool(abs(geometric(words, np.full(20_000, 0.1)).mean() - 1 / (exp(0.1) - 1)) < 0.3)
    True
    """
    powers = 2.0 ** np.arange(words.shape[1])
    limits = {rate: _limits(rate, words.shape[1]) for rate in set(rates.tolist())}
    digits = words < np.stack([limits[rate] for rate in rates.tolist()])
    return np.asarray(digits @ powers.astype(np.int64))


@lru_cache(maxsize=256)
def _limits(rate: float, digits: int) -> NDArray[np.uint64]:
    """Of 2^64, how many words make each digit 1."""
    odds = [exp(-rate * 2.0**digit) for digit in range(digits)]
    return np.array([min(int(odd / (1 + odd) * WORD), WORD - 1) for odd in odds], dtype=np.uint64)
