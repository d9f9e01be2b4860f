"""Estimates where they could go wrong: empty, tiny, two-valued, extreme, merged in any order."""

import numpy as np
import pytest

from analytics.estimation import estimate
from protocols.mechanisms import Channel, MatrixChannel, SupportChannel
from protocols.mechanisms.rounds import geometric, grr, oue

CHANNELS: list[Channel] = [
    SupportChannel(4, grr(4, 1.0), exclusive=True),
    SupportChannel(4, oue(1.0), exclusive=False),
    SupportChannel(4, oue(1.0), exclusive=False, share=0.5, fake=np.array([0.4, 0.3, 0.2, 0.1])),
    MatrixChannel(geometric(4, 1.0).matrix),
]


@pytest.mark.parametrize("channel", CHANNELS)
def test_without_reports_nothing_is_known(channel: Channel) -> None:
    nothing = estimate(np.zeros((2, 4)), [0, 0], channel)
    assert np.isnan(nothing.value).all() and np.isinf(nothing.error).all()
    assert (nothing.low == 0).all() and (nothing.high == 1).all()


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_single_report_gives_a_wide_but_finite_interval(channel: Channel) -> None:
    one = estimate([1, 0, 0, 0], 1, channel)
    assert np.isfinite([one.value, one.error, one.low, one.high]).all()
    assert (one.low <= one.value + 1e-9).all() and (one.value <= one.high + 1e-9).all()
    assert (one.high - one.low > 0.5).all()


@pytest.mark.parametrize("channel", CHANNELS)
def test_expected_counts_give_the_truth_back(channel: Channel) -> None:
    for truth in ([0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 0.0, 0.0]):
        shares = estimate(channel.support(np.array(truth)) * 1000, 1000, channel)
        assert shares.value == pytest.approx(truth)
        assert (shares.low < truth).all() and (truth < shares.high).all()


@pytest.mark.parametrize("channel", CHANNELS)
def test_batches_are_the_same_as_one_by_one(channel: Channel) -> None:
    random = np.random.default_rng(1)
    n = random.integers(0, 500, size=(3, 5))
    counts = random.binomial(n[..., None], 0.4, size=(3, 5, 4))
    together = estimate(counts, n, channel, population=n + 10)
    for place in np.ndindex(3, 5):
        alone = estimate(counts[place], n[place], channel, population=n[place] + 10)
        np.testing.assert_allclose(together[place].low, alone.low)
        np.testing.assert_allclose(together[place].high, alone.high)


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
