"""Forecasts of what was published, or of any table."""

from collections.abc import Sequence
from pathlib import Path

from hearsay.forecasts.forecasting import Outlooks, look_ahead
from hearsay.forecasts.series_files import read_series
from hearsay.forecasts.survey_series import Measure, published_series
from producers.files import TableSource, table_name
from protocols.errors import SettingsError
from protocols.survey import Unit


def forecast(
    source: TableSource | str | None = None,
    *,
    ahead: int = 24,
    season: Sequence[int] | None = None,
    backtest: int | None = None,
    kafka: str | None = None,
    survey: str | None = None,
    measure: Measure = "people",
    attribute: str | None = None,
    value: str | None = None,
    window: int = 1,
    unit: Unit | None = None,
    time: str | None = None,
    columns: Sequence[str] = (),
    variance: str | None = None,
    memo_variance: str | None = None,
    truth: str | None = None,
) -> Outlooks:
    """Forecast published series or the columns of a table, as `hearsay forecast` does. It costs no budget.

    `source` is a data directory, a CSV file, columns by name, or a data frame; with `kafka` what was published on that
    cluster. `season` are the lengths of seasons in periods: days and weeks by default, where times are known; (): none.
    With `backtest`, that many of the last periods are also forecast from what came before.

    Of published results: `measure` is people, share, visitors, new or returning; `attribute` and `value` choose some;
    `window` is for the different visitors of so many periods, `unit` for those of calendar units. Of a table: `time` is
    the column of times, `columns` those to forecast; `variance` and `memo_variance` (columns or numbers) are those
    of fresh noise and of noise that stays; `truth` is a column to backtest against.

    `.table` has a row for each series and period ahead, with intervals for the truth and for what will be published.
    """
    path = Path(source) if isinstance(source, str) else source
    if kafka is None and path is not None and not (isinstance(path, Path) and path.is_dir()):
        title, loaded = table_name(path), read_series(path, time, columns, variance, memo_variance, truth)
    elif path is None or isinstance(path, Path):
        title, loaded = published_series(survey, path, kafka, measure, attribute, value, window, unit)
    else:
        raise SettingsError("a table and a cluster are both named", "give one of them")
    return look_ahead(title, loaded, season, ahead, backtest)
