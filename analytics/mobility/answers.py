"""The answers of the visitors of one window to one attribute."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.consistent import norm_sub
from analytics.estimation.consistent_shares import ConsistentShares, consistent_shares
from analytics.estimation.estimates import Estimates, drawn_share, estimate
from analytics.estimation.noised import CellNoise, estimate_noised, noise_covariance
from analytics.estimation.places import covariance_of, fit_places
from analytics.estimation.ratios import product
from analytics.estimation.votes import Floats, covariance
from analytics.mobility.count_history import CountHistory
from analytics.windows.calendar import Window
from protocols.mechanisms import Channel, PlanarChannel


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to one attribute in one window: `counts[value]` of `n` support each value."""

    channel: Channel
    n: int
    counts: NDArray[np.int64]
    visitors: Estimates
    noise: CellNoise | None  # on counts and n, of a period

    @classmethod
    def of(cls, history: CountHistory, name: str, window: Window) -> Answers:
        return cls(
            history.scheme.question(name).channel,
            history.answers(name, window),
            history.supported(name, window),
            history.visitors(window),
            CellNoise.of(history.scheme, name),
        )

    @cached_property
    def shares(self) -> Estimates:
        return self.of_groups(None)

    @cached_property
    def consistent(self) -> ConsistentShares:
        """The consistent histogram; where counts have noise, the one nearest to the estimates."""
        if self.noise is not None:
            return ConsistentShares(norm_sub(self.shares.value))
        return consistent_shares(self.counts, self.n, self.channel)

    def of_groups(self, groups: NDArray[np.bool_] | None) -> Estimates:
        """The shares of groups of values; None: of every value."""
        population = float(self.visitors.value)
        if self.noise is None:
            return estimate(self.counts, self.n, self.channel, population=population, groups=groups)
        return estimate_noised(self.counts, self.n, self.channel, self.noise, population=population, groups=groups)

    def people(self, shares: Estimates) -> Estimates:
        """Shares as numbers of visitors."""
        return product(shares, self.visitors)

    def covariance(self, places: NDArray[np.intp] | None = None) -> Floats:
        """The covariance of the estimated shares, of all values or of some."""
        if isinstance(self.channel, PlanarChannel):
            return covariance_of(fit_places(self.counts, self.channel), places)
        drawn = float(drawn_share(self.n, self.visitors.value))
        own = covariance(self.channel, norm_sub(self.shares.value), drawn, places) / self.n
        if self.noise is None:
            return own
        return own + noise_covariance(self.shares.value, self.n, self.channel, self.noise, places)
