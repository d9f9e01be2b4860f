"""Estimates from cells with noise of their own: surveys with `presence_epsilon` (PROTOCOLS 7).

A share is the one f for which T(f) = sum_i a_i N_i + (c - f) n is 0 on average (a and c from the votes). The interval
is all f with T(f)^2 at most z^2 times the variance of T at f (Fieller), the ends of which are roots of a quadratic. It
covers at any n. Where n may be 0 as far as its noise shows, every share is possible.
"""

from dataclasses import dataclass

import numpy as np

from analytics.estimation.votes import Voted
from protocols.arrays import Floats, Mask, Places
from protocols.mechanisms import MatrixRound
from protocols.privacy import geometric_variance
from protocols.scheme import Scheme


@dataclass(frozen=True)
class CellNoise:
    """The variances of the noise on each N[value], and on n, which is a sum of `cells`."""

    supports: float
    reports: float
    cells: int

    @classmethod
    def of(cls, scheme: Scheme, name: str) -> "CellNoise | None":
        """The noise on one attribute's counts of a period; None where they are exact."""
        noise, cells = scheme.presence, len(scheme.survey.visits.cells)
        if noise is None:
            return None
        supports = geometric_variance(noise.supports_scale(name))
        return cls(supports, cells * geometric_variance(noise.reports_scale), cells)


def noise_covariance(shares: Floats, n: int, channel: Voted, noise: CellNoise, places: Places | None) -> Floats:
    """What the noise adds to the covariance of the shares, of all values or of some."""
    some = np.arange(channel.k) if places is None else places
    possible = np.clip(shares, 0, 1)
    if isinstance(channel, MatrixRound):
        products, level = channel.votes[:, some].T @ channel.votes[:, some], possible[some]
    else:
        products, level = np.eye(len(some)) / channel.gain**2, channel.support(possible)[some] / channel.gain
    return np.asarray((noise.supports * products + noise.reports * np.outer(level, level)) / n**2)


def vote_sums(channel: Voted, groups: Mask | None) -> tuple[Floats, Floats, Floats]:
    """Of each value or group: the sums of the squares and of the fourth powers of its votes, and their constant."""
    if isinstance(channel, MatrixRound):
        votes = channel.votes if groups is None else channel.votes @ groups.T
        return (votes**2).sum(axis=0), (votes**4).sum(axis=0), np.zeros(votes.shape[1])
    members = np.ones(channel.k) if groups is None else groups.sum(axis=1)
    floors = channel.floor if groups is None else groups @ channel.floor
    return members / channel.gain**2, members / channel.gain**4, -floors / channel.gain


def wider_quantile(z: float, excess: Floats) -> Floats:
    """Half the width of an interval in standard errors, for noise with this excess kurtosis (Cornish and Fisher).

    Geometric noise has heavier tails than the normal distribution: an excess of 3 for one draw, less for sums.
    """
    return np.asarray(z + (z**3 - 3 * z) / 24 * excess)
