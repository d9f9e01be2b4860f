"""Channels: what is known of a few values, or of a group, without looking at every two values."""

from __future__ import annotations

import numpy as np
import pytest

from protocols.mechanisms import SupportChannel
from tests.helpers.surveys import of_size, scheme_with

K = 7
PRIOR = [0.4, 0.2, 0.1, 0.1, 0.1, 0.06, 0.04]
CHANNELS = {
    **{name: scheme_with(of_size(K, mechanism=name), eps_inf=2.0, eps_1=1.0) for name in ("l-grr", "l-osue", "loloha")},
    **{f"olh, {g}": scheme_with(of_size(K, mechanism="olh", parameter=g), eps=1.0) for g in (2, 3, 5)},
    "dbitflip": scheme_with(of_size(K, mechanism="dbitflip", parameter=3), eps_inf=2.0),
    **{
        name: scheme_with(of_size(K, mechanism=name), of_size(2, "b"), eps=1.0, solution="rs+fd")
        for name in ("grr", "oue-z", "sue-r")
    },
    "prior": scheme_with(
        of_size(K, mechanism="oue-r", prior=PRIOR), of_size(2, "b", prior=[0.5, 0.5]), eps=1.0, solution="rs+rfd"
    ),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_a_part_of_the_joint_support_is_that_part_and_pairs_are_its_sum(name: str) -> None:
    channel = CHANNELS[name].questions[0].channel
    assert isinstance(channel, SupportChannel)
    random = np.random.default_rng(1)
    for frequencies in (random.dirichlet(np.ones(K)), np.eye(K)[2], np.zeros(K)):
        whole = channel.joint(frequencies)
        for group in (random.random(K) < 0.5, np.ones(K, dtype=bool), np.arange(K) == 2, np.zeros(K, dtype=bool)):
            part = whole[np.ix_(group, group)]
            assert channel.joint(frequencies, np.flatnonzero(group)) == pytest.approx(part)
            assert channel.pairs(frequencies, group) == pytest.approx(part.sum())
