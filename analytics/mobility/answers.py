"""The answers of the visitors of one window to one attribute."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.consistent import norm_sub
from analytics.estimation.consistent_shares import ConsistentShares, consistent_shares
from analytics.estimation.estimates import Estimates, drawn_share, estimate
from analytics.estimation.ratios import product
from analytics.estimation.rounding import rounded
from analytics.estimation.votes import Floats, covariance
from analytics.mobility.count_history import CountHistory
from analytics.windows.calendar import Window
from protocols.mechanisms import Channel


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to one attribute in one window. Where presence is noised, all estimates from them are rounded."""

    channel: Channel
    n: int  # as published
    supported: Floats  # share of the answers that support each value
    visitors: Estimates
    noised: bool

    @classmethod
    def of(cls, history: CountHistory, name: str, window: Window) -> Answers:
        question, supported = history.scheme.question(name), history.supported(name, window)
        return cls(
            question.channel,
            0 if supported is None else history.answers(name, window),
            np.zeros(question.k) if supported is None else supported,
            history.visitors(window),
            history.scheme.survey.presence_epsilon is not None,
        )

    @cached_property
    def shares(self) -> Estimates:
        return self.of_groups(None)

    @cached_property
    def consistent(self) -> ConsistentShares:
        """The consistent histogram; where presence is noised, of the rounded estimates."""
        if self.noised:
            return ConsistentShares(norm_sub(self.shares.value))
        return consistent_shares(self.supported * self.n, self.n, self.channel)

    def of_groups(self, groups: NDArray[np.bool_] | None) -> Estimates:
        """The shares of groups of values; None: of every value."""
        return self.as_published(
            estimate(
                self.supported * self.n,
                self.n,
                self.channel,
                population=self.visitors.value,
                groups=groups,
            )
        )

    def people(self, shares: Estimates) -> Estimates:
        """Shares as numbers of visitors."""
        return product(shares, self.visitors)

    def covariance(self, places: NDArray[np.intp] | None = None) -> Floats:
        """The covariance of the estimated shares, of all values or of some."""
        drawn = float(drawn_share(self.n, self.visitors.value))
        return covariance(self.channel, norm_sub(self.shares.value), drawn, places) / self.n

    def as_published(self, estimates: Estimates) -> Estimates:
        """Rounded where numbers of devices carry noise, because the last digits would reveal the exact number."""
        return rounded(estimates) if self.noised else estimates
