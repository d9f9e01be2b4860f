"""What bits of requests tell about a value: one bit, two neighbours together, or the parity of a byte.

Each is a column of zeros and ones. How many devices with a value have a one is hypergeometric if values are dealt to
devices at random: that is the permutation test of the column, without drawing permutations. The level of all columns
and values is Bonferroni's.
"""

from typing import NamedTuple

import numpy as np

from lab.conduct.levels import two_sided
from protocols.arrays import Bytes, Floats, Places

QUANTILES = 16
NOTABLE = 3.0  # standard deviations; the tails of what is nearer to its mean are not computed, and count as 1


class Told(NamedTuple):
    """The column and the value that have the smallest chance of luck, as it is among all of them."""

    chance: float
    column: int
    value: int


def with_pairs_and_parities(bits: Bytes) -> Bytes:
    """Columns of bits, eight to a byte; then the sums of neighbours, and the parity of every byte (all modulo 2).

    The sum of two bits and both alone say all that the two can say.

    >>> with_pairs_and_parities(np.array([[1, 0, 0, 0, 0, 0, 0, 1]], dtype=np.uint8)).tolist()
    [[1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0]]
    """
    neighbours = bits[:, 1:] ^ bits[:, :-1]
    whole = bits[:, : bits.shape[1] // 8 * 8]
    parities = np.bitwise_xor.reduce(whole.reshape(len(bits), -1, 8), axis=2)
    return np.concatenate([bits, neighbours, parities], axis=1)


def named_columns(names: list[str]) -> list[str]:
    """What the columns of `with_pairs_and_parities` are."""
    pairs = [f"{one} and the next one" for one in names[:-1]]
    bytes_ = names[: len(names) // 8 * 8 : 8]
    parities = [f"the parity from {name} on" for name in bytes_]
    return [*names, *pairs, *parities]


def below_quantiles(numbers: Floats) -> Bytes:
    """For numbers, whether each is below each of some quantiles of all of them: a column for each quantile.

    >>> below_quantiles(np.arange(32.0)).sum(axis=0).tolist()
    [2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
    """
    ranks = np.searchsorted(np.sort(numbers), numbers)
    ends = len(numbers) * np.arange(1, QUANTILES) / QUANTILES
    return np.asarray(ranks[:, None] < ends, dtype=np.uint8)


def told(columns: Bytes, values: Places) -> Told:
    """What tells most about the values of devices, a row each.

    >>> rows = np.arange(40)
    >>> columns = np.stack([rows % 2, rows % 4 == 1, rows // 20], axis=1).astype(np.uint8)
    >>> found = told(columns, rows % 4)
    >>> f"{found.chance:.1g}", found.column, found.value
    ('3e-08', 1, 1)
    """
    from scipy.stats import hypergeom  # takes over a second to import

    different, place = np.unique(values, return_inverse=True)
    devices = len(values)
    ones = columns.sum(axis=0, dtype=np.float64)
    varied = np.flatnonzero((ones > 0) & (ones < devices))
    ones = ones[varied]
    tests = max(1, len(varied) * len(different))
    best = Told(1.0, 0, 0)
    for value in range(len(different)):
        own = place == value
        count = columns[own][:, varied].sum(axis=0, dtype=np.float64)
        away = _deviations(count, ones, int(own.sum()), devices)
        for column in np.flatnonzero(away > NOTABLE).tolist():
            law = hypergeom(devices, int(ones[column]), int(own.sum()))
            chance = two_sided(float(law.cdf(count[column])), float(law.sf(count[column] - 1)))
            if chance * tests < best.chance:
                best = Told(chance * tests, int(varied[column]), int(different[value]))
    return best


def _deviations(count: Floats, ones: Floats, own: int, devices: int) -> Floats:
    """How far counts are from their means, in standard deviations."""
    share = ones / devices
    mean = own * share
    rest = (devices - own) / max(1, devices - 1)
    spread = np.sqrt(own * share * (1 - share) * rest)
    return np.asarray(np.abs(count - mean) / np.maximum(spread, 1e-12))
