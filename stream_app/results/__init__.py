"""What is published, how it is made from counts, and how it is read back: pure."""

from stream_app.results.forecast_result import ForecastResult, ForecastTable, Intervals
from stream_app.results.histograms import Histogram, Live, build_histogram
from stream_app.results.mobility import ClosedPeriod, MobilityResult, build_mobility
from stream_app.results.observing import VISITORS, Cell, Observation, cells, observe, observed_series
from stream_app.results.presence_noise import Release, release
from stream_app.results.reading import Come, Followed, Follower, PublishedResults
from stream_app.results.result_topics import (
    FORECASTS,
    HISTOGRAMS,
    LIVE,
    MOBILITY,
    RESULT_TOPICS,
    ResultKey,
    ResultTopic,
)
from stream_app.results.tables import histogram_table

__all__ = [
    "FORECASTS",
    "HISTOGRAMS",
    "LIVE",
    "MOBILITY",
    "RESULT_TOPICS",
    "VISITORS",
    "Cell",
    "ClosedPeriod",
    "Come",
    "Followed",
    "Follower",
    "ForecastResult",
    "ForecastTable",
    "Histogram",
    "Intervals",
    "Live",
    "MobilityResult",
    "Observation",
    "PublishedResults",
    "Release",
    "ResultKey",
    "ResultTopic",
    "build_histogram",
    "build_mobility",
    "cells",
    "histogram_table",
    "observe",
    "observed_series",
    "release",
]
