"""Noise on the number of reports, for surveys with `presence_epsilon` (PROTOCOLS 7).

The number of reports is not protected by local randomisation. With `presence_epsilon`, every count n[period, gap] gets
two-sided geometric noise of scale 3 / epsilon (`analytics.windows.presence_noise` derives the scale). The noise derives
from a key, the survey, the period and the gap: a republication has the same noise, so averaging does not remove it.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import NDArray

from analytics.windows import scale
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from stream_app.counting.counters import Counts

DIGITS = 40  # a geometric number of 2^40 or more is practically impossible for any useful epsilon
WORD = 1 << 64

PresenceCounts = dict[str, NDArray[np.int64]]  # by attribute: n[gap - 1]


def presence_counts(counts: Counts, scheme: Scheme, period: int, keyring: Keyring) -> PresenceCounts:
    """The reports n[gap - 1] of each attribute for every gap up to the horizon, as they may be published.

    They are exact, or have noise if the survey has `presence_epsilon`; counts with noise may be negative. If a report
    answers one attribute, each attribute has its own counts and its own noise; otherwise all have the same.
    """
    epsilon, horizon = scheme.survey.presence_epsilon, scheme.survey.horizon
    if epsilon is None:
        return {name: statistics.dense(horizon)[0] for name, statistics in counts.items()}
    gaps = np.arange(1, horizon + 1, dtype=np.uint64)
    rate = 1 / scale(epsilon)
    noised = {}
    for place, (name, statistics) in enumerate(counts.items()):
        numbers = gaps + np.uint64(place << 16 if name in scheme.kinds else 0)
        blocks = keyring.draws(("presence", scheme.survey.id, scheme.fingerprint), numbers, period).blocks(DIGITS)
        words = blocks.view("<u8").reshape(horizon, 2, DIGITS)
        noised[name] = statistics.dense(horizon)[0] + geometric(words[:, 0], rate) - geometric(words[:, 1], rate)
    return noised


def geometric(words: NDArray[np.uint64], rate: float) -> NDArray[np.int64]:
    """Geometric numbers, P(X >= x) = e^(-rate x), from rows of uniform 64-bit words: one word for each binary digit.

    The binary digits of a geometric number are independent: digit i is 1 with odds e^(-rate 2^i) to 1.

    >>> words = Keyring(bytes(16)).draws(("g",), np.arange(20_000, dtype=np.uint64)).blocks(20).view("<u8")
    >>> bool(abs(geometric(words, 0.1).mean() - 1 / (exp(0.1) - 1)) < 0.3)
    True
    """
    odds = [exp(-rate * 2.0**digit) for digit in range(words.shape[1])]
    limits = np.array([min(int(odd / (1 + odd) * WORD), WORD - 1) for odd in odds], dtype=np.uint64)
    digits = (words < limits).astype(np.int64)
    return np.asarray(digits @ (1 << np.arange(words.shape[1], dtype=np.int64)))
