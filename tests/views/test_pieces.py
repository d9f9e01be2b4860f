"""Results that are too large for one record are cut, and nobody sees half of one."""

from collections.abc import Iterable

import numpy as np
import pytest

from protocols.errors import ResultsError
from stream_app.counting import Statistics
from stream_app.counting.counters import Counts
from stream_app.finals import Final, NotCounted, Status
from stream_app.finals.final import message
from stream_app.log.codec import VALUE_BYTES
from stream_app.log.flushes import FINALS, OPEN, Output
from tests.helpers.published import Kept, Memory
from tests.helpers.surveys import of_size, scheme_with
from views.reading import Results
from views.results import HISTOGRAMS, LIVE, MOBILITY
from views.view import is_piece

VALUES, HORIZON, SMALL = 300, 3, 1500
SCHEME = scheme_with(
    of_size(VALUES, "a", mechanism="l-osue"),
    of_size(40, "b", mechanism="l-grr"),
    id="s",
    eps_inf=8,
    eps_1=4,
    horizon=HORIZON,
    clock="source",
    solution="spl",
)


def counts(seed: int, people: int = 2000) -> Counts:
    rng, gaps = np.random.default_rng(seed), np.arange(1, HORIZON + 1, dtype=np.uint16)
    n = np.full(HORIZON, people // HORIZON)
    supports = {q.name: rng.binomial(n[:, None], 0.3, (HORIZON, q.k)) for q in SCHEME.questions}
    widths = {q.name: np.arange(q.mechanism.encoding.widths) for q in SCHEME.questions}
    return {name: Statistics(gaps, n, N, widths[name]) for name, N in supports.items()}


def published(periods: int, seed: int = 0) -> list[Output]:
    """Finals of some periods, and what is known of the next one, which is open."""

    def final(period: int) -> bytes:
        return Final.of(SCHEME, period, counts(period + seed), NotCounted()).encode()

    finals = [message(FINALS, "s", period, final(period)) for period in range(periods)]
    status = Status(survey="s", closed_through=periods - 1, open={periods: 2000})
    return [*finals, message(OPEN, "s", periods, final(periods)), status.message]


def made(periods: int, limit: int, seed: int = 0) -> list[Output]:
    return Memory(published(periods, seed), SCHEME.survey, limit=limit).made


def shown(messages: Iterable[Output]) -> list[str]:
    """All that a reader finds."""
    results = read(messages)
    return [found.model_dump_json() for view in (HISTOGRAMS, MOBILITY, LIVE) for found in results.read(view, "s")]


def read(messages: Iterable[Output]) -> Results:
    store = Kept()
    store.kept += messages
    return Results(store)


def test_a_result_in_pieces_is_read_as_the_same_result() -> None:
    whole, cut = made(4, VALUE_BYTES), made(4, SMALL)
    assert not any(map(is_piece, whole))
    assert sum(map(is_piece, cut)) > 4 * 3, "finals of both kinds, and the provisional result"
    assert all(len(item.value) <= SMALL for item in cut if is_piece(item))
    assert shown(cut) == shown(whole) and len(shown(whole)) == 9


def test_pieces_come_before_results_and_the_histogram_of_a_period_after_everything_else() -> None:
    """What is published of a period is complete once its histogram is there."""
    cut = made(2, SMALL)
    kinds = ["piece" if is_piece(item) else item.topic for item in cut]
    ends = {kind: len(kinds) - 1 - kinds[::-1].index(kind) for kind in kinds}
    assert ends["piece"] < kinds.index("mobility") and ends["mobility"] < kinds.index("histograms")


def test_repeated_pieces_are_read_once_and_a_result_that_lacks_one_is_not_there() -> None:
    cut = made(1, SMALL)
    pieces = [item for item in cut if is_piece(item) and item.topic == HISTOGRAMS.name]
    assert shown([*cut, *cut[:7], *reversed(cut)]) == shown(cut)
    assert read(item for item in cut if item != pieces[1]).histograms("s") == []
    assert read(pieces).histograms("s") == [], "pieces alone are nothing yet"
    changed = Output(pieces[0].topic, pieces[0].key, b"other bytes")
    with pytest.raises(ResultsError, match="published twice with different values"):
        read([*cut, changed]).histograms("s")


def test_a_provisional_result_whose_pieces_are_half_replaced_is_not_read() -> None:
    before, after = (made(0, SMALL, seed) for seed in (1, 2))
    assert read([*before, *after]).live("s") is not None
    assert read([*before, after[0]]).live("s") is None


def test_wherever_publishing_ends_a_result_is_whole_or_not_there() -> None:
    """A worker may be killed after some pieces, and before what lists them."""
    cut = made(2, SMALL)
    seen = [{*shown(cut[:end])} for end in range(len(cut) + 1)]
    assert all(some <= seen[-1] for some in seen) and not seen[0] and len(seen[-1]) == 5
