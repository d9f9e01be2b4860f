"""Counting where presence has noise: late rows, reports that support too many values, and what metrics show."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from protocols.scheme import Scheme
from protocols.wire import ROW_REASONS, row_faults
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.faust_app.monitoring import PartitionState, StateCollector
from stream_app.log.marks import Loss
from tests.helpers.collecting import collecting, small_survey
from tests.helpers.crowd import scheme_of
from tests.helpers.frames import random_frame
from tests.stream_app.crashes import Step, World, counting, parts, scripts
from tests.stream_app.faust_app.test_agents import REPORTS, Partition, records
from tests.stream_app.test_exactness import logs
from tests.stream_app.worlds import HORIZON, KEY, SCHEME, Event, Reports, Row, Tick, scheme, wire

NOISED = scheme("presence_epsilon: 1,")


def late_rows(events: Sequence[Event]) -> Counter[int]:
    """By the period that was the next to close: rows of closed periods that windows could still reach."""
    through, late = -1, Counter[int]()
    for event in events:
        if isinstance(event, Tick):
            through = max(through, event.through)
        elif isinstance(event, Reports) and through - HORIZON < event.period <= through:
            late[through + 1] += len(event.rows)
    return Counter({period: rows for period, rows in late.items() if period <= through})


@settings(max_examples=80, deadline=None)
@given(logs, scripts)
def test_whatever_happens_to_its_workers_late_rows_belong_to_the_next_period_to_close(
    events: list[Event], script: list[Step]
) -> None:
    log = [Record(offset, *wire(event, NOISED)) for offset, event in enumerate(events)]
    world = World(lambda records: counting(log, PartitionCounter(0, 1, {"s": NOISED}.get, KEY, records)), len(log))
    world.run(script)
    sent = reversed(parts(world.topics["partials"]))
    closed = {part.period: sum(part.late.values()) for part in sent if part.closed}
    assert Counter({period: late for period, late in closed.items() if late}) == late_rows(events)


def test_parts_have_late_rows_by_period_and_refused_rows_without_repeats() -> None:
    counter = PartitionCounter(0, 1, {"s": SCHEME}.get, KEY)
    refused = Reports(1, (Row(3), Row(3), Row(4, gap=9)))
    for offset, event in enumerate((Reports(0, (Row(1),)), Tick(0), Reports(0, (Row(2),)), refused, Tick(1))):
        counter.apply(Record(offset, *wire(event)))
    found = [(part.period, part.late, part.refused) for part in parts(counter.flush())]
    assert found == [(0, {}, 0), (1, {0: 1}, 1)]


WIDE = "{name: a, range: {last: 99}, mechanism: oue}"


@pytest.mark.parametrize(
    ("survey", "most"),
    [
        (scheme_of(WIDE, "eps: 1, presence_epsilon: 1"), 71),
        (scheme_of(WIDE + ", {name: b, values: [x, y], mechanism: grr}", "eps: 1, presence_epsilon: 1"), 71),
        (
            scheme_of(WIDE + ", " + WIDE.replace("name: a", "name: b"), "eps: 2, presence_epsilon: 1, solution: spl"),
            115,
        ),
    ],
    ids=["alone", "one of two", "both"],
)
def test_a_report_that_supports_more_values_than_the_noise_covers_is_refused(survey: Scheme, most: int) -> None:
    """Of a report that answers both attributes, their bits count together."""
    assert survey.presence is not None and survey.presence.largest["a"] == most
    frame = random_frame(survey, 2)
    asked = ["a"] if survey.discloses else list(frame.answers)
    share, bits = divmod(most, len(asked))

    def answering(*numbers: int) -> list[str | None]:
        columns = {
            name: np.packbits(np.arange(104) < number, bitorder="little")[None, :].repeat(2, axis=0)
            for name, number in zip(asked, numbers, strict=True)
        }
        changed = replace(frame, answers=columns)
        codes = row_faults(changed, survey, 0, 1)
        return [None if code == 0 else ROW_REASONS[code - 1] for code in codes]

    fine = [share + bits, *[share] * (len(asked) - 1)]
    assert answering(*fine) == [None, None]
    assert answering(fine[0] + 1, *fine[1:]) == ["too-many-bits"] * 2


@pytest.mark.parametrize(("survey", "shown"), [(SCHEME, True), (NOISED, False)], ids=["exact", "noised"])
def test_metrics_count_no_reports_of_a_survey_with_noise_on_presence(
    survey: Scheme, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = Partition()
    partition.registry.published.append(survey)
    partition.receive(records(Reports(0, (Row(1), Row(5))), of=survey))
    assert partition.outcomes[survey.survey.id, "counted"] == (2 if shown else 0)
    assert partition.is_private is not shown, "the flush is timed, or not"
    monkeypatch.setattr(PartitionCounter, "lost", {"s": (Loss(0, 0, 7),)})
    state = PartitionState(REPORTS, partition.counter, 0, None, False)
    families = StateCollector(lambda: [state], {"s": survey}.get).collect()
    samples = [sample for family in families for sample in family.samples if sample.labels.get("survey") == "s"]
    assert bool([sample for sample in samples if sample.name in ("hearsay_tokens", "hearsay_open_periods")]) is shown
    (lost,) = (sample.value for sample in samples if sample.name == "hearsay_lost_reports")
    assert lost == (7 if shown else 1)


def test_how_often_reports_come_late_changes_nothing_that_is_published(tmp_path: Path) -> None:
    """The noise covers one report of a device. Late ones may come any number of times, also after they were counted."""
    finals = []
    for repeats in (0, 1, 50):
        of = small_survey(extra="presence_epsilon: 1,")
        with collecting(tmp_path / str(repeats), of) as (collection,):
            collection.report(0, [30, 20, 10])
            collection.close(0)
            collection.report(1, [30, 20, 10])
            for _ in range(repeats):
                collection.report(0, [1, 0, 0])
            collection.close(1)
            finals.append([(message.key, message.value) for _, message in collection.published()])
    assert finals[0] and finals[0] == finals[1] == finals[2]
