"""Series from a table: times, numbers, missing rows and all.

Times are taken as the clock on the wall showed them, whatever time zone they name: days and weeks of people follow it.
So the hour that a clock skips in spring is a missing period, and the one it repeats in autumn is one period with two
rows.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa

from analytics.forecasting import Series
from producers.files import BAD, TableSource, formatted, read_table, table_name
from protocols.arrays import Floats, Whole
from protocols.errors import ResultsError
from protocols.survey import MICROSECOND, Calendar

MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "?", "nd", "missing", "inf", "-inf"}
CLOCK = re.compile(r"\d{1,2}(:\d\d){0,2}")  # a time of day, in a column beside that of dates
WORDS = ("date", "time", "day", "period", "begin", "start", "stamp", "month", "week", "year", "hour", "datum", "ds")
DATES = "%Y-%m-%d %Y/%m/%d %d/%m/%Y %m/%d/%Y %d.%m.%Y %d-%m-%Y %m-%d-%Y %Y%m%d %d/%m/%y %m/%d/%y"
TIMES = ("", " %H:%M:%S", " %H:%M", " %H", " %I:%M:%S %p", " %I:%M %p")
MONTHS = ("%Y-%m", "%Y/%m", "%m/%Y", "%b %Y", "%B %Y")
ZONE = re.compile(r"(:\d\d)(\.\d+)?\s*(Z|UTC|[+-]\d\d:?\d\d)?$")  # also parts of seconds: they do not matter
SECONDS = re.compile(r"1\d{9}(\.\d+)?|1\d{12}")  # Unix times, in seconds or milliseconds
MOST_OFF_GRID = 0.02
BEGIN = datetime(1970, 1, 1)
MONTH = timedelta(days=30.4375)
LONGEST_GRID = 2_000_000
MOST_REPEATED = 0.05


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


@dataclass(frozen=True, eq=False)
class Loaded:
    """Series on one axis of time, and what is known about them."""

    series: list[Series]
    axis: TimeAxis
    remarks: list[str] = field(default_factory=list)
    truth: dict[str, Floats] = field(default_factory=dict)  # by series
    wholes: list[list[str]] = field(default_factory=list)  # series that are shares and add up to 1


def read_series(
    source: TableSource,
    time: str | None = None,
    values: Sequence[str] = (),
    variance: str | None = None,
    memo_variance: str | None = None,
    truth: str | None = None,
) -> Loaded:
    """Every column of numbers of a table (or those in `values`) as a series.

    `variance` and `memo_variance` are columns or numbers: the variances of fresh noise and of memos in the values.
    """
    columns, path = _columns(source), table_name(source)
    names = list(columns)
    axis, periods, times = _axis(path, columns, time)
    length = int(periods.max()) + 1
    if length > LONGEST_GRID:
        raise ResultsError(f"{path}: {length:,} periods from the first row to the last", "check the column of times")
    beside = {name for name in (variance, memo_variance, truth) if name in columns}
    for name in (*values, *([truth] if truth else [])):
        if name not in columns:
            raise _no_column(path, name, names)
    chosen = list(values) or [name for name in names if name not in times and name not in beside]
    numbers = {name: _numbers(columns[name]) for name in (*chosen, *beside)}
    unread = [name for name in chosen if not np.isfinite(numbers[name]).any()]
    if values and unread:
        raise ResultsError(f"{path}: column {unread[0]!r} has no numbers", f"its columns: {', '.join(names)}")
    known = [name for name in chosen if name not in unread]
    if not known:
        raise ResultsError(
            f"{path} has no column of numbers beside {', '.join(times) or 'its times'}", "check the file"
        )
    repeated = len(periods) - len(np.unique(periods))
    if repeated > MOST_REPEATED * len(periods):
        raise ResultsError(
            f"{path}: {repeated:,} rows have the time of another",
            "make a column of each series; or name all columns that make up the time, such as --time date,hour",
        )
    missing = length - len(np.unique(periods))
    remarks = [f"{missing:,} of {length:,} periods have no row"] if missing else []
    remarks += [f"{repeated:,} rows repeat the time of another: their mean is used"] if repeated else []
    remarks += [f"column {name!r} has no numbers and is left out" for name in unread]

    def noise(column: str | None) -> Floats:
        if column in beside:
            laid = _laid(numbers[str(column)], periods, length)
        else:
            try:
                laid = np.full(length, float(column or 0))
            except ValueError:
                raise _no_column(path, str(column), names, "give a column or a number; ") from None
        if (laid < 0).any():
            raise ResultsError(f"{path}: a variance below 0", f"column {column!r} must have variances")
        return laid

    fresh, memo = noise(variance), noise(memo_variance)
    usable = np.isfinite(fresh) & np.isfinite(memo)  # a value of unknown noise is no value
    series = [
        Series(
            name,
            np.where(usable, _laid(numbers[name], periods, length), np.nan),
            np.nan_to_num(fresh),
            np.nan_to_num(memo),
        )
        for name in known
    ]
    true = {name: _laid(numbers[truth], periods, length) for name in known} if truth else {}
    return Loaded(series, axis, remarks, true)


def _columns(source: TableSource) -> dict[str, list[str]]:
    """The columns of a table by name, their cells without spaces and with decimal points."""
    table = read_table(source, ",;\t|")
    columns = {
        name.strip() or f"column {number}": [cell.strip() for cell in column.to_pylist()]
        for number, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True), start=1)
    }
    if not any("." in cell for cells in columns.values() for cell in cells):
        return {name: [cell.replace(",", ".") for cell in cells] for name, cells in columns.items()}
    return columns


def _axis(path: str, columns: dict[str, list[str]], time: str | None) -> tuple[TimeAxis, Whole, list[str]]:
    """The axis of time, the period of every row, and the columns that they are read from."""
    asked = [name.strip() for name in time.split(",")] if time else []
    for name in asked:
        if name not in columns:
            raise _no_column(path, name, columns)
    for names in [asked] if asked else _candidates(columns):
        texts = [" ".join(cells) for cells in zip(*(columns[name] for name in names), strict=True)]
        times = read_times(texts)
        if times is not None:
            return *on_a_grid(times), names
    if asked:
        raise ResultsError(f"{path}: {time} has cells that are not times", "write them like 2026-01-31 18:30")
    rows = len(next(iter(columns.values())))
    return TimeAxis(None, timedelta(0)), np.arange(rows, dtype=np.int64), []


def _candidates(columns: dict[str, list[str]]) -> list[list[str]]:
    """Columns that may be times, the likeliest first: by their names, then by their place; dates with times of day."""
    named = [name for name in columns if any(word in name.lower() for word in WORDS)]
    single = [*named, *(name for name in list(columns)[:2] if name not in named)]
    clocks = [name for name in single if all(map(CLOCK.fullmatch, columns[name])) and _shows_hours(name, columns[name])]
    dates = [name for name in single if len(set(columns[name])) < len(columns[name])]  # else they need no time of day
    pairs = [[date, clock] for date in dates for clock in clocks if date != clock]
    return [*pairs, *([name] for name in single)]


def _shows_hours(name: str, cells: Sequence[str]) -> bool:
    """Whether numbers below 100 are times of day: by a colon in them, or by the name of their column."""
    return all(":" in cell for cell in cells) or any(word in name.lower() for word in ("hour", "time", "heure"))


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


def _numbers(cells: Sequence[str]) -> Floats:
    """Numbers, NaN where one is missing; all NaN if any cell is something else."""
    found = np.full(len(cells), np.nan)
    for place, cell in enumerate(cells):
        if cell.lower() in MISSING:
            continue
        try:
            found[place] = float(cell.replace(" ", "").replace("\u202f", ""))
        except ValueError:
            return np.full(len(cells), np.nan)
    found[~np.isfinite(found)] = np.nan
    return found


def _laid(numbers: Floats, periods: Whole, length: int) -> Floats:
    """Numbers on the grid: the mean where a period has several, NaN where it has none."""
    known = np.isfinite(numbers)
    count = np.bincount(periods[known], minlength=length)
    total = np.bincount(periods[known], weights=numbers[known], minlength=length)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _no_column(path: str, name: str, columns: Iterable[str], hint: str = "") -> ResultsError:
    return ResultsError(f"{path} has no column {name!r}", f"{hint}its columns: {', '.join(columns)}")
