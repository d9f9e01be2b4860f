"""The noise on what is released of a survey with `presence_epsilon` (PROTOCOLS 7).

Each number gets two-sided geometric noise once, when the window that it is about is over; `protocols.privacy` has the
scales. Everything published is computed from released numbers, and the exact ones are not kept.

The noise derives from a key, the survey's terms, the series, the window, and a digest of the exact numbers. The same
counts have the same noise, so a republication has the same bytes. Other counts have independent noise: under the same
one, two releases would show their difference.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from math import exp

import numpy as np
from numpy.typing import NDArray

from analytics.windows import Window
from protocols.arrays import Whole
from protocols.privacy import PresenceNoise
from protocols.randomness import Keyring
from protocols.scheme import Scheme

DIGITS = 40  # a geometric number of 2^40 or more is practically impossible for any useful epsilon
WORD = 1 << 64
AT_ONCE = 1 << 12  # cells whose noise is drawn together


class Noise:
    """Adds noise to the numbers of one survey."""

    def __init__(self, scheme: Scheme, keyring: Keyring) -> None:
        assert scheme.presence is not None, "only a survey with presence_epsilon has noise"
        self.law: PresenceNoise = scheme.presence
        # A keyring of its own is not cached: it makes a key for every digest.
        self._keyring = Keyring(keyring.key(("presence", scheme.survey.id, scheme.fingerprint)))

    def on(self, series: str, window: Window, exact: Whole | Sequence[int], scale: float) -> Whole:
        """The numbers of a series that are about a window, with noise of this scale.

        `series` names what is counted: numbers of another series have independent noise.
        """
        numbers = np.asarray(exact, dtype=np.int64)
        digest = sha256(np.ascontiguousarray(numbers, dtype="<i8").tobytes()).hexdigest()
        parts = [np.zeros(0, dtype=np.int64)]
        for first in range(0, len(numbers), AT_ONCE):
            cells = np.arange(first, min(first + AT_ONCE, len(numbers)), dtype=np.uint64)
            draws = self._keyring.draws((series, str(window.first), digest), cells, window.last)
            words = draws.blocks(DIGITS).view("<u8").reshape(len(cells), 2, DIGITS)
            parts.append(geometric(words[:, 0], 1 / scale) - geometric(words[:, 1], 1 / scale))
        return numbers + np.concatenate(parts)


def geometric(words: NDArray[np.uint64], rate: float) -> Whole:
    """Geometric numbers, P(X >= x) = e^(-rate x), from rows of uniform 64-bit words: one word for each binary digit.

    The binary digits of a geometric number are independent: digit i is 1 with odds e^(-rate 2^i) to 1.

    >>> words = Keyring(bytes(16)).draws(("g",), np.arange(20_000, dtype=np.uint64)).blocks(20).view("<u8")
    >>> bool(abs(geometric(words, 0.1).mean() - 1 / (exp(0.1) - 1)) < 0.3)
    True
    """
    digits = words < _limits(rate, words.shape[1])
    powers = 2 ** np.arange(words.shape[1])
    return np.asarray(digits @ powers)


@lru_cache(maxsize=256)
def _limits(rate: float, digits: int) -> NDArray[np.uint64]:
    """Of 2^64, how many words make each digit 1."""
    odds = [exp(-rate * 2.0**digit) for digit in range(digits)]
    return np.array([min(int(odd / (1 + odd) * WORD), WORD - 1) for odd in odds], dtype=np.uint64)
