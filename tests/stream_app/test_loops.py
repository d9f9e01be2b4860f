"""numpy's loops and the compiled ones: the same numbers, the same bytes."""

import random
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from protocols.arrays import compiled_loops, loops, numpy_loops
from protocols.randomness import Keyring
from stream_app.counting import count_with_compiled_loops
from stream_app.counting.open_periods import Saving
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.counting.tables.gap_rows import look_up
from stream_app.counting.tables.sorted_tokens import SortedTokens
from stream_app.counting.tables.token_table import TokenTable
from stream_app.counting.tables.tokens import token_set
from stream_app.log.flushes import Output, Write
from stream_app.merging.merger import Merger
from tests.stream_app.crashes import keep, outputs
from tests.stream_app.worlds import HORIZON, KEY, SURVEYS, Event, Garbage, Reports, Row, Tick, log_of

EVERYTHING_AT_ONCE = Saving(repaid=0)


@pytest.fixture
def _numpy_afterwards() -> Iterator[None]:
    """Other tests of this process count as a run does."""
    yield
    loops._compiled = False


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_counted_alike(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    rows, size, k = int(drawn.integers(0, 3000)), int(drawn.integers(1, 40)), int(drawn.integers(2, 300))
    groups = drawn.integers(0, size, rows).astype(np.int32)
    symbols = drawn.integers(0, k, rows).astype(np.uint16)
    packed = drawn.integers(0, 256, (rows, -(-k // 8)), dtype=np.uint8)
    some = np.zeros((2, size, k), dtype=np.int64)
    ones = np.zeros((2, size, 8 * packed.shape[1]), dtype=np.int64)
    for place, module in enumerate((numpy_loops, compiled_loops)):
        assert module.tally(symbols, groups, some[place])
        assert module.add_bits(packed, groups, ones[place])
    assert some[0].sum() == rows and ones[0].sum() == np.unpackbits(packed).sum()
    assert np.array_equal(*some) and np.array_equal(*ones)


@pytest.mark.parametrize("module", [numpy_loops, compiled_loops])
def test_what_is_out_of_range_is_refused_by_both(module: ModuleType) -> None:
    counts = np.zeros((2, 8), dtype=np.int64)
    for symbols, groups in (([8], [0]), ([-1], [0]), ([0], [2]), ([0], [-1])):
        assert not module.tally(np.array(symbols), np.array(groups), counts)
    assert not module.tally(np.array([2**63], dtype=np.uint64), np.array([0]), counts)
    for group in (2, -1):
        assert not module.add_bits(np.ones((1, 1), dtype=np.uint8), np.array([group]), counts)


@pytest.mark.parametrize("make", [SortedTokens, TokenTable])
@pytest.mark.parametrize(("most", "batches"), [(1, 300), (40, 120), (5000, 12)])
def test_both_sets_of_tokens_are_pythons(make: type[SortedTokens] | type[TokenTable], most: int, batches: int) -> None:
    drawn, held, known = np.random.default_rng(most), make(), set[int]()
    for _ in range(batches):
        tokens = drawn.integers(1, 4 * most, int(drawn.integers(0, most + 1))).astype(np.uint64)
        if drawn.random() < 0.5:
            tokens.sort()
        held.reserve(len(tokens))
        assert held.insert(tokens).tolist() == expected(tokens.tolist(), known)
        assert len(held) == len(known)


def expected(tokens: list[int], known: set[int]) -> list[bool]:
    """Which tokens are new, one by one."""
    new = []
    for token in tokens:
        new.append(token not in known)
        known.add(token)
    return new


def test_gaps_are_looked_up_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.random.default_rng(5)
    rows_of = np.array([-1, 0, 2, 1, -1], dtype=np.int32)
    found = []
    for compiled in (False, True):
        monkeypatch.setattr(loops, "_compiled", compiled)
        gaps = drawn.integers(1, 4, 500).astype(np.uint16)
        rows, n = np.empty(500, dtype=np.int32), np.zeros(3, dtype=np.int64)
        assert look_up(gaps, rows_of, rows, n)
        assert rows.tolist() == rows_of[gaps].tolist() and n.tolist() == np.bincount(rows).tolist()
        found.append(look_up(np.array([1, 4], dtype=np.uint16), rows_of, rows[:2], n))
    assert found == [False, False], "a gap without a row"


@pytest.mark.usefixtures("_numpy_afterwards")
@pytest.mark.parametrize("seed", range(6))
def test_a_log_gives_the_same_records_partials_and_finals_byte_for_byte(seed: int) -> None:
    events = drawn_events(random.Random(seed))
    by_numpy = written(events, seed)
    assert isinstance(token_set(), SortedTokens)
    count_with_compiled_loops()
    assert isinstance(token_set(), TokenTable)
    assert written(events, seed) == by_numpy
    assert {b"tokens", b"counter"} <= {key.split(b"/")[2] for key, _ in by_numpy[0] if key.startswith(b"count/")}


def drawn_events(chance: random.Random) -> list[Event]:
    """Frames of up to 300 rows with repeats and bad gaps, of periods that are open, late or too far ahead."""
    events: list[Event] = []
    through = -1
    for _ in range(40):
        kind = chance.random()
        if kind < 0.15:
            through += 1
            events.append(Tick(through))
        elif kind < 0.2:
            events.append(Garbage(b"?"))
        else:
            rows = tuple(drawn_row(chance) for _ in range(chance.choice([1, 3, 300])))
            events.append(Reports(through + chance.choice([0, 1, 1, 2]), rows))
    return events


def drawn_row(chance: random.Random) -> Row:
    token = chance.randint(1, 2000)
    gap = chance.randint(0, HORIZON + 1)
    return Row(token, gap, chance.randint(0, 3), chance.randint(0, 1100))


Written = list[tuple[bytes, bytes]]


def written(events: list[Event], seed: int) -> tuple[Written, Written]:
    """What a counter writes that is started anew in the middle: its state, and what the merge makes of its partials."""
    store: dict[bytes, bytes] = {}
    states: Written = []
    sent: list[Output] = []
    log = log_of(events)
    middle = random.Random(seed).randrange(len(log))
    for end in (middle, len(log)):
        counter = PartitionCounter(0, 1, SURVEYS.get, KEY, list(store.items()), saving=EVERYTHING_AT_ONCE)
        for record in log[counter.next_offset : end]:
            counter.apply_all([record])
            flushed: list[Write | Output] = list(counter.flush())
            keep(store, flushed)
            states += [(item.key, item.value or b"") for item in flushed if isinstance(item, Write)]
            sent += outputs(flushed, "partials")
    merger = Merger(0, 1, SURVEYS.get, Keyring(bytes(16)), [])
    for offset, partial in enumerate(sent):
        merger.apply(offset, partial.value)
    finals = [(item.key, item.value) for item in merger.flush(everything=True) if isinstance(item, Output)]
    return [*states, *((output.key, output.value) for output in sent)], finals
