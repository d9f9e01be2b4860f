"""Longitudinal data collection under local differential privacy, for notebooks and programs.

    load_survey        a survey from a file, from text or from its keys
    survey_from        a survey proposed from a table
    plan               what a survey reveals, and how precise its results will be
    Device, Limits     answer surveys for one person, within limits; state in one SQLite file
    Fleet              answer a survey in memory, for many simulated devices
    estimate           histograms from reports
    estimate_counts    the same from counts
    run                a whole simulated collection, in this process
    replay             a table of events, reported and collected in this process
    read_results       what was published, in a data directory or on a Kafka cluster
    forecast           the next periods of what was published, or of any table
    synthesize         records that follow what was published
    people             virtual people who come out as published
    evaluate           compare methods on data whose truth is known
    audit              what the best attacks on a survey reach

Results are Arrow tables. Every error raised on purpose is a `HearsayError`. A name is imported when it is first used,
so that `import hearsay` itself costs nothing.
"""

from typing import TYPE_CHECKING

__all__ = [
    "Device", "Fleet", "HearsayError", "Limits", "Survey", "Tables", "audit", "estimate", "estimate_counts", "evaluate",
    "forecast", "load_survey", "people", "plan", "read_results", "replay", "run", "survey_from", "synthesize",
]  # fmt: skip

if TYPE_CHECKING:
    from hearsay.forecasts.forecasting import forecast
    from hearsay.library.answering import Fleet
    from hearsay.library.estimating import estimate, estimate_counts
    from hearsay.library.planning import load_survey, plan
    from hearsay.library.proposing import survey_from
    from hearsay.library.results import Tables, read_results, replay, run
    from hearsay_device.device import Device
    from hearsay_device.limits import Limits
    from lab.library import audit, evaluate, people, synthesize  # for type checkers only
    from protocols.errors import HearsayError
    from protocols.survey import Survey

    __version__: str
else:
    _MODULES = {
        "hearsay.forecasts.forecasting": ["forecast"],
        "hearsay.library.answering": ["Fleet"],
        "hearsay.library.estimating": ["estimate", "estimate_counts"],
        "hearsay.library.planning": ["load_survey", "plan"],
        "hearsay.library.proposing": ["survey_from"],
        "hearsay.library.results": ["Tables", "read_results", "replay", "run"],
        "hearsay_device.device": ["Device"],
        "hearsay_device.limits": ["Limits"],
        "lab.library": ["audit", "evaluate", "people", "synthesize"],
        "protocols.errors": ["HearsayError"],
        "protocols.survey": ["Survey"],
    }
    _HOMES = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            from servers.distribution import DISTRIBUTION

            return version(DISTRIBUTION)
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        try:
            found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        except ModuleNotFoundError as error:
            from hearsay.extras import explained

            raise explained(error, name) or error from None
        return found

    def __dir__() -> list[str]:
        return __all__
