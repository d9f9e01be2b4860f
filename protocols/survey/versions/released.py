"""What is released with noise: whose numbers of visitors, of new ones, whose tables, and which rolling windows.

Every list that is released costs a part of `presence_epsilon`. So a survey may name fewer of them.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, NamedTuple, get_args

from pydantic import Field

from protocols.survey.calendar import DAY, SHORTER, Unit
from protocols.survey.names import Strict

Name = Literal["period", "day", "week", "month", "year"]
NAMES: tuple[Name, ...] = get_args(Name)
"""In the order of the calendar, as lists have them."""
MOST_WINDOWS = 2
ACROSS = ({"week", "month"}, {"week", "year"})
"""Units that cross each other's borders. Without numbers of periods they are not released together."""
UNITS_BY_GAPS: tuple[Name, ...] = ("day", "week")


class Rolling(Strict):
    """A window of the last days, again and again."""

    days: int = Field(ge=1, le=366)
    every: int = Field(ge=1, le=366)


class Released(NamedTuple):
    """What is released, every name once, in the order of the calendar."""

    numbers: tuple[Name, ...]
    new: tuple[Name, ...]
    tables: tuple[Name, ...]
    rolling: tuple[Rolling, ...]


class Counted(NamedTuple):
    """What a survey counts of its visitors: the units, and whether it knows who is new."""

    period: timedelta
    lookback: timedelta
    units: tuple[Name, ...]
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
        reach = lookback * period
        if units:
            named = tuple(name for name in NAMES if name in units)
            return cls(period, reach, named, knows_new="ever" in units, by_gaps=False)
        lengths = {name: SHORTER[name] * DAY for name in UNITS_BY_GAPS if name != "period"}
        whole = {name: length for name, length in lengths.items() if not length % period}
        fitting = tuple(name for name, length in whole.items() if period < length <= reach)
        return cls(period, reach, fitting, knows_new=lookback > 1, by_gaps=True)

    @property
    def names(self) -> tuple[Name, ...]:
        """What numbers can be of."""
        return ("period", *self.units)


def released(
    counted: Counted,
    numbers: tuple[Name, ...] | None,
    new: tuple[Name, ...] | None,
    tables: tuple[Name, ...] | None,
    rolling: tuple[Rolling, ...] | None,
) -> Released:
    """The lists of a survey; those that it does not name have their defaults.

    By default there are numbers of periods and of all units, new visitors of the longest of them, and tables of the
    shortest.

    >>> months = Counted.of(DAY, 1, ("week", "month", "ever"))
    >>> released(months, None, None, None, None)[:3]
    (('period', 'week', 'month'), ('month',), ('period',))
    """
    shown = counted.names if numbers is None else numbers
    newcomers = shown[-1:] if counted.knows_new else ()
    return Released(
        numbers=shown,
        new=newcomers if new is None else new,
        tables=shown[:1] if tables is None else tables,
        rolling=rolling or (),
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


def in_order(names: Sequence[Name], key: str) -> tuple[Name, ...]:
    """A list in the order of the calendar. Raises ValueError if a name is there twice."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{key}: the list has {name!r} twice; name it once")
    return tuple(name for name in NAMES if name in names)


def _check_names(key: str, names: tuple[Name, ...], counted: Counted) -> None:
    for name in names:
        if name not in counted.names:
            raise ValueError(f"{key}: this survey does not count {name}s; {_why_not(name, counted)}")


def _why_not(name: Name, counted: Counted) -> str:
    """Why a survey does not count a unit, and what it counts."""
    known = f"it counts {', '.join(counted.names)}"
    if counted.period >= SHORTER[_unit(name)] * DAY:
        return f"a period is not shorter than a {name}, so write period; {known}"
    if not counted.by_gaps:
        return f"name {name} in visitors, too; {known}"
    if name not in UNITS_BY_GAPS:
        return f"months and years need visitors: calendar in place of a lookback; {known}"
    if SHORTER[_unit(name)] * DAY % counted.period:
        return f"a {name} is not a whole number of periods; {known}"
    return f"a {name} is longer than the lookback; {known}"


def _unit(name: Name) -> Unit:
    assert name != "period", "every survey counts periods"
    return name


def _check_window(window: Rolling, counted: Counted) -> None:
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
            first, second = sorted(across, key=NAMES.index)
            raise ValueError(
                f"numbers: without period, {first} and {second} cannot both be released, because a {first} may belong "
                f"to two {second}s; leave one of them out of numbers and new, or add period"
            )
