"""Every number in a final is a released one, which has noise, or a sum of them; nothing else depends on reports.

In place of numbers with noise there are codes, which do not depend on what is counted.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from analytics.windows import Window
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from stream_app.counting import Statistics
from stream_app.counting.counters import Counts
from stream_app.finals import published_guarantees
from stream_app.merging.survey import Frozen
from tests.helpers.one_device import ABSENT, Codes, Number, OneDevice, code, final_after, last_in, series_of
from tests.stream_app.test_presence_costs import CASES, Case
from views.local import collector
from views.view import all_views

KEY = b"the operator's own key"
METADATA = {"version", "survey", "fingerprint", "period", "by", "refused", "late", "guarantees", "windows"}
COLUMNS = ["question", "values", "gaps", "n", "supports", "widths"]
OF_A_WINDOW = {"kind", "first", "visitors", "new", "returning", "noises", "periods"}
Coded = Callable[[Case], tuple[Scheme, Codes]]


@pytest.fixture
def coded(monkeypatch: pytest.MonkeyPatch) -> Coded:
    def start(case: Case) -> tuple[Scheme, Codes]:
        scheme = case.scheme(monkeypatch)
        assert scheme.presence is not None
        codes = Codes(scheme.presence)
        monkeypatch.setattr("stream_app.merging.survey.Noise", codes)
        return scheme, codes

    return start


@pytest.mark.parametrize("name", CASES)
def test_a_final_is_made_of_released_numbers_and_of_nothing_else(name: str, coded: Coded) -> None:
    case = CASES[name]
    scheme, codes = coded(case)
    nobody = finals(scheme, case, [ABSENT] * case.periods, 0)
    for state in set(case.states) - {ABSENT}:
        assert finals(scheme, case, [state] * case.periods, 100) == nobody
    wanted = set[Number]()
    for period, value in enumerate(nobody):
        wanted |= Fields(scheme, period, nobody[:period]).check(value)
    assert wanted == codes.issued, "what has noise is published, and only that"


def finals(scheme: Scheme, case: Case, history: Sequence[str], many: int) -> list[bytes]:
    """The finals of many devices with one history; there are as many late and refused rows."""
    device = OneDevice(scheme, codes_of(scheme))
    before: Frozen | None = None
    made = []
    for period, state in enumerate(history):
        last = last_in([case.states.index(one) for one in history[:period]], case.states)
        counts = times(device.counts(period, last, state), many)
        late = {period - 1: many} if period and many else {}
        before = final_after(scheme, period, counts, before, refused=many, late=late)
        made.append(before.value)
    return made


def codes_of(scheme: Scheme) -> Codes:
    assert scheme.presence is not None
    return Codes(scheme.presence)


def times(counts: Counts, many: int) -> Counts:
    return {
        name: Statistics(found.gaps, many * found.n, many * found.N, many * found.widths)
        for name, found in counts.items()
    }


class Fields:
    """Walks over all fields of a final, and knows which number each must be. An unknown field is an error."""

    def __init__(self, scheme: Scheme, period: int, earlier: Sequence[bytes]) -> None:
        assert scheme.presence is not None
        self.scheme = scheme
        self.period = period
        self.earlier = earlier
        self.series = {str(series) for series in scheme.presence.costs}
        self.questions = {question.name: question for question in scheme.questions}
        self.wanted = set[Number]()

    def check(self, value: bytes) -> set[Number]:
        """The numbers with noise that a final has."""
        about, rows = read(value)
        survey = self.scheme.survey
        assert about.keys() == METADATA
        assert (about["survey"], about["fingerprint"]) == (survey.id, self.scheme.fingerprint)
        assert (about["version"], about["period"], about["by"]) == ("2", str(self.period), "gaps")
        assert (about["refused"], about["late"]) == ("0", "{}"), "they would show that somebody reported"
        assert about["guarantees"] == published_guarantees(self.scheme).model_dump_json()
        windows = json.loads(about["windows"])
        names = {name for name in rows if " " not in name}
        for name in names:
            self.check_table(rows.pop(name), "period", [self.period], name)
        for place, window in enumerate(windows):
            self.check_window(window)
            for what, periods in window["periods"].items():
                assert what in ("visits", "firsts")
                for name, many in periods.items():
                    row = rows.pop(f"{place} {what} {name}")
                    self.check_rows_of(window, what, name, many, row)
        assert not rows, "rows that belong to no window"
        return self.wanted

    def check_rows_of(self, window: dict, what: str, name: str, many: int, row: dict) -> None:
        if what == "firsts":
            assert many == 1
            self.check_table(row, window["kind"], [window["first"]], name)
            return
        periods = range(window["first"], self.period + 1)
        assert many == len(periods)
        self.check_table(row, "period", periods, name)

    def check_window(self, window: dict) -> None:
        """The numbers of devices of a window."""
        assert window.keys() <= OF_A_WINDOW
        kind = window["kind"]
        first = window["first"]
        assert window["noises"] == (len(self.largest_units(first)) if kind == "ever" else 1)
        if kind == "ever":
            assert window["visitors"] == sum(self.number(name) for name in self.largest_units(first))
            assert "new" not in window
            return
        at = Window(first, self.period)
        if "visitors" in window:
            assert window["visitors"] == self.number(Number(self.series_of_visitors(kind), at, 0))
        if "new" in window:
            new = self.number(Number(f"new of {kind}", at, 0))
            assert window["new"] == new
            assert window.get("returning", 0) == (window["visitors"] - new if "visitors" in window else 0)
        assert ("returning" in window) == ("visitors" in window and "new" in window)

    def largest_units(self, first: int) -> list[Number]:
        """The numbers of new devices whose sum are all who ever came."""
        assert first == 0
        assert self.scheme.presence is not None
        largest = self.scheme.presence.released.new[-1]
        found = []
        for period, value in enumerate([*self.earlier, None]):
            windows = [] if value is None else json.loads(read(value)[0]["windows"])
            found += [Window(each["first"], period) for each in windows if each["kind"] == largest]
        numbers = [Number(f"new of {largest}", window, 0) for window in found]
        own_first = self.first_of(largest)
        return [*numbers, Number(f"new of {largest}", Window(own_first, self.period), 0)]

    def first_of(self, unit: str) -> int:
        return self.period if unit == "period" else self.scheme.survey.visits.first(unit, self.period)  # type: ignore

    def series_of_visitors(self, kind: str) -> str:
        if kind == "period":
            return "reports of period"
        return f"visitors of {kind}" if f"visitors of {kind}" in self.series else f"rolling of {kind}"

    def check_table(self, row: dict, of: str, firsts: Iterable[int], name: str) -> None:
        """A table, or the sum of those that begin with these periods."""
        assert (row["gaps"], row["widths"]) == ([0], [])
        k = self.questions[name].k if name in self.questions else 0
        assert row["values"] == k
        n = 0
        supports = np.zeros(k, dtype=np.int64)
        for first in firsts:
            at = Window(first, first if of == "period" else self.period)
            n += self.answers(at, of, name)
            numbers = [Number(f"supports of {of}: {name}", at, place) for place in range(k)]
            supports += np.array([self.number(number) for number in numbers], dtype=np.int64)
        assert row["n"] == [n]
        assert row["supports"] == supports.tolist()

    def answers(self, at: Window, of: str, name: str) -> int:
        kinds = self.scheme.kinds
        if len(kinds) > 1:
            series = "answers of period" if of == "period" else f"visitors by question of {of}"
            return self.number(Number(series, at, kinds.index(name)))
        together = Number(self.series_of_visitors(of), at, 0)
        return self.number(together)

    def number(self, name: Number) -> int:
        assert series_of(name) in self.series, f"{name} has no cost"
        self.wanted.add(name)
        return code(name)


def read(value: bytes) -> tuple[dict[str, str], dict[str, dict]]:
    """The metadata of a final, and its rows by name."""
    with pa.ipc.open_stream(value) as stream:
        batch = stream.read_next_batch()
        about = {key.decode(): text.decode() for key, text in stream.schema.metadata.items()}
    assert batch.schema.names == COLUMNS
    rows = batch.to_pylist()
    return about, {row["question"]: row for row in rows}


COMMON = "{id: s, start: 2026-01-05T00:00:00Z, clock: source, presence_epsilon: 1, eps: 1"
PUBLISHED = {
    "gaps": f"{COMMON}, period: 1d, horizon: 3, attributes: [{{name: a, values: [x, y]}}]}}",
    "gaps, with days": f"{COMMON}, period: 12h, horizon: 3, attributes: [{{name: a, values: [x, y]}}]}}",
    "flags": (
        f"{COMMON}, period: 12h, one_in: 2, visitors: {{units: [day, ever]}}, "
        "attributes: [{name: a, values: [x, y]}, {name: b, values: [x, y]}]}"
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_without_the_noise_nothing_that_is_published_depends_on_any_report(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codes in place of numbers are the same, whoever reported, repeated, came late, was refused, or is open."""
    scheme = Scheme(parse_survey(PUBLISHED[name]))
    monkeypatch.setattr("stream_app.merging.survey.Noise", codes_of(scheme))
    nobody = published(tmp_path / "nobody", scheme, 0)
    somebody = published(tmp_path / "somebody", scheme, 40)
    assert nobody and nobody == somebody


def published(directory: Path, scheme: Scheme, devices: int) -> list[tuple[str, bytes, bytes]]:
    """Everything that is published of five periods, of which the last is open."""
    names = {topic.name for topic in all_views()}
    with collector(directory, [scheme.survey], KEY, KEY) as app:
        for period in range(5):
            some = frame(scheme, period, devices)
            if devices:
                late = frame(scheme, 0, devices)
                far = frame(scheme, 900, devices)
                forged = replace(some, gaps=np.full_like(some.gaps, 63))
                for sent in (some, some, late, far, forged):
                    app.send(0, FRAME, encode_frame(sent, scheme))
                app.send(0, FRAME, b"no frame")
                app.flush()
            if period < 4:
                app.send(0, CLOCK, encode_clock(Clock("s", period), KEY))
                app.flush()
        found = [message for _, message in app.store.after(0) if message.topic in names]
    return [(message.topic, message.key, message.value) for message in found]


def frame(scheme: Scheme, period: int, devices: int) -> Frame:
    """Reports of devices that come in each period, and answer the first question."""
    tokens = np.arange(1, devices + 1, dtype=np.uint64) + 1000 * period
    visits = scheme.survey.visits.of(np.full(devices, period - 1), period)
    answers = {"a": (np.arange(devices) % 2).astype(np.uint8)}
    return Frame("s", scheme.fingerprint, period, tokens, visits, answers)
