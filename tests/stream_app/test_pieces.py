"""Results and finals that are too large for one record are cut, and nobody sees half of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from stream_app.results import HISTOGRAMS, LIVE, MOBILITY
from stream_app.results.result_topics import is_piece

from protocols.errors import ResultsError, SurveyError
from protocols.randomness import Keyring
from protocols.survey import Survey
from stream_app.counting import Statistics
from stream_app.counting.counters import Counts, PeriodCounts
from stream_app.counting.partials import Part, Progress, encode_partial
from stream_app.counting.state import OpenPeriod
from stream_app.kafka.sizes import check_sizes, counter_bytes, survey_bytes
from stream_app.log.flushes import Flush, Output, Write
from stream_app.log.limits import VALUE_BYTES
from stream_app.merging.merger import Merger
from stream_app.merging.parts import HeldPart
from tests.helpers.published import Memory
from tests.helpers.surveys import of_size, scheme_with
from tests.stream_app.crashes import keep

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
KEYRING = Keyring(bytes(16))


def counts(seed: int, people: int = 2000) -> Counts:
    rng, gaps = np.random.default_rng(seed), np.arange(1, HORIZON + 1, dtype=np.uint16)
    n = np.full(HORIZON, people // HORIZON)
    supports = {q.name: rng.binomial(n[:, None], 0.3, (HORIZON, q.k)) for q in SCHEME.questions}
    widths = {q.name: np.arange(q.mechanism.encoding.widths) for q in SCHEME.questions}
    return {name: Statistics(gaps, n, N, widths[name]) for name, N in supports.items()}


def partials(periods: int) -> list[bytes]:
    """Everything of some periods in one partition, and a part of the next that is still open."""
    log: list[bytes] = []
    for period in range(periods):
        log.append(encode_partial(Part("s", period, 0, len(log), True, counts(period))))
        log.append(encode_partial(Progress("s", 0, len(log), period, {}, {})))
    return [*log, encode_partial(Part("s", periods, 0, len(log), False, counts(periods)))]


def merge(log: Sequence[bytes], limit: int, records: Iterable[tuple[bytes, bytes]] = ()) -> tuple[Merger, Flush]:
    merger = Merger(0, 1, {"s": SCHEME}.get, KEYRING, records, limit=limit)
    for offset in range(merger.next_offset, len(log)):
        merger.apply(offset, log[offset])
    return merger, merger.flush()


def shown(items: Iterable[Write | Output]) -> list[str]:
    """All that a reader finds."""
    results = Memory(items)
    return [found.model_dump_json() for topic in (HISTOGRAMS, MOBILITY, LIVE) for found in results.read(topic, "s")]


def test_a_result_in_pieces_is_read_as_the_same_result() -> None:
    log = partials(4)
    (_, whole), (_, cut) = merge(log, VALUE_BYTES), merge(log, SMALL)
    outputs = [item for item in cut if isinstance(item, Output)]
    assert not any(is_piece(item) for item in whole if isinstance(item, Output))
    assert sum(map(is_piece, outputs)) > 4 * 3, "finals of both kinds, and the provisional result"
    assert all(len(item.value) <= SMALL for item in outputs if is_piece(item))
    assert shown(cut) == shown(whole) and len(shown(whole)) == 9


def test_pieces_are_confirmed_before_results_and_frozen_before_both() -> None:
    _, flush = merge(partials(2), SMALL)
    state, manifests, pieces, results, *_ = flush.stages
    assert {item.key.split(b"/")[2] for item in state if isinstance(item, Write)} == {b"part", b"piece"}
    assert {item.key.split(b"/")[2] for item in manifests if isinstance(item, Write)} == {b"final"}
    assert pieces and all(isinstance(item, Output) and is_piece(item) for item in pieces)
    assert len(results) == 5 and not any(isinstance(item, Output) and is_piece(item) for item in results)


def test_whatever_was_written_before_a_crash_the_same_is_published_after_it() -> None:
    log = partials(2)
    _, flush = merge(log, SMALL)
    items = list(flush)
    expected = [item for item in items if isinstance(item, Output)]
    for written in range(len(items)):
        store: dict[bytes, bytes] = {}
        keep(store, items[:written])
        _, again = merge(log, SMALL, store.items())
        published = [item for item in (*items[:written], *again) if isinstance(item, Output)]
        assert set(published) == set(expected), f"after {written} of {len(items)} writes"
        assert shown(published) == shown(expected)


def test_pieces_of_a_closed_period_without_a_manifest_are_deleted_and_so_is_a_manifest_without_pieces() -> None:
    log, store = partials(6), dict[bytes, bytes]()
    merger = Merger(0, 1, {"s": SCHEME}.get, KEYRING, limit=SMALL)
    past: dict[bytes, bytes] = {}
    for offset, value in enumerate(log):
        merger.apply(offset, value)
        flush = merger.flush()
        past |= {item.key: item.value for item in flush if isinstance(item, Write) and item.value is not None}
        keep(store, flush)
    kept = {key for key in store if b"/final/" in key or b"/piece/" in key}
    assert {int(key.split(b"/")[4]) for key in kept} == {3, 4, 5}, "the horizon's, manifests and pieces"
    old = {key: value for key, value in past.items() if b"/s/0" in key and (b"/final/" in key or b"/piece/" in key)}
    pieces = sorted(key for key in old if b"/piece/" in key)
    manifest = b"merge/0/final/s/0"
    for left in (pieces, pieces[:1], [manifest], [manifest, *pieces[1:]]):
        late = store | {key: old[key] for key in left}
        _, flush = merge(log, SMALL, late.items())
        keep(late, flush)
        assert {key for key in late if b"/final/" in key or b"/piece/" in key} == kept


def test_pieces_of_an_open_period_stay_for_whoever_still_writes_their_manifest() -> None:
    log = partials(1)
    _, flush = merge(log, SMALL)
    store: dict[bytes, bytes] = {}
    keep(store, [item for item in flush.stages[0] if isinstance(item, Write) and b"/piece/" in item.key])
    recovered = Merger(0, 1, {"s": SCHEME}.get, KEYRING, store.items(), limit=SMALL)
    assert not [item for item in recovered.flush() if isinstance(item, Write) and item.value is None]


def test_repeated_pieces_are_read_once_and_a_result_that_lacks_one_is_not_there() -> None:
    _, flush = merge(partials(1), SMALL)
    outputs = [item for item in flush if isinstance(item, Output)]
    pieces = [item for item in outputs if is_piece(item) and item.topic == HISTOGRAMS.name]
    assert shown([*outputs, *outputs[:7], *reversed(outputs)]) == shown(outputs)
    assert Memory(item for item in outputs if item != pieces[1]).histograms("s") == []
    assert Memory(pieces).histograms("s") == [], "pieces alone are nothing yet"
    changed = Output(pieces[0].topic, pieces[0].key, b"other bytes")
    with pytest.raises(ResultsError, match="published twice with different values"):
        Memory([*outputs, changed]).histograms("s")


def test_a_provisional_result_whose_pieces_are_half_replaced_is_not_read() -> None:
    log = partials(0)
    (_, old), (_, new) = (
        merge([*log, encode_partial(Part("s", 0, 0, 5, False, counts(seed)))], SMALL) for seed in (1, 2)
    )
    before, after = ([item for item in flush if isinstance(item, Output)] for flush in (old, new))
    assert Memory([*before, *after]).live("s") is not None
    assert Memory([*before, after[0]]).live("s") is None


@pytest.mark.parametrize("terms", [(65_536, 7, 1), (20_000, 7, 3), (3, 365, 40)], ids=str)
def test_computed_sizes_are_those_of_the_largest_records(terms: tuple[int, int, int]) -> None:
    k, horizon, attributes = terms
    asked = [of_size(k, f"a{place}") for place in range(attributes)]
    scheme = scheme_with(*asked, id="s" * 20, eps=1, horizon=horizon)
    gaps, n = np.arange(1, horizon + 1, dtype=np.uint16), np.full(horizon, 1 << 62)
    widths = {q.name: np.full(q.mechanism.encoding.widths, 1 << 62) for q in scheme.questions}
    full = {q.name: Statistics(gaps, n, np.full((horizon, q.k), 1 << 62), widths[q.name]) for q in scheme.questions}
    late = dict.fromkeys(range(1 << 30, (1 << 30) + horizon), 1 << 62)
    period = OpenPeriod(scheme, PeriodCounts(scheme, full), offset=1 << 62, late=Counter(late))
    period.rejects.update({f"a reason that is long enough {place}": 1 << 62 for place in range(12)})
    part = HeldPart(1 << 62, Part("s" * 20, 1 << 31, 999, 1 << 62, True, full, late, 1 << 62))
    measured = max(len(period.encode()), len(part.encode()))
    assert measured <= counter_bytes(scheme.survey) < measured + 2048 + 128 * attributes
    assert survey_bytes(scheme.survey) == len(scheme.survey.model_dump_json().encode())
    check_sizes(scheme.survey)


@pytest.mark.long(part="memory")
def test_a_million_values_with_fresh_hashes_can_run_and_terms_that_no_device_reads_cannot() -> None:
    def sized(k: int, mechanism: str = "auto") -> Survey:
        attribute = {"name": "a", "range": {"last": k - 1}, "mechanism": mechanism}
        return scheme_with(attribute, eps=1).survey

    check_sizes(sized(1_000_000))
    assert counter_bytes(sized(1_000_000)) == 2048 + 128 + 1 + 32 + 18 + 8_000_000
    assert counter_bytes(sized(1000, "olh")) == 2048 + 128 + 1 + 32 + 18 + 4000 + (1 << 20)
    with pytest.raises(SurveyError, match=r"its terms take [\d,]+ bytes, and devices read at most 8,388,608"):
        names = [f"{chr(0x4E00 + place % 1000)}{place}" for place in range(700_000)]
        check_sizes(scheme_with({"name": "a", "values": names}, eps=1).survey, limit=1 << 30)


def test_a_survey_that_cannot_run_is_refused_by_its_size_and_told_what_would_fit() -> None:
    limit = 1 << 20

    def sized(k: int, horizon: int) -> None:
        asked = [of_size(k // 2, name) for name in "ab"]
        check_sizes(scheme_with(*asked, eps=1, horizon=horizon).survey, limit)

    with pytest.raises(SurveyError, match="up to 1,154,894 bytes, 8 for each value and gap, and") as refused:
        sized(12_000, 11)
    assert refused.value.hint == "use a horizon of at most 9, or at most 10,892 values in all"
    sized(12_000, 9)
    sized(10_892, 11)
    with pytest.raises(SurveyError, match="counters take") as refused:
        sized(2 * 65_536, 1)
    assert refused.value.hint == "use at most 65,387 values in all"
    sized(65_386, 1)
    with pytest.raises(SurveyError, match="attribute 'stay': its dwell times take 72,000,000 bytes") as refused:
        check_sizes(scheme_with(of_size(3000, "stay", role="dwell"), eps=1).survey)
    assert refused.value.hint.startswith("use at most 2,896 values")
    check_sizes(scheme_with(of_size(2896, "stay", role="dwell"), eps=1).survey)
    with pytest.raises(SurveyError, match=r"it takes [\d,]+ bytes, and a record at most 900"):
        check_sizes(scheme_with(of_size(200), eps=1).survey, limit=900)
    with pytest.raises(SurveyError, match="forecasts of 2,001 values and groups; at most 2,000"):
        check_sizes(scheme_with(of_size(2000), eps=1, forecast={"ahead": 1}).survey)
    check_sizes(scheme_with(of_size(1999), eps=1, forecast={"ahead": 1}).survey)
