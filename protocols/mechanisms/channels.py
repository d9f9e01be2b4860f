"""The support channel: how true frequencies become frequencies of reports (PROTOCOLS 1).

The chance that a report supports value i is floor_i + gain * f_i whatever the mechanism, so one estimator and one
variance serve all of them. Only the ordered mechanisms (truncated geometric) need their full matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from protocols.arrays.aliases import Floats, Mask, Places
from protocols.mechanisms.rounds import Flip

Together = Callable[[Floats, Places], Floats]  # distribution of values, places -> joint support of the places
Among = Callable[[Floats, Mask], float]  # distribution of values, group -> sum of the joint support of its pairs


def independent(bits: Flip, values: Floats) -> Floats:
    """The chance that two different bits are both set, each on its own, when values are drawn from `values`."""
    either = values[:, None] + values[None, :]
    return np.asarray(bits.q * bits.q * (1 - either) + bits.p * bits.q * either)


def independent_pairs(bits: Flip, values: Floats) -> float:
    """The sum of `independent` over all pairs of different bits, without a matrix of them."""
    others = len(values) - 1
    return float(bits.q * others * (bits.q * len(values) + 2 * bits.gain * values.sum()))


@dataclass(frozen=True, eq=False)
class SupportChannel:
    """An affine support channel, as a mixture: with chance `share` the truth, otherwise fake data.

    `flip` is the one-report channel of whatever is encoded; `fake` is the distribution of fake values, or None where
    fakes are zero vectors. `exclusive`: a report supports exactly one value (direct encodings); otherwise, given the
    encoded value, supports are independent of each other, unless `together` gives how often two values are
    supported at once (hashes and lifelong buckets make them dependent). `among` sums that over a group, if given.

    >>> from protocols.mechanisms.rounds import grr
    >>> channel = SupportChannel(4, grr(4, 1.0), exclusive=True)
    >>> round(channel.gain, 4), channel.floor.round(4).tolist()
    (0.3005, [0.1749, 0.1749, 0.1749, 0.1749])
    """

    k: int
    flip: Flip
    exclusive: bool
    share: float = 1.0
    fake: Floats | None = field(default=None, repr=False)
    together: Together | None = field(default=None, repr=False)
    among: Among | None = field(default=None, repr=False)
    several: int = 1  # what frequencies sum to: the size to which sets are padded
    slots: int = 0
    """Of thresholds: a report is about one of so many pairs of values, i and i + slots, and it is known how many are
    about each. 0: of other channels."""

    @property
    def items(self) -> int:
        """How many of the k are values; the others are paddings of sets."""
        return self.k if self.several == 1 else self.k - self.several

    @property
    def parts(self) -> int:
        """Into how many parts of known sizes reports are divided."""
        return max(1, self.slots)

    @property
    def gain(self) -> float:
        return self.share * self.flip.gain

    @cached_property
    def floor(self) -> Floats:
        # A direct fake is a symbol from the prior; `fake` is already its report's distribution.
        faked = self._faked if self.exclusive else self.flip.q + self.flip.gain * self._faked
        return np.asarray(self.share * self.flip.q + (1 - self.share) * faked)

    def support(self, frequencies: Floats) -> Floats:
        """The chance that a report supports each value."""
        return self.floor + self.gain * frequencies

    def back(self, votes: Floats) -> Floats:
        """For each true value the mean of `votes` over its reports, if each supports one value."""
        return np.asarray(self.gain * votes + (votes @ self.floor)[..., None])

    def variance(self, frequencies: Floats) -> Floats:
        """n times the variance of each value's unbiased estimate, if these are the frequencies (PROTOCOLS 1).

        >>> from protocols.mechanisms.rounds import grr
        >>> SupportChannel(10, grr(10, 1.0), exclusive=True).variance(np.eye(10)[0])[:2].round(3).tolist()
        [8.286, 3.63]
        """
        supports = self.support(frequencies)
        return np.asarray(supports * (1 - self.parts * supports) / self.gain**2)

    def joint(self, frequencies: Floats, places: Places | None = None) -> Floats:
        """The chance that one report supports both i and j (diagonal: `support`), of all values or of some places."""
        some = np.arange(self.k) if places is None else places
        both = self.share * self._joint_given(frequencies, some)
        if self.share < 1:
            both = both + (1 - self.share) * self._joint_given(self._faked, some)
        np.fill_diagonal(both, self.support(frequencies)[some])
        return both

    def pairs(self, frequencies: Floats, group: Mask) -> float:
        """The sum of `joint` over a group: the mean square of how many of its values one report supports.

        >>> from protocols.mechanisms.rounds import oue
        >>> channel, even, group = SupportChannel(4, oue(1.0), exclusive=False), np.full(4, 0.25), np.arange(4) < 3
        >>> round(channel.pairs(even, group), 9), round(float(channel.joint(even)[:3, :3].sum()), 9)
        (1.600518795, 1.600518795)
        """
        alone = float(self.support(frequencies)[group].sum())
        if self.exclusive:
            return alone
        if self.among is not None:
            return alone + self.among(frequencies, group)
        if self.together is not None:
            return float(self.joint(frequencies, np.flatnonzero(group)).sum())
        parts = (self.share, frequencies), (1 - self.share, self._faked)
        return alone + sum(share * independent_pairs(self.flip, values[group]) for share, values in parts)

    @property
    def matrix(self) -> Floats:
        """P(report is j | truth is i), for exclusive channels."""
        assert self.exclusive, "only a channel whose reports support exactly one value has a matrix"
        return np.asarray(self.floor[None, :] + self.gain * np.eye(self.k))

    @property
    def _faked(self) -> Floats:
        return np.zeros(self.k) if self.fake is None else self.fake

    def _joint_given(self, values: Floats, places: Places) -> Floats:
        """Joint support when the encoded value is drawn from `values` (all zero: nothing is encoded)."""
        if self.exclusive:
            return np.zeros((len(places), len(places)))
        return independent(self.flip, values[places]) if self.together is None else self.together(values, places)
