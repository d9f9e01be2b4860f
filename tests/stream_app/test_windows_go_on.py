"""Windows are released once, and with the same numbers, whatever happens between their first and their last period."""

import json
import lzma
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from hearsay.library.answering import Fleet
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from stream_app.counting.counters import PeriodCounts
from stream_app.counting.partials import Part, Progress, encode_partial
from stream_app.finals import Final
from stream_app.log.flushes import FINALS, Output
from stream_app.merging.merger import Merger
from tests.helpers.one_device import NoNoise
from tests.helpers.published import finals_of
from tests.helpers.quarter_days import DAYS, PERIODS, RULES, came, new, partials, quarter_days, visitors
from tests.stream_app.crashes import Step, World, keep, merging

KEYRING = Keyring(bytes(16))
STATES = Path(__file__).parents[1] / "states" / "windows-of-0.2.json.xz"
"""The merge in the middle of a day, periods 0 and 1 of `quarter_days` closed, and period 2 counted in part.

Release 0.2.0 has written those by gaps, and the code just before windows were released those by the calendar.
"""
Partials = Sequence[Part | Progress]


def merged(scheme: Scheme, log: Partials, script: Sequence[Step], partitions: int = 1) -> dict[int, bytes]:
    """The finals of a log of partials; workers crash and resume as the script says."""
    survey = scheme.survey.id
    outputs = [Output("partials", survey.encode(), encode_partial(item)) for item in log]
    world = World(
        lambda records, _: merging(outputs, Merger(0, partitions, {survey: scheme}.get, KEYRING, records)),
        len(outputs),
    )
    world.run(script)
    found: dict[int, bytes] = {}
    for message in world.topics[FINALS]:
        period = int(message.key.decode().partition("/")[2])
        assert found.setdefault(period, message.value) == message.value, "published again with other bytes"
    return found


def scripts() -> Iterator[list[Step]]:
    """A restart after each partial; and crashes, pauses and late writes at random."""
    yield [("read", 1), ("flush", 0), ("crash", 0)] * 50
    chance = random.Random(5)
    actions = ["read", "read", "flush", "crash", "pause", "resume", "revert"]
    for _ in range(4):
        yield [(chance.choice(actions), chance.randint(0, 6)) for _ in range(60)]  # type: ignore[misc]


@pytest.mark.parametrize("rule", RULES)
def test_finals_do_not_depend_on_restarts_or_partitions(rule: str) -> None:
    scheme = quarter_days(rule)
    log = list(partials(scheme, 0, PERIODS - 1))
    expected = merged(scheme, log, [])
    assert sorted(expected) == list(range(PERIODS))
    for script in scripts():
        assert merged(scheme, log, script) == expected
    dealt = list(partials(scheme, 0, PERIODS - 1, partitions=2))
    assert merged(scheme, dealt, [("read", 2), ("flush", 0), ("crash", 0)] * 50, partitions=2) == expected


def went_on(rule: str) -> tuple[Scheme, dict[int, Final]]:
    """The finals of this release that follow on the state of the one before."""
    scheme = quarter_days(rule)
    state = json.loads(lzma.decompress(STATES.read_bytes()))[rule]
    store = {key.encode(): bytes.fromhex(value) for key, value in state.items()}
    merger = Merger(0, 1, {rule: scheme}.get, KEYRING, store.items())
    found: dict[int, Final] = {}
    for item in partials(scheme, 2, PERIODS - 1):
        merger.apply(merger.next_offset, encode_partial(item), 0, rule.encode())
        flush = merger.flush()
        for output in flush:
            if isinstance(output, Output) and output.topic == FINALS:
                final = Final.decode(output.value)
                found[final.period] = final
        keep(store, flush)
        merger = Merger(0, 1, {rule: scheme}.get, KEYRING, store.items())  # and each state of this release is read
    assert sorted(found) == list(range(2, PERIODS))
    return scheme, found


def test_exact_units_of_the_release_before_go_on() -> None:
    scheme, found = went_on("exact")
    expected = merged(scheme, list(partials(scheme, 0, PERIODS - 1)), [])
    assert {period: final.encode() for period, final in found.items()} == {t: expected[t] for t in found}


def test_units_under_a_minimum_go_on_and_their_numbers_are_exact() -> None:
    _, found = went_on("minimum")
    for first, last in DAYS[1:]:
        (day,) = (window for window in found[last].windows or () if window.kind == "day")
        assert (day.first, day.visitors) == (first, len(visitors(first, last)))
        (ever,) = (window for window in found[last].windows or () if window.kind == "ever")
        assert ever.visitors == len(visitors(0, last))
    (last_day,) = (window for window in found[8].windows or () if window.kind == "day")
    arrived = len(new(5, 8))
    assert last_day.new == (arrived if arrived >= 20 else None)


@pytest.mark.parametrize("rule", ["noise", "gaps-noise"])
def test_windows_with_noise_that_began_before_are_not_released(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scheme = quarter_days(rule)
    assert scheme.presence is not None
    noise = NoNoise(scheme.presence)
    monkeypatch.setattr("stream_app.merging.survey.Noise", noise)
    _, found = went_on(rule)
    windows = [(window.kind, window.first, final.period) for final in found.values() for window in final.windows or ()]
    assert [window for window in windows if window[0] != "period"] == [("day", 5, 8)]
    exact = {(number.series, number.window.first): value for number, value in noise.exact.items()}
    for period in range(2, PERIODS):
        assert exact["reports of period", period] == len(came(period))
    for first, last in DAYS[2:]:
        assert exact["visitors of day", first] == len(visitors(first, last))


def test_windows_by_gaps_that_began_before_have_numbers_since_the_upgrade_alone() -> None:
    _, found = went_on("gaps-minimum")
    windows = {(window.first, final.period): window for final in found.values() for window in final.windows or ()}
    assert min(first for first, _ in windows) == 2
    for (first, last), window in windows.items():
        if window.visitors is not None:
            assert window.visitors == len(visitors(first, last))


def test_a_replay_under_other_keys_of_the_fleet_releases_the_same_exact_windows() -> None:
    """Devices draw other tokens, questions and answers; who came is the same."""
    scheme = Scheme(
        parse_survey(
            "{id: s, start: 2026-01-05T18:00:00Z, period: 6h, eps: 1, minimum: 20, "
            "visitors: {units: [day, ever]}, attributes: [{name: a, values: [x, y]}, {name: b, values: [x, y]}]}"
        )
    )
    replays = [replayed(scheme, bytes([number] * 32)) for number in range(2)]
    heads = [[[window.head for window in final.windows or ()] for final in finals] for finals in replays]
    assert heads[0] == heads[1]
    tables = [[list(found.supports) for final in finals for found in final.counts.values()] for finals in replays]
    assert tables[0] != tables[1]


def replayed(scheme: Scheme, secret: bytes) -> list[Final]:
    fleet = Fleet(scheme.survey, 60, secret)
    counts = {}
    for period in range(PERIODS):
        there = np.array(sorted(came(period)))
        counter = PeriodCounts(scheme)
        values = {question.name: ["x"] * len(there) for question in scheme.questions}
        for frame in fleet.frames(period, values, there):
            counter.count(frame)
        counts[period] = counter.snapshot()
    return finals_of(scheme, counts)
