"""The times of a table's rows: found, read, and laid out on an even grid.

Times are taken as the clock on the wall showed them, whatever time zone they name: days and weeks of people follow it.
So the hour that a clock skips in spring is a missing period, and the one it repeats in autumn is one period with two
rows.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa

from producers.files import BAD, formatted
from protocols.arrays import Whole
from protocols.errors import ResultsError
from protocols.survey import MICROSECOND, Calendar

DATES = "%Y-%m-%d %Y/%m/%d %d/%m/%Y %m/%d/%Y %d.%m.%Y %d-%m-%Y %m-%d-%Y %Y%m%d %d/%m/%y %m/%d/%y"
TIMES = ("", " %H:%M:%S", " %H:%M", " %H", " %I:%M:%S %p", " %I:%M %p")
MONTHS = ("%Y-%m", "%Y/%m", "%m/%Y", "%b %Y", "%B %Y")
ZONE = re.compile(r"(:\d\d)(\.\d+)?\s*(Z|UTC|[+-]\d\d:?\d\d)?$")  # also parts of seconds: they do not matter
SECONDS = re.compile(r"1\d{9}(\.\d+)?|1\d{12}")  # Unix times, in seconds or milliseconds
MOST_OFF_GRID = 0.02
BEGIN = datetime(1970, 1, 1)
MONTH = timedelta(days=30.4375)


@dataclass(frozen=True)
class TimeAxis:
    """Evenly spaced times. `step` of a month means calendar months; those of a survey follow its calendar."""

    begin: datetime | None  # None: rows are numbered
    step: timedelta
    survey: tuple[Calendar, int] | None = None  # the calendar, and the period of the first row

    def at(self, period: int) -> datetime | int:
        """The time of a period; its number if rows have no times."""
        if self.begin is None:
            return period
        if self.survey is not None:
            calendar, first = self.survey
            return calendar.local(calendar.begin(first + period)).replace(tzinfo=None)
        if self.step == MONTH:
            months = self.begin.year * 12 + self.begin.month - 1 + period
            return self.begin.replace(year=months // 12, month=months % 12 + 1)
        return self.begin + period * self.step


def read_times(texts: Sequence[str]) -> list[datetime] | None:
    """The times that these texts are, if they all are: the first way to write times that fits all of them."""
    if not texts:
        return None
    plain = [ZONE.sub(r"\1", re.sub(r"(?<=\d)T(?=\d)", " ", text.strip())) for text in texts]
    if all(map(SECONDS.fullmatch, plain)):
        seconds = [float(text) / (1000 if len(text) == 13 else 1) for text in plain]
        return [datetime.fromtimestamp(second, UTC).replace(tzinfo=None) for second in seconds]
    cells, ends = pa.array(plain), pa.array([plain[0], plain[-1]])
    styles = (*(date + time for date in DATES.split() for time in TIMES), *MONTHS)
    tried = (formatted(cells, style) for style in styles if BAD not in formatted(ends, style))
    fitting = [[BEGIN + moment * MICROSECOND for moment in found.tolist()] for found in tried if BAD not in found]
    return max(fitting, key=_evenness, default=None)  # of day/month and month/day, the one with more even steps


def on_a_grid(times: Sequence[datetime]) -> tuple[TimeAxis, Whole]:
    """The grid of the most frequent step, and the period of each row. Raises ResultsError if rows are not on it."""
    order = sorted(times)
    steps = Counter(later - earlier for earlier, later in pairwise(order) if later > earlier)
    if not steps:
        raise ResultsError("all rows have the same time", "name the column of times with --time")
    step, _ = max(steps.items(), key=lambda item: (item[1], -item[0]))
    if timedelta(days=28) <= step <= timedelta(days=31) and len({time.day for time in order}) == 1:
        months = np.array([time.year * 12 + time.month for time in times])
        return TimeAxis(order[0], MONTH), months - months.min()
    places = np.array([(time - order[0]) / step for time in times])
    periods = np.rint(places)
    off = float((np.abs(places - periods) > 0.05).mean())
    if off > MOST_OFF_GRID:
        raise ResultsError(
            f"rows are not evenly spaced: {off:.0%} are not a multiple of the most frequent step, {step}, apart",
            "make a table with one row for each hour or day first",
        )
    return TimeAxis(order[0], step), periods.astype(np.int64)


def _evenness(times: Sequence[datetime]) -> float:
    steps = Counter(later - earlier for earlier, later in pairwise(times))
    return max(steps.values(), default=0) / max(1, len(times) - 1)
