"""`hearsay forecast`: the next periods of published series, or of any table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hearsay.terminal import console

if TYPE_CHECKING:
    from hearsay.forecasts.series_files import Loaded
    from hearsay.forecasts.survey_series import Measure
    from hearsay.terminal.console import Step
    from producers.scenarios import Scenario
    from protocols.survey import Survey


def forecast(
    survey: console.SurveyId = None,
    ahead: Annotated[int, typer.Option(help="How many periods to forecast.", min=1, max=10_000)] = 24,
    season: Annotated[
        str | None,
        typer.Option(help="Seasons in periods, separated by commas, such as 24,168; 0 for none. [days and weeks]"),
    ] = None,
    backtest: Annotated[
        int | None, typer.Option(help="Also forecast this many of the last periods from what came before.", min=4)
    ] = None,
    attribute: Annotated[str | None, typer.Option(help="Only this attribute of the survey.")] = None,
    value: Annotated[
        str | None, typer.Option(help="Only this value or group; of a file: these columns, separated by commas.")
    ] = None,
    measure: Annotated[
        Literal["people", "share", "visitors", "new", "returning"], typer.Option(help="What of the survey to forecast.")
    ] = "people",
    window: Annotated[
        int, typer.Option(help="Forecast the different visitors of so many periods, up to the horizon.", min=1)
    ] = 1,
    unit: Annotated[
        Literal["day", "week", "month"] | None,
        typer.Option(help="Forecast the visitors of calendar units, in a survey with visitors."),
    ] = None,
    scenario_name: Annotated[
        str | None, typer.Option("--scenario", help="The scenario of a simulated run: backtest against its truth.")
    ] = None,
    devices: Annotated[int | None, typer.Option(help="Number of devices of that run.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Seed of that run.")] = 0,
    series: Annotated[Path | None, typer.Option(help="Forecast the columns of this CSV file instead.")] = None,
    time: Annotated[
        str | None, typer.Option(help="The file's column of times, or date,time of day. [found by itself]")
    ] = None,
    variance: Annotated[
        str | None, typer.Option(help="Column (or number): variance of the fresh noise in the file's values.")
    ] = None,
    memo_variance: Annotated[
        str | None, typer.Option(help="Column (or number): variance of the noise that stays, such as that of memos.")
    ] = None,
    truth: Annotated[str | None, typer.Option(help="Column of the file: the truth, to backtest against.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The data directory of a run or replay; if left out, hearsay-data/ID.", show_default=False),
    ] = None,
    kafka: console.ResultsKafka = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with charts to this file.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the forecasts to this CSV file.")] = None,
    as_json: console.AsJson = False,
) -> None:
    """Forecast what is published, with intervals of two kinds: for the truth, and for what will be published.

    The noise of the reports is known and is not taken for movement. Nothing is collected, so it costs no budget.

    Example: hearsay forecast --ahead 24 --season 24,168 --backtest 60 --html forecast.html
    """
    from hearsay.forecasts.forecasting import look_ahead, structure_of
    from hearsay.forecasts.showing import forecast_csv, forecast_page, forecast_tables

    if series is not None and (survey or data or kafka or attribute or scenario_name):
        raise typer.BadParameter("--series reads a file: leave out the survey, and the options about surveys")
    if series is None and (time or variance or memo_variance or truth):
        raise typer.BadParameter("--time, --variance, --memo-variance and --truth belong to --series")
    with console.progress("reading") as step:
        if series is not None:
            from hearsay.forecasts.series_files import read_series

            source = str(series)
            loaded = read_series(series, time, _words(value), variance, memo_variance, truth)
        else:
            from hearsay.forecasts.survey_series import survey_series
            from hearsay.reports.files import chosen, open_results

            with open_results(survey, data, kafka) as (results, _):
                found = chosen(results, survey)
                source = found.title or found.id
                loaded = survey_series(results, found, measure, attribute, value, window, unit)
            if scenario_name is not None:
                from hearsay.running.simulating import populate

                periods = loaded.series[0].first + len(loaded.series[0])
                population = populate(found, scenario_name, devices, periods, seed)
                _add_truth(found, population, data, loaded, measure, step)
        outlooks = look_ahead(source, loaded, structure_of(_seasons(season), loaded), ahead, backtest, step)
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


def _add_truth(
    survey: Survey, population: Scenario, data: Path | None, loaded: Loaded, measure: Measure, step: Step
) -> None:
    """Add what the scenario of a run knows, if it is the population of that run."""
    from hearsay.data_directory import DataDirectory
    from hearsay.forecasts.survey_series import scenario_truth
    from hearsay.running.simulating import population_digest

    if data is not None:
        DataDirectory(data).check_population(survey.id, population_digest(population))
    loaded.truth.update(scenario_truth(survey, population, loaded, measure, step))


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _seasons(text: str | None) -> list[int] | None:
    if text is None:
        return None
    words = _words(text)
    if not words or not all(word.isdigit() for word in words):
        raise typer.BadParameter(f"{text!r}: give whole numbers of periods, such as 24,168", param_hint="--season")
    return [int(word) for word in words if int(word)]
