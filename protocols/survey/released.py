"""What a survey with `presence_epsilon` releases: of which windows numbers and tables are published (PROTOCOLS 7).

Only what is in these lists is released, and each list costs a part of the budget. They name `period`, and calendar
units that are longer than a period.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from protocols.survey.calendar import DAY

ReleasedOf = Literal["period", "day", "week", "month", "year"]
RELEASED_OF: tuple[ReleasedOf, ...] = ("period", "day", "week", "month", "year")
DAYS: dict[ReleasedOf, int] = {"day": 1, "week": 7}


@dataclass(frozen=True)
class RollingWindow:
    """The last `days` days, after every `every` days."""

    days: int
    every: int

    @property
    def name(self) -> str:
        """Its name among the series of a survey.

        >>> RollingWindow(30, 7).name
        'last 30 days, every 7'
        """
        return f"last {self.days} days, every {self.every}"


@dataclass(frozen=True)
class Released:
    """The lists of one survey."""

    numbers: tuple[ReleasedOf, ...]
    """Of which windows the number of different devices is released; of periods that is the number of reports."""
    new: tuple[ReleasedOf, ...]
    """Of which windows the number of new devices is released."""
    tables: tuple[ReleasedOf, ...]
    """Of which windows answers are released: of periods those of all reports, of units those of their first reports."""
    rolling: tuple[RollingWindow, ...] = ()


def units_of_release(units: Sequence[str], horizon: int, period: timedelta) -> tuple[ReleasedOf, ...]:
    """The calendar units that a survey can release: its own, or whole days and weeks as far as the horizon reaches."""
    if units:
        return tuple(unit for unit in RELEASED_OF if unit in units)
    fitting = []
    for unit, days in DAYS.items():
        periods, rest = divmod(days * DAY, period)
        if not rest and 1 < periods <= horizon:
            fitting.append(unit)
    return tuple(fitting)
