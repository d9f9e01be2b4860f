"""The sums of calendar units, which grow with every final, and what of them a final has.

The merge keeps them beside the final of the last period: with a `minimum`, a final has only those of units that are
over, and not all of these.
"""

from dataclasses import replace

from analytics.windows import UnitSum, UnitSums, flagged
from protocols.scheme import Scheme
from protocols.survey import CalendarVisits, Unit
from stream_app.counting.counters import Counts
from stream_app.finals.noise import Release
from stream_app.finals.reducing import NotCounted


def sums_through(
    scheme: Scheme,
    period: int,
    counts: Counts | Release,
    released: Counts | Release,
    missing: NotCounted,
    before: UnitSums,
    since: int = 0,
) -> dict[Unit, UnitSum]:
    """The sums through a period, from its counts and those `before` it; none if the survey counts by gaps.

    `released` is what the final has of the counts. Sums begin with period `since`, if what came before it is not known.
    """
    visits = scheme.visits
    if not isinstance(visits, CalendarVisits):
        return {}
    shown = {} if isinstance(released, Release) else {name: found.total for name, found in released.items()}
    through = {}
    for unit, now in sums_of_period(visits, period, counts).items():
        first, held = max(visits.first(unit, period), since), before.get(unit)
        if not isinstance(released, Release):  # what is not counted has no noise, and is not published
            late = sum(rows for at, rows in missing.late.items() if at >= first)
            now = replace(now, visits=shown, most=shown, late=late, refused=missing.refused)
        through[unit] = held.add(now) if held and held.first >= first else replace(now, first=first)
    return through


def sums_of_period(visits: CalendarVisits, period: int, counts: Counts | Release) -> dict[Unit, UnitSum]:
    """The first reports of each unit in one period."""
    return {unit: _sum_of_period(unit, period, counts) for unit in visits.units}


def _sum_of_period(unit: Unit, period: int, counts: Counts | Release) -> UnitSum:
    """The first reports of a unit in one period; of counts with noise no supports, but the agreed numbers."""
    if not isinstance(counts, Release):
        rows = {name: flagged(found.gaps, unit) for name, found in counts.items()}
        return UnitSum(
            period,
            n={name: int(found.n[rows[name]].sum()) for name, found in counts.items()},
            new={name: int(found.n[flagged(found.gaps, "ever")].sum()) for name, found in counts.items()},
            N={name: found.N[rows[name]].sum(axis=0) for name, found in counts.items()},
        )
    first, new, agreed = flagged(counts.axis, unit), flagged(counts.axis, "ever"), counts.agreed.cells
    return UnitSum(
        period,
        n={name: int(found[first].sum()) for name, found in counts.n.items()},
        new={name: int(found[new].sum()) for name, found in counts.n.items()},
        cells=(len(first), len(new)),
        agreed=(int(agreed[first].sum()), int(agreed[new].sum())),
    )


def published_sums(sums: UnitSums, scheme: Scheme, period: int) -> dict[Unit, UnitSum]:
    """What the final of a period has of the sums through it; with `central` no supports, which tell flags apart."""
    survey, visits = scheme.survey, scheme.visits
    if survey.central is not None:
        sums = {unit: replace(found, N={}) for unit, found in sums.items()}
    if not survey.minimum or scheme.presence is not None or not isinstance(visits, CalendarVisits):
        return {unit: replace(found, visits={}, most={}) for unit, found in sums.items()}
    over = {unit: found for unit, found in sums.items() if visits.last(unit, period) == period}
    protected = {unit: found.protected(scheme.kinds, survey.minimum) for unit, found in over.items()}
    return {unit: found for unit, found in protected.items() if found is not None}
