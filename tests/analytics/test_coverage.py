"""Estimates where they could go wrong, and intervals: 95 % of them hold the truth, for every mechanism."""

import numpy as np
import pytest

from analytics.estimation import estimate
from analytics.estimation.estimates import Estimates
from protocols.mechanisms import Channel, MatrixRound, SupportChannel
from protocols.mechanisms.rounds import geometric, grr, oue
from tests.helpers.crowd import counts_of, scheme_of

TRIALS, K = 700, 10
GROUPS = np.array([[1, 1, 1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1, 1, 0, 0], [1, 0] * 5], dtype=bool)
SIZES = (60, 300, 1200)  # devices per trial: small crowds are the hard ones
SKEWED = np.array([0.5, 0.2, 0.1, 0.08, 0.05, 0.03, 0.02, 0.01, 0.01, 0.0])

ONE = "{name: a, range: {last: 9}, mechanism: %s}"
PAIR = ONE + ", {name: b, values: [x, y, z]}"
SHARES = ", ".join(f"'{i}': {share}" for i, share in enumerate([0.4, *[0.06] * 8, 0.12]))
PRIOR = ONE[:-1] + f", prior: {{{SHARES}}}}}, {{name: b, values: [x, y], prior: {{x: 0.5, y: 0.5}}}}"

FAMILIES = {
    **{f"{name}, one-shot": (ONE % name, "eps: 1.5") for name in ("grr", "sue", "oue", "olh", "geometric")},
    **{
        name: (ONE % name, "eps_inf: 3, eps_1: 1")
        for name in ("l-grr", "l-sue", "l-osue", "l-oue", "l-soue", "l-geometric", "loloha")
    },
    "dbitflip": (ONE % "dbitflip, parameter: 5", "eps_inf: 2"),
    "memo only": (ONE % "oue", "eps_inf: 2"),
    "smp": (PAIR % "l-osue", "eps_inf: 3, eps_1: 1"),
    "spl": (PAIR % "l-grr", "solution: spl, eps_inf: 4, eps_1: 2"),
    **{
        f"rs+fd {name}": (PAIR % name, "solution: rs+fd, eps_inf: 3, eps_1: 2")
        for name in ("grr", "sue-z", "sue-r", "oue-z", "oue-r")
    },
    **{f"rs+rfd {name}": (PRIOR % name, "solution: rs+rfd, eps: 2") for name in ("grr", "grr-r", "oue-r")},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_95_percent_intervals_hold_the_truth_95_percent_of_the_time(family: str) -> None:
    scheme = scheme_of(*FAMILIES[family])
    random = np.random.default_rng(len(family))
    trial = np.repeat(np.arange(TRIALS), np.resize(SIZES, TRIALS))
    values = random.choice(K, size=len(trial), p=SKEWED)
    counts, n = counts_of(scheme, "a", values, trial)
    channel = scheme.question("a").channel

    sampled, regions = estimate(counts, n, channel), estimate(counts, n, channel, groups=GROUPS)
    assert _coverage(sampled, SKEWED) == pytest.approx(0.95, abs=0.015)
    assert _coverage(regions, SKEWED @ GROUPS.T) == pytest.approx(0.95, abs=0.015)

    everybody = np.bincount(trial)
    realised = np.zeros((TRIALS, K))
    np.add.at(realised, (trial, values), 1 / everybody[trial])
    these = estimate(counts, n, channel, population=everybody)
    assert _coverage(these, realised) == pytest.approx(0.95, abs=0.015)


def _coverage(intervals: Estimates, truth: np.ndarray) -> float:
    held = (intervals.low - 1e-12 <= truth) & (truth <= intervals.high + 1e-12)
    assert held.size >= 2000
    return float(held.mean())


CHANNELS: list[Channel] = [
    SupportChannel(4, grr(4, 1.0), exclusive=True),
    SupportChannel(4, oue(1.0), exclusive=False),
    SupportChannel(4, oue(1.0), exclusive=False, share=0.5, fake=np.array([0.4, 0.3, 0.2, 0.1])),
    MatrixRound(geometric(4, 1.0).matrix),
]


@pytest.mark.parametrize("channel", CHANNELS)
def test_without_reports_nothing_is_known_and_a_single_one_gives_a_wide_but_finite_interval(channel: Channel) -> None:
    nothing = estimate(np.zeros((2, 4)), [0, 0], channel)
    assert np.isnan(nothing.value).all() and np.isinf(nothing.error).all()
    assert (nothing.low == 0).all() and (nothing.high == 1).all()
    one = estimate([1, 0, 0, 0], 1, channel)
    assert np.isfinite([one.value, one.error, one.low, one.high]).all()
    assert (one.low <= one.value + 1e-9).all() and (one.value <= one.high + 1e-9).all()
    assert (one.high - one.low > 0.5).all()


def test_asking_everybody_is_surer_than_asking_some_of_them() -> None:
    channel = SupportChannel(4, oue(3.0), exclusive=False)
    errors = [
        estimate([50, 20, 20, 10], 100, channel, population=size).error.mean() for size in (100, 200, 10**6, None)
    ]
    assert errors[0] < errors[1] < errors[2] == pytest.approx(errors[3], rel=1e-3)


@pytest.mark.parametrize("channel", CHANNELS)
def test_everybody_together_is_everybody(channel: Channel) -> None:
    """The group of all values is known exactly where reports name one value each, and estimated elsewhere."""
    counts = channel.support(np.array([0.1, 0.2, 0.3, 0.4])) * 1000
    everybody = estimate(counts, 1000, channel, groups=np.ones((1, 4), dtype=bool))
    assert everybody.value == pytest.approx([1])
    assert (everybody.error[0] < 1e-6) == channel.exclusive
