"""`hearsay forecast`: the next periods of published series, or of any table."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from hearsay.terminal import console


def forecast(
    survey: console.SurveyId = None,
    ahead: Annotated[int, typer.Option(min=1, max=10_000)] = 24,
    season: str | None = None,
    backtest: Annotated[int | None, typer.Option(min=4)] = None,
    attribute: str | None = None,
    value: str | None = None,
    measure: Literal["people", "share", "visitors", "new", "returning"] = "people",
    window: Annotated[int, typer.Option(min=1)] = 1,
    unit: Literal["day", "week", "month"] | None = None,
    series: Path | None = None,
    time: str | None = None,
    variance: str | None = None,
    memo_variance: str | None = None,
    truth: str | None = None,
    data: console.Data = None,
    kafka: console.Kafka = None,
    html: Path | None = None,
    csv: Path | None = None,
    as_json: console.AsJson = False,
) -> None:
    """Forecast what is published, with intervals of two kinds: for the truth, and for what will be published.

    The noise of the reports is known and is not taken for movement. Nothing is collected, so it costs no budget.

    Example: hearsay forecast --ahead 24 --season 24,168 --backtest 60 --html forecast.html
    """
    from hearsay.forecasts.forecasting import look_ahead
    from hearsay.forecasts.series_files import read_series
    from hearsay.forecasts.showing import forecast_csv, forecast_page, forecast_tables
    from hearsay.forecasts.survey_series import published_series

    if series is not None and (survey or data or kafka or attribute):
        raise typer.BadParameter("--series reads a file: leave out the survey, and the options about surveys")
    if series is None and (time or variance or memo_variance or truth):
        raise typer.BadParameter("--time, --variance, --memo-variance and --truth belong to --series")
    with console.progress("reading") as step:
        if series is not None:
            source = str(series)
            loaded = read_series(series, time, console.words(value), variance, memo_variance, truth)
        else:
            source, loaded = published_series(survey, data, kafka, measure, attribute, value, window, unit)
        outlooks = look_ahead(source, loaded, _seasons(season), ahead, backtest, step)
    if csv is not None:
        csv.write_text(forecast_csv(outlooks), encoding="utf-8")
    if html is not None:
        html.write_text(forecast_page(outlooks), encoding="utf-8")
    if as_json:
        records = [outlook.record(outlooks.axis) for outlook in outlooks.found]
        console.print_json({"source": source, "ahead": ahead, "remarks": outlooks.remarks, "series": records})
        return
    console.out.print(forecast_tables(outlooks))
    for path in filter(None, (csv, html)):
        console.out.print(f"wrote {path}", soft_wrap=True, markup=False)


def _seasons(text: str | None) -> list[int] | None:
    if text is None:
        return None
    words = console.words(text)
    if not words or not all(word.isdigit() for word in words):
        raise typer.BadParameter(f"{text!r}: give whole numbers of periods, such as 24,168", param_hint="--season")
    return [int(word) for word in words if int(word)]
