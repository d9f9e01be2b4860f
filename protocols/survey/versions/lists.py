"""The lists of a survey that say what is released with noise: their defaults, and which ones a survey can have."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from pydantic import Field

from protocols.survey.calendar import DAY, SHORTER, Unit
from protocols.survey.names import Strict
from protocols.survey.released import (
    DAYS,
    RELEASED_OF,
    Released,
    ReleasedOf,
    RollingWindow,
    units_of_release,
)

MOST_WINDOWS = 2
ACROSS = ({"week", "month"}, {"week", "year"})
"""Units that cross each other's borders. Without numbers of periods they are not released together."""


class Rolling(Strict):
    """A window of the last days, again and again."""

    days: int = Field(ge=1, le=366)
    every: int = Field(ge=1, le=366)


class Counted(NamedTuple):
    """What a survey counts of its visitors: the units, and whether it knows who is new."""

    period: timedelta
    lookback: timedelta
    units: tuple[ReleasedOf, ...]
    knows_new: bool
    by_gaps: bool

    @classmethod
    def of(cls, period: timedelta, lookback: int, units: Sequence[Unit]) -> "Counted":
        """What a survey counts by the calendar, or by gaps of so many periods where it names no units.

        >>> Counted.of(DAY, 1, ("month", "week", "ever")).units
        ('week', 'month')
        >>> Counted.of(DAY, 31, ()).units  # a day is a period
        ('week',)
        """
        found = units_of_release(units, lookback, period)
        knows_new = "ever" in units if units else lookback > 1
        return cls(period, lookback * period, found, knows_new, by_gaps=not units)

    @property
    def names(self) -> tuple[ReleasedOf, ...]:
        """What numbers can be of."""
        return ("period", *self.units)


def released(
    counted: Counted,
    numbers: tuple[ReleasedOf, ...] | None,
    new: tuple[ReleasedOf, ...] | None,
    tables: tuple[ReleasedOf, ...] | None,
    rolling: tuple[Rolling, ...] | None,
) -> Released:
    """The lists of a survey; those that it does not name have their defaults.

    By default there are numbers of periods and of all units, new visitors of the longest of them, and tables of the
    shortest.

    >>> months = Counted.of(DAY, 1, ("week", "month", "ever"))
    >>> released(months, None, None, None, None)
    Released(numbers=('period', 'week', 'month'), new=('month',), tables=('period',), rolling=())
    """
    shown = counted.names if numbers is None else numbers
    newcomers = shown[-1:] if counted.knows_new else ()
    return Released(
        numbers=shown,
        new=newcomers if new is None else new,
        tables=shown[:1] if tables is None else tables,
        rolling=tuple(RollingWindow(window.days, window.every) for window in rolling or ()),
    )


def check_released(counted: Counted, lists: Released) -> None:
    """Raise ValueError if a survey cannot release these lists."""
    for key in ("numbers", "new", "tables"):
        _check_names(key, getattr(lists, key), counted)
    if lists.new and not counted.knows_new:
        needed = "a lookback above 1" if counted.by_gaps else "ever among the units of visitors"
        raise ValueError(f"new: this survey cannot tell who is new; give it {needed}, or leave new out")
    missing = [name for name in lists.tables if name not in lists.numbers]
    if missing:
        raise ValueError(
            f"tables: [{missing[0]}] needs numbers: [{missing[0]}]; name it in numbers, or leave it out of tables"
        )
    for window in lists.rolling:
        _check_window(window, counted)
    if "period" not in lists.numbers:
        _check_without_periods(lists)


def in_order(names: Sequence[ReleasedOf]) -> tuple[ReleasedOf, ...]:
    """A list in the order of the calendar. Raises ValueError if a name is there twice.

    >>> in_order(["week", "period"])
    ('period', 'week')
    """
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the list has {name!r} twice; name it once")
    return tuple(name for name in RELEASED_OF if name in names)


def _check_names(key: str, names: tuple[ReleasedOf, ...], counted: Counted) -> None:
    for name in names:
        if name not in counted.names:
            raise ValueError(f"{key}: this survey does not count {name}s; {_why_not(name, counted)}")


def _why_not(name: ReleasedOf, counted: Counted) -> str:
    """Why a survey does not count a unit, and what it counts."""
    known = f"it counts {', '.join(counted.names)}"
    if counted.period >= SHORTER[_unit(name)] * DAY:
        return f"a period is not shorter than a {name}, so write period; {known}"
    if not counted.by_gaps:
        return f"name {name} in visitors, too; {known}"
    if name not in DAYS:
        return f"months and years need visitors: calendar in place of a lookback; {known}"
    if SHORTER[_unit(name)] * DAY % counted.period:
        return f"a {name} is not a whole number of periods; {known}"
    return f"a {name} is longer than the lookback; {known}"


def _unit(name: ReleasedOf) -> Unit:
    assert name != "period", "every survey counts periods"
    return name


def _check_window(window: RollingWindow, counted: Counted) -> None:
    days, every = window.days * DAY, window.every * DAY
    what = f"rolling: {{days: {window.days}, every: {window.every}}}"
    if not counted.by_gaps:
        raise ValueError(f"{what} needs a lookback, and this survey counts by the calendar; leave rolling out")
    if days % counted.period or every % counted.period:
        raise ValueError(f"{what}: days and every must be whole numbers of periods; choose multiples of the period")
    if days > counted.lookback:
        raise ValueError(f"{what} is longer than the lookback; choose fewer days, or a longer lookback")
    if days <= counted.period:
        raise ValueError(f"{what} has one period; choose more days, or name period in numbers")


def _check_without_periods(lists: Released) -> None:
    """Without numbers of periods `presence_epsilon` covers all presences of a device in the shortest unit.

    They are in one instance of each longer unit, and change one number of it. If units cross, those of a week may be in
    two months: then they change two numbers, and cost more.
    """
    shown = {*lists.numbers, *lists.new}
    if "period" in lists.new:
        raise ValueError("new: [period] needs numbers: [period]; name it in numbers, or leave it out of new")
    if lists.rolling:
        raise ValueError("rolling: windows need numbers: [period]; name it in numbers, or leave rolling out")
    for across in ACROSS:
        if across <= shown:
            first, second = sorted(across, key=RELEASED_OF.index)
            raise ValueError(
                f"numbers: without period, {first} and {second} cannot both be released, because a {first} may belong "
                f"to two {second}s; leave one of them out of numbers and new, or add period"
            )
