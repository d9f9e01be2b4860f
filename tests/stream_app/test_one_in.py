"""A survey whose devices take turns, from wire bytes to what is published."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hearsay.library.answering import Fleet
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import CLOCK, FRAME, REPORT, Clock, encode_clock, encode_frame
from tests.helpers import wire_page
from tests.helpers.frames import asked, encode_report
from views.local import collector
from views.reading import Results
from views.results import HISTOGRAMS, MOBILITY, Histogram

KEY, SECRET = bytes(32), bytes(range(32))
K = 4
Record = tuple[int, str, bytes]


def scheme_of(solution: str = "smp", more: str = "") -> Scheme:
    """Quarters of a day; a day is the longest window."""
    return Scheme(
        parse_survey(f"""
            {{id: s, start: 2026-01-05T00:00:00Z, period: 6h, horizon: 4, clock: source, eps: 2, one_in: 3,
              solution: {solution},
              attributes: [{{name: area, range: {{last: {K - 1}}}, mechanism: grr}}{more}]}}""")
    )


class Town:
    """People who come more or less often, and whose values depend on that and change all the time.

    So those who answer somewhere in a window differ from those who are in it, and from its first reports.
    """

    def __init__(self, people: int, periods: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        often = random.random(people)
        self.there = random.random((periods, people)) < 0.1 + 0.8 * often**2
        stays = random.random((periods, people)) < 0.2 + 0.7 * often
        self.values = np.where(stays, 0, random.integers(1, K, (periods, people)))
        self.periods = periods

    def present(self, period: int) -> NDArray[np.intp]:
        return np.flatnonzero(self.there[period])

    def first_values(self, first: int, last: int) -> dict[int, int]:
        """The first value in a window of everybody in it, by looking."""
        found: dict[int, int] = {}
        for period in range(first, last + 1):
            for person in self.present(period):
                found.setdefault(int(person), int(self.values[period, person]))
        return found


def records(scheme: Scheme, town: Town, secret: bytes = SECRET) -> Iterator[list[Record]]:
    """What the devices of the town send in each period, then the clock record. Some send single reports."""
    fleet = Fleet(scheme.survey, town.there.shape[1], secret)
    for period in range(town.periods):
        there = town.present(period)
        values = {q.name: [q.attribute.values[v % q.k] for v in town.values[period, there]] for q in scheme.questions}
        sent: list[Record] = []
        for frame in fleet.frames(period, values, there):
            sent.append((0, FRAME, encode_frame(frame, scheme)))
            sent += [(0, REPORT, encode_report(frame.take(slice(row, row + 1)), scheme)) for row in (0, len(frame) - 1)]
        yield [*sent, (0, CLOCK, encode_clock(Clock("s", period), KEY))]


def recount(scheme: Scheme, sent: list[Record]) -> dict[int, Counter[tuple[object, ...]]]:
    """Counts by period from the bytes alone: how many reports of each kind have each gap, and what they name."""
    found: dict[int, Counter[tuple[object, ...]]] = defaultdict(Counter)
    seen: set[tuple[int, int]] = set()
    for _, kind, value in sent:
        rows = wire_page.read(kind, value, asked(scheme), KEY)
        for row in rows if isinstance(rows, list) else []:
            if (row.period, row.token) in seen:
                continue
            seen.add((row.period, row.token))
            if not row.answers:
                found[row.period]["presence only", row.gap] += 1
            for name, answer in row.answers.items():
                found[row.period][name, row.gap, "n"] += 1
                for supported in [answer] if isinstance(answer, int) else answer:
                    found[row.period][name, row.gap, supported] += 1
    return found


def published(final: Histogram) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    assert final.presence_only is not None and final.presence_only.supports is None
    for gap, n in zip(final.presence_only.gaps, final.presence_only.n, strict=True):
        found["presence only", gap] = n
    for attribute in final.attributes:
        counts = attribute.statistics
        assert counts is not None and counts.supports is not None
        for gap, n, supports in zip(counts.gaps, counts.n, counts.supports, strict=True):
            found[attribute.name, gap, "n"] = n
            for value, support in enumerate(supports):
                found[attribute.name, gap, value] = support
    return +found


@pytest.mark.parametrize("solution", ["smp", "spl", "rs+fd"])
def test_what_is_published_is_a_recount_of_the_bytes(solution: str, tmp_path: Path) -> None:
    page = "oue-r" if solution == "rs+fd" else "oue"
    scheme = scheme_of(solution, f", {{name: page, range: {{last: 11}}, mechanism: {page}}}")
    town = Town(300, 6, seed=1)
    by_period = list(records(scheme, town))
    sent = [record for period in by_period for record in period]
    for some in (by_period[:2], by_period[2:4], by_period[4:]):  # a new process takes over in the middle of two periods
        with collector(tmp_path, [scheme.survey], KEY, KEY) as app:
            for record in (record for period in some for record in period[:-1]):
                app.send(*record)
            app.flush()
        with collector(tmp_path, [scheme.survey], KEY, KEY) as app:
            for period in some:
                app.send(*period[-1])
            app.flush()
            finals, reports = list(Results(app.store).histograms("s")), list(Results(app.store).read(MOBILITY, "s"))
    expected = recount(scheme, sent)
    assert {final.period: published(final) for final in finals} == expected
    people = Respondent(scheme, Keyring(SECRET))
    for final, report in zip(finals, reports, strict=True):
        assert final.n == len(town.present(final.period))
        assert any("one in 3 devices answers" in note for note in report.notes)
        assert final.guarantees.per_window is not None
        assert final.guarantees.per_window.whole == pytest.approx(scheme.guarantees.per_report.whole)
        for window in report.windows:
            visitors = town.first_values(window.first, window.last)
            assert window.visitors is not None and window.visitors.value == len(visitors)
            answered = 0
            for period in range(window.first, window.last + 1):
                new = [p for p in town.present(period) if not town.there[window.first : period, p].any()]
                answered += int(people.answering(np.array(new, dtype=np.uint64), period).sum())
            counted = [attribute.n for attribute in window.attributes]
            assert None not in counted
            assert (sum(counted) if solution == "smp" else counted[0]) == answered  # type: ignore[arg-type]


@pytest.mark.parametrize("solution", ["one attribute", pytest.param("smp", marks=pytest.mark.long(part="statistics"))])
def test_published_shares_are_unbiased_and_their_intervals_hold_95_percent(solution: str, tmp_path: Path) -> None:
    scheme = scheme_of(more=", {name: plan, values: [free, paid]}" if solution == "smp" else "")
    town = Town(1500, 160, seed=2)
    with collector(tmp_path, [scheme.survey], KEY, KEY) as app:
        for period in records(scheme, town):
            for record in period:
                if record[1] != REPORT:
                    app.send(*record)
        app.flush()
        reports = list(Results(app.store).read(MOBILITY, "s"))
        finals = list(Results(app.store).read(HISTOGRAMS, "s"))
    windows = {(w.first, w.last): w for report in reports for w in report.windows}
    errors: dict[int, list[NDArray[np.float64]]] = defaultdict(list)
    held: dict[int, list[NDArray[np.bool_]]] = defaultdict(list)
    naive = []
    for (first, last), window in windows.items():
        shares = window.attribute("area").values
        truth = np.bincount(list(town.first_values(first, last).values()), minlength=K)
        truth = truth / truth.sum()
        assert shares is not None
        value, low, high = shares.share.value, shares.share.low, shares.share.high
        errors[last - first].append(value - truth)
        held[last - first].append((low <= truth) & (truth <= high))
        if first < last:
            everybody = np.bincount(town.values[first : last + 1][town.there[first : last + 1]], minlength=K)
            naive.append(everybody / everybody.sum() - truth)
        else:
            assert finals[first].attribute("area").estimate == pytest.approx(value)
    assert {length: len(errors[length]) for length in (0, 3)} == {0: 160, 3: 40}
    for length in (0, 3):
        wrong = np.array(errors[length])
        standard = wrong.std(axis=0) / len(wrong) ** 0.5
        assert (np.abs(wrong.mean(axis=0)) < 4 * standard).all(), "biased"
        assert np.mean(held[length]) == pytest.approx(0.95, abs=0.03)
        if (
            length
        ):  # with all answers of the window in place of its first reports, those who come often would weigh more
            assert np.abs(np.mean(naive, axis=0)[0]) > 5 * standard[0]
