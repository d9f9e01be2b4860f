"""The answers of the visitors of one window to one attribute."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.consistent_shares import (
    ConsistentShares,
    consistent_shares,
    places_of,
    project,
    shortened,
    shortened_consistent,
)
from analytics.estimation.estimates import CONFIDENCE, Estimates, drawn_share, estimate, quantile
from analytics.estimation.pairs import Table, fitted_pairs
from analytics.estimation.places import covariance_of, fit_places
from analytics.estimation.votes import CellNoise, covariance, nearest, noise_covariance
from analytics.mobility.count_history import CountHistory
from analytics.windows.calendar import Window
from protocols.arrays import Floats, Mask, Places, Whole
from protocols.mechanisms import Channel, PlanarChannel, SupportChannel
from protocols.question import Question


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to one attribute in one window: `counts[value]` of `n` support each value."""

    question: Question
    n: int
    counts: Whole
    visitors: Estimates
    noise: CellNoise | None = None  # on counts and n
    reports: Estimates | None = None  # that shares are shares of, where they are those of an average period

    @classmethod
    def of(cls, history: CountHistory, name: str, window: Window) -> "Answers":
        numbers = history.answers(name, window), history.supported(name, window), history.visitors(window)
        return cls(history.scheme.question(name), *numbers)

    @property
    def everybody(self) -> Estimates:
        """What shares are shares of: the visitors, or all reports of a window."""
        return self.visitors if self.reports is None else self.reports

    @property
    def channel(self) -> Channel:
        return self.question.channel

    @cached_property
    def shares(self) -> Estimates:
        return self.of_groups(None)

    @cached_property
    def shown(self) -> Estimates:
        """The shares with as many decimals as their errors carry."""
        return shortened(self.shares)

    @cached_property
    def consistent(self) -> ConsistentShares:
        """The consistent histogram; where counts have noise, and of thresholds, the one nearest to the estimates.

        With noise, the likeliest is the nearest in the metric of their covariance.
        """
        correction = self.question.attribute.correction
        if self.noise is None and not self._slots:
            return consistent_shares(self.counts, self.n, self.channel, correction=correction)
        if correction == "likeliest" and not self._slots:
            return ConsistentShares(project(self.shares.value, self.covariance(), self.channel))
        return ConsistentShares(nearest(self.shares.value, self.channel))

    @property
    def _slots(self) -> int:
        return self.channel.slots if isinstance(self.channel, SupportChannel) else 0

    @cached_property
    def sizes(self) -> Estimates | None:
        """Of sets: the shares of devices by size, and the mean size (`set_sizes`); None where devices have one value.

        Paddings are nested, so it is known how they vary together among those who reported.
        """
        if not isinstance(self.channel, SupportChannel) or self.channel.several == 1 or self._slots:
            return None
        paddings = np.arange(self.channel.items, self.channel.k)
        likely = nearest(self.shares.value, self.channel)
        drawn, at_most = float(drawn_share(self.n, self.visitors.value)), likely[paddings]
        spread = covariance(self.channel, likely, 0.0, paddings) / self.n
        spread -= drawn * (np.minimum.outer(at_most, at_most) - np.outer(at_most, at_most)) / self.n
        if self.noise is not None:
            spread += noise_covariance(self.shares.value, self.n, self.channel, self.noise, paddings)
        return shortened(set_sizes(self.shares.value[paddings], spread))

    def of_groups(self, groups: Mask | None) -> Estimates:
        """The shares of groups of values; None: of every value."""
        return self._estimate(self.counts, groups)

    def fitted(self, margins: "Sequence[Answers | None]" = ()) -> dict[str, Any]:
        """The columns that are published beside the unbiased shares, with as many decimals as they carry.

        For a cross they are made with the answers to both of its attributes; None: these are not published.
        """
        if isinstance(self.channel, SupportChannel) and self.channel.several > 1:  # their sum is of no use to readers
            shares = self.consistent.value[: self.channel.items]
            return {"consistent": np.round(shares, places_of(self.shares.error))}
        if not self.question.axes:
            return self._named(self.consistent)
        first, second = self.question.axes
        rows, columns = (None if answers is None else answers._table for answers in margins)
        people = max(float(self.visitors.value), 1.0)
        adjusted, consistent = fitted_pairs(self.shares, self._table, (first.k, second.k), rows, columns, people)
        names = ("adjusted", "adjusted_error", "adjusted_low", "adjusted_high")
        return self._named(consistent) | dict(zip(names, shortened(adjusted).parts, strict=True))

    def _named(self, consistent: ConsistentShares) -> dict[str, Any]:
        found = shortened_consistent(consistent, self.shares.error)
        return dict(zip(("consistent", "consistent_low", "consistent_high"), found, strict=True))

    @property
    def _table(self) -> Table:
        """The shares, with the mean variance of all if they are alike: that does not depend on the answers."""
        even = self.channel.support(np.full(self.channel.k, 1 / self.channel.k)) * self.n
        known = float(np.mean(self._estimate(even, None).error ** 2))
        return Table.of(self._estimate(self.counts, None, np.inf), known, self.n, self.channel)

    def _estimate(self, counts: ArrayLike, groups: Mask | None, population: float | None = None) -> Estimates:
        if self._slots:  # how much numbers vary is not known: what is known is how many are above a slot
            population = np.inf
        population = float(self.visitors.value) if population is None else population
        return estimate(counts, self.n, self.channel, population=population, groups=groups, noise=self.noise)

    def covariance(self, places: Places | None = None) -> Floats:
        """The covariance of the estimated shares, of all values or of some."""
        if isinstance(self.channel, PlanarChannel):
            return covariance_of(fit_places(self.counts, self.channel), places)
        drawn = float(drawn_share(self.n, self.visitors.value))
        own = covariance(self.channel, nearest(self.shares.value, self.channel), drawn, places) / self.n
        if self.noise is None:
            return own
        return own + noise_covariance(self.shares.value, self.n, self.channel, self.noise, places)


def set_sizes(paddings: Floats, spread: Floats) -> Estimates:
    """The shares of devices with 0, 1 .. values, of those with L or more, and the mean size, at most L of each device.

    A set of m values is padded to L with the first L - m paddings. So the share of a padding is that of the devices
    with at most so many values, and sizes are linear in the shares of paddings, which are estimated like those of
    values. `spread` is the covariance of the shares of paddings. Shares need not be between 0 and 1: they are unbiased.

    >>> set_sizes(np.array([0.9, 0.4, 0.1]), np.eye(3) * 1e-4).value.round(3).tolist()
    [0.1, 0.3, 0.5, 0.1, 1.6]
    """
    several = len(paddings)
    steps = np.eye(several + 1, several) - np.eye(several + 1, several, -1)  # "at most" becomes "exactly"
    weights = np.concatenate([steps, -np.ones((1, several))])[:, ::-1]
    value = weights @ paddings
    value[-2:] += 1, several
    error = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", weights, spread, weights), 0))
    half = quantile(CONFIDENCE) * error
    return Estimates(value, error, value - half, value + half)
