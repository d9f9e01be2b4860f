"""Forecasting many series: fits, backtests, what was unexpected, and all of it as records."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
    forecast,
    unexpected,
    usual_seasons,
)
from hearsay.forecasts.series_files import Loaded
from hearsay.forecasts.time_axis import TimeAxis
from hearsay.terminal.console import Step, no_step
from protocols.errors import ResultsError
from protocols.survey import html_table

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
                check_enough(f"{series.name}, before the backtest", series[: len(series) - backtested].known, structure)
                steps = (1, min(ahead, backtested // 2)) if ahead > 1 and backtested > 3 else (1,)
                scores = backtest(series, structure, backtested, steps, loaded.truth.get(series.name))
        except ResultsError as error:
            refusal = error
            remarks.append(error.message)
            continue
        made = forecast(series, structure, ahead)
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
