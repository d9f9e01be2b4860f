"""Series from a table: times, numbers, missing rows and all."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np

from analytics.forecasting import Series
from hearsay.forecasts.time_axis import TimeAxis, on_a_grid, read_times
from producers.files import TableSource, read_table, table_name
from protocols.arrays import Floats, Whole
from protocols.errors import ResultsError

MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "?", "nd", "missing", "inf", "-inf"}
CLOCK = re.compile(r"\d{1,2}(:\d\d){0,2}")  # a time of day, in a column beside that of dates
WORDS = ("date", "time", "day", "period", "begin", "start", "stamp", "month", "week", "year", "hour", "datum", "ds")
LONGEST_GRID = 2_000_000
MOST_REPEATED = 0.05


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
