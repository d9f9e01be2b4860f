"""A survey of places, collected: counts are those of the reports, and results the same however they were divided."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lab.seeded_keyrings import seeded_keyring
from protocols.respondent import Respondent
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from tests.helpers.surveys import of_size, scheme_with
from views.local import collector
from views.reading import Results
from views.results import Histogram

KEY = b"the operator's own key"
GRID = {"at": [47.0, 6.0], "cell": "500m", "columns": 9, "rows": 7}
SCHEME = scheme_with(
    {
        "name": "place",
        "role": "area",
        "grid": GRID,
        "geo_inf": {"level": 2.2, "radius": "400m"},
        "geo": {"level": 1.1, "radius": "400m"},
        "groups": {"west": ["x0y0", "x1y0", "x0y1"]},
    },
    of_size(3, "b"),
    eps_inf=2,
    eps_1=1,
    clock="source",
    horizon=2,
    minimum=5,
    forecast={"ahead": 1},
)


def reports(period: int) -> list[Frame]:
    """Frames of 600 devices, one for each question that is answered."""
    respondent, devices = Respondent(SCHEME, seeded_keyring(5)), np.arange(600, dtype=np.uint64)
    values = {"place": (devices.astype(np.int64) * 7 + period) % 63, "b": devices.astype(np.int64) % 3}
    frames = []
    for questions, rows in respondent.asked(devices, period):
        answers = {
            q.name: respondent.answers(q, devices[rows], period, values[q.name][rows].astype(np.int64))
            for q in questions
        }
        gaps = np.full(len(rows), 1 if period else 2, dtype=np.uint16)
        tokens = respondent.tokens(devices[rows], period)
        frames.append(Frame(SCHEME.survey.id, SCHEME.fingerprint, period, tokens, gaps, answers))
    return frames


def collected(directory: Path, partitions: int) -> list[Histogram]:
    with collector(directory, [SCHEME.survey], KEY, KEY, partitions=partitions) as app:
        for period in (0, 1):
            for frame in reports(period):
                for partition in range(partitions):
                    mine = frame.tokens % np.uint64(partitions) == partition
                    answers = {name: column[mine] for name, column in frame.answers.items()}
                    part = Frame(frame.survey, frame.fingerprint, period, frame.tokens[mine], frame.gaps[mine], answers)
                    app.send(partition, FRAME, encode_frame(part.sorted(), SCHEME))
            for partition in range(partitions):
                app.send(partition, CLOCK, encode_clock(Clock(SCHEME.survey.id, period), KEY))
        app.flush()
        return list(Results(app.store).histograms(SCHEME.survey.id))


pytestmark = pytest.mark.xdist_group("places")  # they share what was collected, which takes seconds


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> list[Histogram]:
    """The finals of both periods, collected in one partition."""
    return collected(tmp_path_factory.mktemp("one"), 1)


@pytest.mark.long(part="statistics")
def test_counts_are_a_recount_and_bytes_do_not_depend_on_partitions(one: list[Histogram], tmp_path: Path) -> None:
    three = collected(tmp_path, 3)
    assert [final.model_dump_json() for final in one] == [final.model_dump_json() for final in three]
    assert [final.period for final in one] == [0, 1]
    for final in one:
        (sent,) = (frame.answers["place"] for frame in reports(final.period) if "place" in frame.answers)
        place = final.attribute("place")
        assert place.statistics is not None and place.statistics.supports is not None
        assert place.statistics.supports.sum(axis=0).tolist() == np.bincount(sent, minlength=63).tolist()
        assert place.estimate is not None and place.low is not None and place.high is not None
        assert place.estimate.sum() == pytest.approx(1, abs=1e-3)
        assert ((place.low <= place.estimate) & (place.estimate <= place.high)).all()


@pytest.mark.long(part="statistics")
def test_results_say_in_metres_what_they_reveal(one: list[Histogram]) -> None:
    (_, near, *_, far) = one[0].guarantees.places["place"]
    assert (near.metres, near.per_report, near.for_ever) == (400, pytest.approx(1.1), pytest.approx(2.2))
    assert near.protected and far.per_report > 3 * near.per_report
