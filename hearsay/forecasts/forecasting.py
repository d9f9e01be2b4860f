"""Forecasts of what was published, or of any table: fits, backtests, what was unexpected, and all of it as records."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from analytics.forecasting import (
    About,
    Forecast,
    Scored,
    Series,
    Structure,
    adding_up,
    backtest,
    check_enough,
    unexpected,
    usual_seasons,
)
from analytics.forecasting import forecast as forecast_series
from hearsay.forecasts.series_files import Loaded, TimeAxis, read_series
from hearsay.forecasts.survey_series import Measure, published_series
from hearsay.terminal.console import Step, no_step
from producers.files import TableSource, table_name
from protocols.errors import ResultsError, SettingsError
from protocols.survey import Unit, html_table

KINDS: tuple[About, ...] = ("truth", "publication")
CONFIDENCES = (80, 95)
SHOWN = 24  # rows in a notebook


@dataclass(frozen=True, eq=False)
class Outlook:
    """One series with its forecast."""

    series: Series
    forecast: Forecast
    scores: list[Scored] = field(default_factory=list)
    unexpected: tuple[int, ...] = ()
    """Places of values that lay outside the 99 % interval of the forecast made one period before."""
    usual: float = 0.0
    """How many do so if nothing is unusual."""

    def rows(self, axis: TimeAxis) -> list[dict[str, Any]]:
        """One row for each period ahead, with the ends of all intervals."""
        ends = {
            f"{kind}_{end}_{confidence}": column
            for kind in KINDS
            for confidence in CONFIDENCES
            for end, column in zip(("low", "high"), self.forecast.interval(kind, confidence / 100), strict=True)
        }
        return [
            {"time": _text(axis, len(self.series) + step), "step": step + 1, "mean": float(self.forecast.mean[step])}
            | {name: float(column[step]) for name, column in ends.items()}
            for step in range(len(self.forecast.mean))
        ]

    def record(self, axis: TimeAxis) -> dict[str, Any]:
        """Everything, for JSON."""
        made = self.forecast
        return {
            "name": self.series.name,
            "values": self.series.known,
            "periods": len(self.series),
            "seasons": list(made.fit.structure.seasons),
            "stretch": made.stretch,
            "calibrated_over": made.calibrated,
            "forecasts": self.rows(axis),
            "unexpected": [_text(axis, place) for place in self.unexpected],
            "backtest": [scored.record() for scored in self.scores],
        }


@dataclass(frozen=True, eq=False)
class Outlooks:
    """All series of one source."""

    source: str
    axis: TimeAxis
    found: list[Outlook]
    remarks: list[str]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each series and period ahead, with the ends of all intervals."""
        return [{"series": outlook.series.name, **row} for outlook in self.found for row in outlook.rows(self.axis)]

    @property
    def table(self) -> pa.Table:
        """The same as an Arrow table."""
        return pa.Table.from_pylist(self.rows)

    def _repr_html_(self) -> str:
        columns = ("series", "time", "mean", "truth_low_95", "truth_high_95")
        cells = [[row[name] for name in columns] for row in self.rows[:SHOWN]]
        return html_table(f"Forecasts of {self.source}", columns, cells, self.remarks)


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


def look_ahead(
    source: str,
    loaded: Loaded,
    seasons: Sequence[int] | None,
    ahead: int,
    backtested: int | None,
    step: Step = no_step,
) -> Outlooks:
    """Forecasts of all series that are long enough; raises ResultsError if none is.

    Without any given, seasons are days and weeks, where the times of rows are known.
    """
    if backtested is not None and backtested < 1:
        raise SettingsError(f"a backtest of {backtested} periods", "give how many of the last periods to forecast")
    found, remarks, refusal, structure = [], list(loaded.remarks), None, Structure.of(seasons or ())
    if seasons is None and loaded.axis.begin is None:
        remarks.append("rows have no times, so no season is known: give --season if there is one")
    elif seasons is None:
        structure = usual_seasons(loaded.axis.step, len(loaded.series[0]))
    for place, series in enumerate(loaded.series):
        step(place, len(loaded.series), "forecasting")
        try:
            check_enough(series.name, series.known, structure)
            scores = []
            if backtested:
                before = series.before(len(series) - backtested)
                check_enough(f"{series.name}, before the backtest", before.known, structure)
                steps = (1, min(ahead, backtested // 2)) if ahead > 1 and backtested > 3 else (1,)
                scores = backtest(series, structure, backtested, steps, loaded.truth.get(series.name))
        except ResultsError as error:
            refusal = error
            remarks.append(error.message)
            continue
        made = forecast_series(series, structure, ahead)
        found.append(Outlook(series, made, scores, *unexpected(series, made)))
    if not found:
        raise refusal or ResultsError(f"{source} has no series", "check what it contains")
    for whole in loaded.wholes:
        parts = [place for place, outlook in enumerate(found) if outlook.series.name in whole]
        if len(parts) == len(whole):
            for place, made in zip(parts, adding_up([found[part].forecast for part in parts]), strict=True):
                found[place] = replace(found[place], forecast=made)
    return Outlooks(source, loaded.axis, found, remarks)


def _text(axis: TimeAxis, place: int) -> str | int:
    time = axis.at(place)
    return time if isinstance(time, int) else time.isoformat(sep=" ")
