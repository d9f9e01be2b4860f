"""Tables as people have them: other names for times, missing rows, clock changes, and cells that are no numbers."""

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from hearsay.forecasts.series_files import Loaded, read_series
from protocols.errors import HearsayError


def read(tmp_path: Path, text: str, **options: str) -> Loaded:
    path = tmp_path / "table.csv"
    path.write_text(text)
    return read_series(path, **options)  # type: ignore[arg-type]


TIMES = {
    "ISO": ["2020-03-01 00:00:00", "2020-03-01 01:00:00", "2020-03-01 02:00:00"],
    "with T and zone": ["2020-03-01T00:00:00Z", "2020-03-01T01:00:00+00:00", "2020-03-01T02:00:00.000+0000"],
    "day first": ["01/03/2020 00:00", "01/03/2020 01:00", "01/03/2020 02:00"],
    "German": ["01.03.2020 00:00", "01.03.2020 01:00", "01.03.2020 02:00"],
    "twelve hours": ["2020-03-01 12:00 AM", "2020-03-01 01:00 AM", "2020-03-01 02:00 AM"],
    "Unix": ["1583020800", "1583024400", "1583028000"],
    "milliseconds": ["1583020800000", "1583024400000", "1583028000000"],
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_times_are_found_whatever_their_column_is_called_and_however_they_are_written(
    tmp_path: Path, times: list[str]
) -> None:
    loaded = read(tmp_path, "quand,people\n" + "".join(f"{time},{place}\n" for place, time in enumerate(times)))
    assert (loaded.axis.begin, loaded.axis.step) == (datetime(2020, 3, 1), timedelta(hours=1))
    assert [series.name for series in loaded.series] == ["people"]


@pytest.mark.parametrize("hours", [["00:00:00", "00:30:00"], ["0", "1"], ["00:00", "00:30"]])
def test_dates_and_times_of_day_may_stand_in_two_columns(tmp_path: Path, hours: list[str]) -> None:
    rows = "".join(f"2020-08-2{day},{hour},{day}\n" for day in range(4, 7) for hour in hours)
    loaded = read(tmp_path, f"Date,Hour,n\n{rows}")
    assert [series.name for series in loaded.series] == ["n"]
    assert len(set(map(loaded.axis.at, range(len(loaded.series[0]))))) == len(loaded.series[0])


def test_of_two_ways_to_read_a_date_the_one_with_even_steps_is_taken(tmp_path: Path) -> None:
    days = "".join(f"{month}/{day}/2020,1\n" for month in (1, 2) for day in range(1, 13))
    loaded = read(tmp_path, f"day,n\n{days}")
    assert loaded.axis.step == timedelta(days=1)
    assert len(loaded.series[0]) == 31 + 12


def test_months_are_calendar_months(tmp_path: Path) -> None:
    months = "".join(f"{year}-{month:02d}-01,{month}\n" for year in (2019, 2020, 2021) for month in range(1, 13))
    loaded = read(tmp_path, f"month,n\n{months}")
    assert len(loaded.series[0]) == loaded.series[0].known == 36
    assert loaded.axis.at(36) == datetime(2022, 1, 1)


def test_missing_rows_and_cells_are_missing_periods_and_order_does_not_matter(tmp_path: Path) -> None:
    loaded = read(tmp_path, "time,n\n2020-01-05,5\n2020-01-01,-1\n2020-01-02,NA\n2020-01-04,0\n")
    np.testing.assert_equal(loaded.series[0].values, [-1, np.nan, np.nan, 0, 5])
    assert loaded.remarks == ["1 of 5 periods have no row"]


def test_the_hour_that_a_clock_skips_is_missing_and_the_one_it_repeats_is_one_period(tmp_path: Path) -> None:
    hours = [datetime(2021, 3, 27) + timedelta(hours=hour) for hour in range(24 * 220)]
    skipped, repeated = datetime(2021, 3, 28, 2), datetime(2021, 10, 31, 2)
    rows = [f"{hour.isoformat()},{hour.hour}" for hour in hours if hour != skipped]
    rows.insert(rows.index(f"{repeated.isoformat()},2"), f"{repeated.isoformat()},4")
    loaded = read(tmp_path, "local_time,n\n" + "\n".join(rows))
    values = loaded.series[0].values
    assert np.isnan(values[hours.index(skipped)]) and values[hours.index(repeated)] == 3
    assert len(values) == len(hours)
    assert loaded.remarks[1] == "1 rows repeat the time of another: their mean is used"


def test_rows_without_times_are_numbered(tmp_path: Path) -> None:
    loaded = read(tmp_path, "a;b\n1,5;2\n2,5;3\n")
    assert loaded.axis.begin is None and loaded.axis.at(2) == 2
    assert loaded.series[0].values.tolist() == [1.5, 2.5]


def test_columns_of_variances_and_of_the_truth_are_no_series(tmp_path: Path) -> None:
    text = "day,n,v,b,t\n2020-01-01,5,1,9,4\n2020-01-02,6,,9,5\n2020-01-03,7,3,9,6\n"
    loaded = read(tmp_path, text, variance="v", memo_variance="b", truth="t")
    (series,) = loaded.series
    np.testing.assert_equal(series.values, [5, np.nan, 7])  # a value of unknown noise is no value
    assert series.fresh.tolist() == [1, 0, 3] and series.memo.tolist() == [9, 9, 9]
    assert loaded.truth["n"].tolist() == [4, 5, 6]
    assert read(tmp_path, text, variance="2.5").series[0].fresh.tolist() == [2.5] * 3


WRONG = {
    "no rows": ("day,n\n", {}),
    "row 2 has 3 columns, not 2": ("day,n\n2020-01-01,1,2\n", {}),
    "no column 'm'": ("day,n\n2020-01-01,1\n2020-01-02,2\n", {"variance": "m"}),
    "has no column of numbers": ("day,n\n2020-01-01,red\n2020-01-02,blue\n", {}),
    "rows have the time of another": ("day,area,n\n" + "2020-01-01,x,1\n2020-01-02,y,2\n2020-01-03,y,2\n" * 2, {}),
    "not evenly spaced": ("day,n\n" + "".join(f"2020-01-01 0{h}:{h * h:02d}:{h},1\n" for h in range(8)), {}),
    "a variance below 0": ("day,n,v\n2020-01-01,1,-1\n2020-01-02,2,1\n", {"variance": "v"}),
    "cells that are not times": ("day,n\n2020-01-01,1\n2020-01-02,2\n", {"time": "n"}),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_with_a_table_is_said(tmp_path: Path, message: str) -> None:
    text, options = WRONG[message]
    with pytest.raises(HearsayError, match=message):
        read(tmp_path, text, **options)
