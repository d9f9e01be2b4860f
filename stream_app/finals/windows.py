"""The windows of a survey: the merge adds up those that are open, and releases the numbers of each when it is over.

With `presence_epsilon` a number is released once, with noise. Exact numbers of open windows stay in the merge, and are
forgotten with the release. With `publish_from` numbers are exact, also of calendar units that are still open, and those
below it are left out; answers are those of all reports of a window, from the released tables of its periods.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from analytics.windows import (
    SINCE,
    Span,
    Table,
    Tables,
    UnitSums,
    Window,
    WindowNumbers,
    WindowSum,
    WindowSums,
    first_in,
    never_before,
    spans_of,
    standard_windows,
    triangle_windows,
)
from protocols.arrays import Whole
from protocols.privacy import ANSWERS, REPORTS, SUPPORTS, SeriesName
from protocols.scheme import Scheme
from protocols.survey import CalendarVisits, Unit
from stream_app.counting.counters import Counts, Statistics
from stream_app.finals.noise import Noise
from stream_app.finals.reducing import NotCounted

ALL = 0
"""In place of a gap or of flags: the counts of all of them together."""
EVER = ("released new devices", ALL)
"""The key of the sum of released numbers of new devices, which no span has."""


def sums_through(
    scheme: Scheme, period: int, counts: Counts, missing: NotCounted, before: WindowSums, since: int = 0
) -> dict[tuple[str, int], WindowSum]:
    """The sums of all windows that contain a period, from its counts and those `before` it.

    Sums begin with period `since`, if what came before it is not known: windows with noise that began earlier have
    none, and others have the numbers since then.
    """
    if scheme.survey.visitors is None and not scheme.survey.releases_windows:
        return {}  # windows are made from cells by gap, which finals have
    through = {}
    for span in spans_of(scheme.survey, period):
        key = span.series, span.first
        held = before.get(key)
        now = sum_of_period(scheme, span, period, counts, missing)
        if held is not None:
            through[key] = held.add(now)
        elif span.first >= since:
            through[key] = replace(now, first=span.first)
        elif scheme.survey.visitors is not None and scheme.presence is None:
            through[key] = replace(now, first=since)
    if EVER in before:
        through[EVER] = before[EVER]
    return through


def sum_of_period(scheme: Scheme, span: Span, period: int, counts: Counts, missing: NotCounted) -> WindowSum:
    """The first reports of a window in one period."""
    visits = scheme.visits
    n, new, N = dict[str, int](), dict[str, int](), dict[str, Whole]()
    for name, found in counts.items():
        rows = first_in(span, found.gaps, visits, period)
        n[name] = int(found.n[rows].sum())
        new[name] = int(found.n[never_before(found.gaps, visits)].sum())
        if _has_first_tables(scheme, span.series):
            N[name] = found.N[rows].sum(axis=0)
    late = 0
    refused = 0
    if scheme.presence is None:
        late = sum(rows for at, rows in missing.late.items() if at >= span.first)
        refused = missing.refused
    return WindowSum(period, n, new, N, late, refused)


def _has_first_tables(scheme: Scheme, series: str) -> bool:
    """Whether answers of the first report of each device are published of these windows."""
    if scheme.presence is not None:
        return series in scheme.survey.released.tables
    return scheme.survey.threshold == 0 and scheme.survey.central is None


def with_visits(sums: WindowSums, scheme: Scheme, period: int, released: Counts) -> dict[tuple[str, int], WindowSum]:
    """The sums, with the released tables of a period added to those of the windows that contain it."""
    tables = tables_of(released, scheme)
    answered = {(span.series, span.first) for span in spans_of(scheme.survey, period) if span.answered}
    only = WindowSum(period, visits=tables)
    return {key: found.add(only) if key in answered else found for key, found in sums.items()}


def tables_of(released: Counts, scheme: Scheme) -> Tables:
    """The released answers to each question in one period."""
    asked = [question.name for question in scheme.questions if question.name in released]
    return {name: Table(released[name].total, released[name].supports) for name in asked}


# Exact numbers.


def exact_windows(scheme: Scheme, period: int, counts: Counts, sums: WindowSums) -> tuple[WindowNumbers, ...]:
    """The windows that end with a period, or go on after it, where numbers from `publish_from` on are published."""
    alone = sum_of_period(scheme, Span(SINCE, period, period), period, counts, NotCounted())
    everybody = {name: found.total for name, found in counts.items()}
    found = [_exact(scheme, "period", replace(alone, n=everybody))]
    if isinstance(scheme.visits, CalendarVisits):
        found += _exact_units(scheme, scheme.visits, period, sums)
    else:
        found += _exact_runs(scheme, period, sums)
    return tuple(found)


def _exact_units(scheme: Scheme, visits: CalendarVisits, period: int, sums: WindowSums) -> Iterator[WindowNumbers]:
    for unit in visits.units:
        held = sums.get((unit, visits.first(unit, period)))
        if held is None:
            continue
        over = visits.last(unit, period) == period
        so_far = "ever" if unit == "ever" else f"{unit} so far"
        numbers = _exact(scheme, unit if over else so_far, held)
        yield numbers if over else replace(numbers, visits={})


def _exact_runs(scheme: Scheme, period: int, sums: WindowSums) -> Iterator[WindowNumbers]:
    """Hours, days, weeks, the days since the beginning, and the runs of the triangle."""
    survey = scheme.survey
    near = range(max(0, period - survey.horizon + 1), period + 1)
    standard = standard_windows(survey, near)
    runs = dict.fromkeys(triangle_windows(survey, near), "run")
    for window, kind in (runs | standard).items():
        held = sums.get((SINCE, window.first))
        if window.last == period and window.length > 1 and held is not None:
            numbers = _exact(scheme, kind, held)
            yield numbers if kind != "run" else replace(numbers, new=None, returning=None, late=None, visits={})


def _exact(scheme: Scheme, kind: str, held: WindowSum) -> WindowNumbers:
    """The numbers of a window, as far as they are not below `publish_from`."""
    least = scheme.survey.threshold
    visitors, new = held.devices(scheme.kinds), held.new_devices(scheme.kinds)
    returning = visitors - new
    parted = _knows_new(scheme) and min(new, returning) >= least
    return WindowNumbers(
        kind,
        held.first,
        visitors=visitors if visitors >= least else None,
        new=new if parted else None,
        returning=returning if parted else None,
        late=held.late - held.late % max(least, 1),
        visits=held.visits,
    )


def _knows_new(scheme: Scheme) -> bool:
    if scheme.survey.visitors is not None:
        return "ever" in scheme.survey.units
    return scheme.survey.horizon > 1


# Numbers with noise.


def noised_period(scheme: Scheme, period: int, counts: Counts, noise: Noise) -> Counts:
    """The tables of a period, as they are released: of all gaps or flags together."""
    if "period" not in noise.law.released.tables:
        return {}
    window = Window(period, period)
    exact = {name: (found.total, found.supports) for name, found in counts.items()}
    noised = _noised_tables(scheme, window, "period", exact, noise)
    gaps = np.array([ALL], dtype=np.uint16)
    found = {}
    for name, table in noised.items():
        found[name] = Statistics(gaps, np.array([table.n]), table.N[None])
    return found


def noised_windows(
    scheme: Scheme, period: int, counts: Counts, sums: WindowSums, noise: Noise
) -> tuple[tuple[WindowNumbers, ...], dict[tuple[str, int], WindowSum]]:
    """The windows that end with a period, and the sums of those that go on."""
    released = noise.law.released
    alone = sum_of_period(scheme, Span(SINCE, period, period), period, counts, NotCounted())
    reports = sum(counts[kind].total for kind in scheme.kinds)
    found = list[WindowNumbers]()
    if "period" in released.numbers:
        window = Window(period, period)
        visitors = _noised(noise, REPORTS, window, reports)
        found.append(_with_new(scheme, WindowNumbers("period", period, visitors), window, alone, noise))
    going_on = dict(sums)
    for span in spans_of(scheme.survey, period):
        if span.last == period:
            held = going_on.pop((span.series, span.first), None)
            if held is not None:
                found.append(_noised_window(scheme, span, held, noise))
    return _with_ever(scheme, tuple(found), going_on)


def _noised_window(scheme: Scheme, span: Span, held: WindowSum, noise: Noise) -> WindowNumbers:
    window = Window(span.first, span.last)
    series = SeriesName("visitors", span.series)
    if series not in noise.law.scales:
        series = SeriesName("rolling", span.series)
    visitors = None
    if series in noise.law.scales:
        visitors = _noised(noise, series, window, held.devices(scheme.kinds))
    numbers = WindowNumbers(span.series, span.first, visitors, visits=held.visits)
    if span.series in noise.law.released.tables:
        exact = {name: (held.n[name], found) for name, found in held.N.items()}
        numbers = replace(numbers, firsts=_noised_tables(scheme, window, span.series, exact, noise))
    return _with_new(scheme, numbers, window, held, noise)


def _with_new(scheme: Scheme, numbers: WindowNumbers, window: Window, held: WindowSum, noise: Noise) -> WindowNumbers:
    series = SeriesName("new", numbers.kind)
    if series not in noise.law.scales:
        return numbers
    new = _noised(noise, series, window, held.new_devices(scheme.kinds))
    returning = None if numbers.visitors is None else numbers.visitors - new
    return replace(numbers, new=new, returning=returning)


def _with_ever(
    scheme: Scheme, windows: tuple[WindowNumbers, ...], sums: dict[tuple[str, int], WindowSum]
) -> tuple[tuple[WindowNumbers, ...], dict[tuple[str, int], WindowSum]]:
    """All who ever came are the new devices of all units so far: computed from released numbers, with all their noises.

    They are known where the first of these units has been released.
    """
    released = scheme.survey.released
    largest = released.new[-1] if released.new and "ever" in scheme.survey.units else None
    for window in windows:
        if window.kind != largest or window.new is None:
            continue
        before = sums.get(EVER)
        if before is None and window.first > 0:
            continue
        now = WindowSum(ALL, n={"": window.new}, new={"": 1})
        through = now if before is None else before.add(now)
        sums[EVER] = through
        if window.first > 0:
            windows += (WindowNumbers("ever", 0, through.n[""], noises=through.new[""]),)
    return windows, sums


def _noised(noise: Noise, series: SeriesName, window: Window, exact: int) -> int:
    return int(noise.on(str(series), window, [exact], noise.law.scales[series])[0])


def _noised_tables(
    scheme: Scheme, window: Window, of: str, exact: Mapping[str, tuple[int, Whole]], noise: Noise
) -> dict[str, Table]:
    """The tables of a window, with noise; without supports those of reports that answer nothing.

    Where a report answers one question, each has a number of answers of its own; otherwise all have the same.
    """
    kinds = list(scheme.kinds)
    scale = noise.law.answers_scale(of)
    assert scale is not None, "tables are released only where numbers are: an exact number would tell presence"
    by_question = ANSWERS if of == "period" else SeriesName("visitors by question", of)
    together = REPORTS if of == "period" else SeriesName("visitors", of)
    series = by_question if len(kinds) > 1 else together
    n = noise.on(str(series), window, [exact[kind][0] for kind in kinds], scale).tolist()
    numbers = dict(zip(kinds, n, strict=True))
    found = {}
    for name, (_, supports) in exact.items():
        N: Whole = np.zeros(0, dtype=np.int64)
        if len(supports):
            own_series = f"{SUPPORTS.what} of {of}: {name}"
            N = noise.on(own_series, window, supports, noise.law.supports_scale(name, of))
        found[name] = Table(numbers.get(name, numbers[kinds[0]]), N)
    return found


def released_units(sums: WindowSums, scheme: Scheme, period: int) -> UnitSums:
    """The sums of calendar units that a final has where everything is published."""
    visits = scheme.visits
    if not isinstance(visits, CalendarVisits):
        return {}
    found: dict[Unit, WindowSum] = {}
    for unit in visits.units:
        held = sums.get((unit, visits.first(unit, period)))
        if held is not None:
            found[unit] = held
    return found
