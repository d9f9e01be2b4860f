"""Forecasts on a terminal of 80 columns, as CSV, and as a page."""

import csv
from datetime import datetime
from io import StringIO
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from analytics.forecasting import Scored
from hearsay.forecasts.forecasting import Outlook, Outlooks
from hearsay.forecasts.series_files import TimeAxis
from hearsay.terminal import console
from pages.events import event
from pages.static import static_page
from protocols.errors import counted

MOST_ROWS, MOST_SERIES = 8, 12


def forecast_tables(outlooks: Outlooks) -> RenderableType:
    """The next periods of each series, with 95 % intervals of both kinds, and its backtest."""
    shown = [_series(outlook, outlooks.axis) for outlook in outlooks.found[:MOST_SERIES]]
    hidden = len(outlooks.found) - MOST_SERIES
    rest = [Text(f"\nand {hidden} more series: --json, --csv and --html have all", style="dim")] if hidden > 0 else []
    remarks = [Text(remark, style="dim") for remark in outlooks.remarks]
    return Group(*remarks, *shown, *rest)


def forecast_csv(outlooks: Outlooks) -> str:
    """One row for each series and period ahead."""
    text = StringIO()
    writer = csv.DictWriter(text, list(outlooks.rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(outlooks.rows)
    return text.getvalue()


def _series(outlook: Outlook, axis: TimeAxis) -> RenderableType:
    made = outlook.forecast
    head = Text(f"\n{outlook.series.name}", style="bold")
    seasons = " and ".join(map(str, made.fit.structure.seasons)) or "none"
    widened = f"widened {made.stretch:.2f}x" if made.stretch > 1 else "as fitted"
    how = widened if made.calibrated else "not calibrated: fewer than 50 publications"
    head.append(f"  {made.trained:,} values, seasons: {seasons}; intervals {how}", style="not bold dim")
    table = console.table("", "forecast", "truth, 95 %", "to", "publication, 95 %", "to")
    (low, high), (low_p, high_p) = made.interval("truth", 0.95), made.interval("publication", 0.95)
    digits = _digits(float(abs(made.mean).max()))
    for step in range(min(MOST_ROWS, len(made.mean))):
        numbers = (made.mean[step], low[step], high[step], low_p[step], high_p[step])
        table.add_row(_when(axis, len(outlook.series) + step), *(f"{number:,.{digits}f}" for number in numbers))
    if len(made.mean) > MOST_ROWS:
        table.add_row(f"and {len(made.mean) - MOST_ROWS} more", style="dim")
    parts: list[RenderableType] = [head, table]
    if outlook.unexpected:
        last = _when(axis, outlook.unexpected[-1])
        left = (
            f"{counted(len(outlook.unexpected), 'publication')} left the 99 % interval ({outlook.usual:.1f} usually do)"
        )
        parts.append(Text(f"{left}; the last: {last}", style="dim"))
    if outlook.scores:
        parts.append(_backtest(outlook.scores, digits))
    return Group(*parts)


def _backtest(scores: list[Scored], digits: int) -> Table:
    about = "the truth" if scores[0].truth else "publications"
    columns = ("", "ahead", "MAE", "RMSE", "MASE", "CRPS", "80 %", "95 %", "interval score")
    table = console.table(*columns, title=f"backtest against {about}", title_style="dim")
    for scored in scores:
        found = scored.truth or scored.publication
        if found is not None:
            errors = [f"{figure:,.{digits}f}" for figure in (found.mae, found.rmse)]
            mase = "" if found.mase is None else f"{found.mase:.2f}"
            covered = [f"{found.coverage_80:.0%}", f"{found.coverage_95:.0%}"]
            last = [f"{found.crps:,.{digits}f}", *covered, f"{found.interval_score_95:,.{digits}f}"]
            table.add_row(scored.method, str(scored.step), *errors, mase, *last)
    return table


def _digits(size: float) -> int:
    return 0 if size >= 1000 else 1 if size >= 10 else 4


def _when(axis: TimeAxis, place: int) -> str:
    time = axis.at(place)
    if not isinstance(time, datetime):
        return f"row {time + 1}"
    return time.strftime("%a %Y-%m-%d" if axis.step.seconds == 0 and not time.hour else "%a %Y-%m-%d %H:%M")


def forecast_page(outlooks: Outlooks) -> str:
    """The page of all series."""
    title = f"Forecasts of {outlooks.source}"
    record = {
        "title": title,
        "lead": [
            "Two intervals of 95 %: that of the truth, and that of what will be published, which contains the noise of "
            "the publication. Crosses are publications that left the 99 % interval of the forecast one period before."
        ],
        "remarks": outlooks.remarks,
        "series": [_page_series(outlook, outlooks.axis) for outlook in outlooks.found],
    }
    return static_page(title, [event("outlook", None, record)])


def _page_series(outlook: Outlook, axis: TimeAxis) -> dict[str, Any]:
    series = outlook.series
    begins = [axis.at(place) for place in range(len(series))]
    return {
        "name": series.name,
        "known": series.known,
        "seasons": list(outlook.forecast.fit.structure.seasons),
        "begins": [begin if isinstance(begin, int) else begin.isoformat() for begin in begins],
        "values": [float(value) if np.isfinite(value) else None for value in series.values],
        "ahead": outlook.rows(axis),
        "unexpected": list(outlook.unexpected),
        "usual": outlook.usual,
        "backtest": [scored.record() for scored in outlook.scores],
    }
