"""Counting where presence has noise: late rows, reports that support too many values, and what metrics show."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from protocols.scheme import Scheme
from protocols.wire import ROW_REASONS, row_faults
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.faust_app.monitoring import PartitionState, StateCollector
from stream_app.log.marks import Loss
from tests.helpers.collecting import collecting, small_survey
from tests.helpers.crowd import scheme_of
from tests.helpers.frames import random_frame
from tests.stream_app.faust_app.test_agents import REPORTS, Partition, records
from tests.stream_app.worlds import SCHEME, Reports, Row, scheme

NOISED = scheme("presence_epsilon: 1,")


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
