"""Sufficient statistics."""

from __future__ import annotations

import numpy as np

from protocols.wire import Frame
from stream_app.counting.counters import PeriodCounts, add_counts
from tests.helpers.crowd import scheme_of
from tests.stream_app.worlds import dense

SCHEME = scheme_of("{name: a, values: [x, y, z], mechanism: l-grr}", "eps_inf: 2, eps_1: 1, horizon: 65535")
RNG = np.random.default_rng(3)


def frame(gaps: list[int], values: list[int]) -> Frame:
    tokens = np.arange(1, len(gaps) + 1, dtype=np.uint64)
    answers = {"a": np.array(values, dtype=np.uint8)}
    return Frame("s", "", 0, tokens, np.array(gaps, dtype=np.uint16), answers)


def test_counts_are_by_gap_and_value_whatever_the_cut_into_frames_and_parts() -> None:
    gaps, values = RNG.integers(1, 40, size=600).tolist(), RNG.integers(0, 3, size=600).tolist()
    parts = [PeriodCounts(SCHEME), PeriodCounts(SCHEME)]
    for start in range(0, 600, 50):
        parts[start % 100 // 50].count(frame(gaps[start : start + 50], values[start : start + 50]))
    n, N = dense(add_counts([part.snapshot() for part in parts], SCHEME)["a"], 40)
    assert n.tolist() == [gaps.count(gap) for gap in range(1, 41)]
    pairs = list(zip(gaps, values, strict=True))
    assert N.tolist() == [[pairs.count((gap, value)) for value in range(3)] for gap in range(1, 41)]


def test_only_gaps_that_occur_take_room() -> None:
    counts = PeriodCounts(SCHEME)
    counts.count(frame([65535, 1, 65535], [0, 1, 0]))
    statistics = counts.snapshot()["a"]
    assert statistics.gaps.tolist() == [1, 65535]
    assert statistics.N.tolist() == [[0, 1, 0], [2, 0, 0]]


def test_counting_goes_on_from_a_snapshot() -> None:
    first, straight = PeriodCounts(SCHEME), PeriodCounts(SCHEME)
    for counts in (first, straight):
        counts.count(frame([7, 2], [0, 1]))
    second = PeriodCounts(SCHEME, first.snapshot())
    for counts in (second, straight):
        counts.count(frame([5, 2], [2, 2]))
    for resumed, whole in zip(second.snapshot()["a"].arrays, straight.snapshot()["a"].arrays, strict=True):
        assert (resumed == whole).all()
