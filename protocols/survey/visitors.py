"""Calendar visitors: unique devices of weeks, months or years, by flags that a report has instead of a gap."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field

from protocols.survey.attribute import Strict, refuse_twice

Unit = Literal["day", "week", "month", "year", "ever"]
SHORTER: dict[Unit, int] = {"day": 1, "week": 7, "month": 31, "year": 366}
"""Periods of so many days or more are never twice in the same unit."""


class Visitors(Strict):
    """The units in which unique devices are counted."""

    units: tuple[Unit, ...] = Field(
        min_length=1, max_length=5, description="day, week (from Monday), month, year or ever, as many as are counted"
    )

    def check(self, period: timedelta) -> None:
        """Raise ValueError if a unit is named twice, or is never longer than a period."""
        refuse_twice(self.units, "visitors: the list has", "name each unit once")
        for unit in self.units:
            if unit != "ever" and period >= timedelta(days=SHORTER[unit]):
                raise ValueError(f"visitors: no {unit} has two periods; leave it out, or choose a shorter period")
