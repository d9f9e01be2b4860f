"""Tables of answers under `publish_from`: no combination of them is a table of fewer reports.

Every report has a value of its own, so a published table is the list of the reports in it.
"""

from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import Frame
from stream_app.counting.counters import Counts, PeriodCounts
from stream_app.finals import Final
from tests.helpers.flows import Seen, last_reports, random_days
from tests.helpers.published import finals_of

LEAST = 5
FACTORS = range(-2, 3)
Table = NDArray[np.int64]  # by report
KINDS = {
    "units": "period: 12h, visitors: {units: [day, ever]}",
    "gaps": "period: 12h, horizon: 4",
    "gaps of days": "period: 1d, horizon: 4",
}
PERIODS = 5


def scheme_of(kind: str, least: int, reports: int) -> Scheme:
    attribute = f"{{name: a, range: {{last: {reports - 1}}}, mechanism: grr}}"
    terms = f"start: 2026-01-05T00:00:00Z, {KINDS[kind]}, eps: 1, minimum: {least}"
    return Scheme(parse_survey(f"{{id: s, {terms}, attributes: [{attribute}]}}"))


def finals_of_collection(kind: str, least: int, seen: Seen) -> list[Final]:
    """The finals of a collection whose reports are numbered by their values."""
    scheme = scheme_of(kind, least, int(seen.sum()))
    before = last_reports(seen)
    counts: dict[int, Counts] = {}
    first = 0
    for period, there in enumerate(seen):
        numbers = np.arange(first, first + there.sum())
        first += len(numbers)
        visits = scheme.survey.visits.of(before[period][there], period)
        tokens = numbers.astype(np.uint64)
        counter = PeriodCounts(scheme)
        counter.count(Frame("s", scheme.fingerprint, period, tokens, visits, {"a": numbers.astype(np.uint8)}))
        counts[period] = counter.snapshot()
    return finals_of(scheme, counts)


def tables_of(finals: Iterable[Final]) -> Iterator[Table]:
    """Every table in finals, also those by gap or flags, and those of units."""
    for final in finals:
        for counts in final.counts.values():
            yield counts.supports
            yield from counts.N
        for unit in final.units.values():
            yield from unit.N.values()
        for window in final.windows or ():
            for tables in (window.visits, window.firsts):
                yield from (table.N for table in tables.values())


def fewest(tables: Iterable[Table]) -> int | None:
    """The fewest reports in a set that a combination of tables gives; None if there is no table."""
    distinct = sorted({tuple(table.tolist()) for table in tables if table.any()}, key=sum)
    base = np.array([table for table in distinct if not _is_sum_of_others(table, distinct)])
    if not len(base):
        return None
    factors = np.array(list(product(FACTORS, repeat=len(base))))
    combined = factors @ base
    is_set = ((combined == 0) | (combined == 1)).all(axis=1) & combined.any(axis=1)
    return int(combined[is_set].sum(axis=1).min())


def _is_sum_of_others(table: tuple[int, ...], tables: list[tuple[int, ...]]) -> bool:
    """Whether tables inside it, without common reports, add up to it: then it tells nothing more."""
    left = np.array(table)
    for other in sorted(tables, key=sum, reverse=True):
        if other != table and (left >= other).all():
            left = left - other
    return not left.any()


def collections(count: int) -> Iterator[Seen]:
    """Small crowds, with a period in which few come, or one person less than the day before."""
    random = np.random.default_rng(7)
    for number in range(count):
        seen = random_days(random, PERIODS, 12, 0.3, 0.95)
        if number % 3 == 0:
            seen[2] = seen[1]
            seen[2, np.flatnonzero(seen[2])[:1]] = False
        if number % 3 == 1:
            seen[1, 3:] = False
        yield seen


@pytest.mark.parametrize("kind", KINDS)
def test_no_combination_of_published_tables_has_fewer_reports(kind: str) -> None:
    published = 0
    for seen in collections(9):
        finals = finals_of_collection(kind, LEAST, seen)
        found = fewest(tables_of(finals))
        assert found is None or found >= LEAST
        published += found is not None
        enough = [period for period, there in enumerate(seen) if there.sum() >= LEAST]
        assert [final.period for final in finals if final.counts] == enough
    assert published > 6


@pytest.mark.parametrize("kind", KINDS)
def test_tables_by_gap_or_of_units_give_single_reports(kind: str) -> None:
    """The control: where everything is published, there are tables by gap or flags, and of first reports of units."""
    seen = np.ones((PERIODS, 8), dtype=bool)
    seen[0, 0] = False
    finals = finals_of_collection(kind, 0, seen)[:2]
    assert fewest(tables_of(finals)) == 1
    if kind == "units":
        totals = [final.counts["a"].supports for final in finals]
        first_of_day = finals[1].units["day"].N["a"]
        assert fewest(totals) == 7
        assert fewest([*totals, first_of_day]) == 1
