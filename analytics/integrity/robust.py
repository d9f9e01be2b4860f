"""Estimates that forged reports move less, beside the unbiased ones and never instead of them.

The *normalised* shares are those of Cao, Jia and Gong (2021): moved up so that the smallest is 0, and divided by their
sum. Forged reports that support some values push the others below 0, and this takes part of that back. The *bound* is
an interval that holds the share if at most a given part of the reports is forged, whatever they are.
"""

import numpy as np

from protocols.arrays import Floats
from protocols.errors import ResultsError
from protocols.mechanisms import Channel, PlanarChannel, SupportChannel


def robust(estimates: Floats, low: Floats, high: Floats, channel: Channel, forged: float) -> dict[str, Floats]:
    """From unbiased estimates with their intervals, if at most this share of the reports is forged.

    They are `normalised` shares, which sum to 1, and the ends of the interval of each share, `low` and `high`.

    An estimate is (1 - b) honest + b votes, where b is the forged share and votes are between what a report that does
    not support the value and one that does count for.

    >>> from protocols.mechanisms import Flip
    >>> channel = SupportChannel(3, Flip(0.6, 0.2), exclusive=True)
    >>> shares = np.array([0.7, 0.4, -0.1])
    >>> found = robust(shares, shares, shares, channel, forged=0.1)
    >>> [found[column].round(3).tolist() for column in ("normalised", "low", "high")]
    [[0.615, 0.385, 0.0], [0.556, 0.222, 0.0], [0.833, 0.5, 0.0]]
    """
    moved = estimates - estimates.min()
    if isinstance(channel, SupportChannel):
        least, most = -channel.floor / channel.gain, (1 - channel.floor) / channel.gain
    elif isinstance(channel, PlanarChannel):
        raise ResultsError("shares of places are no sums over reports, so forged ones have no bound", "leave them out")
    else:
        least, most = channel.votes.min(axis=0), channel.votes.max(axis=0)
    honest = 1 - forged
    normalised = moved / moved.sum() if moved.sum() > 0 else np.full(len(moved), 1 / len(moved))
    bounds = {"low": (low - forged * most) / honest, "high": (high - forged * least) / honest}
    return {"normalised": normalised, **{end: np.clip(bound, 0.0, 1.0) for end, bound in bounds.items()}}
