"""Answers with a fresh hash: whenever their supports are counted, and in however many parts, they are the same."""

import numpy as np
import pytest

from protocols.wire import Frame
from stream_app.counting import gathered
from stream_app.counting.counters import Counts, PeriodCounts, add_counts, arrays_of, from_arrays
from stream_app.log.codec import pack, unpack
from tests.helpers.frames import random_answers
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.worlds import dense

HORIZON, ROWS = 3, 400
SCHEME = scheme_with(of_size(300, mechanism="olh"), of_size(3, "b"), eps=1, horizon=HORIZON, solution="spl")


def frame(seed: int, gaps: int = HORIZON) -> Frame:
    random = np.random.default_rng(seed)
    columns = {q.name: random_answers(q.mechanism.encoding.answer, ROWS, random) for q in SCHEME.questions}
    given = random.integers(1, gaps + 1, size=ROWS).astype(np.uint16)
    return Frame("s", SCHEME.fingerprint, 0, np.arange(ROWS, dtype=np.uint64), given, columns)


def same(counts: Counts, expected: dict[str, np.ndarray]) -> None:
    for name, supports in expected.items():
        _, N = dense(counts[name], HORIZON)
        assert (supports == N).all() and not len(counts[name].waits)


def restored(counts: Counts) -> Counts:
    """As a record, and read again."""
    _, arrays = unpack(pack({}, arrays_of(counts)))
    return from_arrays(list(counts), arrays)


@pytest.mark.parametrize("waiting", [0, 1000, 1 << 20], ids=["none waits", "some wait", "all wait"])
def test_supports_are_those_of_a_recount(waiting: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered, "ALWAYS_WAITING", waiting)
    monkeypatch.setattr(gathered, "SUPPORT_BYTES", 0)
    frames = [frame(seed, gaps=1 + seed % HORIZON) for seed in range(5)]
    expected = {
        question.name: sum(
            question.mechanism.encoding.count(one.answers[question.name], one.gaps - 1, HORIZON) for one in frames
        )
        for question in SCHEME.questions
    }
    whole, first, second = PeriodCounts(SCHEME), PeriodCounts(SCHEME), PeriodCounts(SCHEME)
    for place, one in enumerate(frames):
        whole.count(one)
        (first if place % 2 else second).count(one)
        first = PeriodCounts(SCHEME, restored(first.snapshot()))  # a worker that starts again
    same(add_counts([whole.snapshot()], SCHEME), expected)
    same(add_counts([first.snapshot(), second.snapshot()], SCHEME), expected)
    same(add_counts([restored(first.snapshot()), restored(second.snapshot())], SCHEME), expected)


def test_a_record_of_few_answers_is_short_and_sorted_and_equal_counts_have_equal_bytes() -> None:
    counts = [PeriodCounts(SCHEME) for _ in range(2)]
    for place in (0, 1, 2):
        counts[0].count(frame(place))
        counts[1].count(frame(2 - place))
    one, other = (pack({}, arrays_of(found.snapshot())) for found in counts)
    assert one == other
    a = counts[0].snapshot()["a"]
    assert a.N.shape == (HORIZON, 0) and a.waits.sum() == 3 * ROWS
    assert all((np.diff(part.astype(int)) >= 0).all() for part in np.split(a.waiting, np.cumsum(a.waits)[:-1]))
    assert len(one) < 3 * ROWS * 2 + 2000 < 8 * HORIZON * 300 + 2000


def test_no_record_has_more_than_is_computed_for_its_survey(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered, "ALWAYS_WAITING", 64 << 10)
    size = gathered.ALWAYS_WAITING + 4 * HORIZON * 300
    counts, largest = PeriodCounts(SCHEME), 0
    many = frame(1)
    for _ in range(1 + size // (2 * ROWS) + 2):
        counts.count(many)
        assert counts.nbytes >= sum(array.nbytes for array in arrays_of(counts.snapshot()))
        largest = max(largest, counts.nbytes)
    assert gathered.ALWAYS_WAITING - 2 * ROWS < largest <= size + 1000
    assert counts.snapshot()["a"].N.shape == (HORIZON, 300), "the supports of all values, once the answers take more"
