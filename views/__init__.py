"""Views: everything that is made of finals. The one exit for results."""

from views.forecasts.model import ForecastResult, ForecastTable, Intervals
from views.forecasts.observing import Cell, Observation, cells, observe, observed_series
from views.histogram import AttributeHistogram, Histogram
from views.mobility import MobilityResult
from views.reading import Followed, Follower, Results
from views.status import Live
from views.tables import histogram_table
from views.view import View, all_views

__all__ = [
    "AttributeHistogram",
    "Cell",
    "Followed",
    "Follower",
    "ForecastResult",
    "ForecastTable",
    "Histogram",
    "Intervals",
    "Live",
    "MobilityResult",
    "Observation",
    "Results",
    "View",
    "all_views",
    "cells",
    "histogram_table",
    "observe",
    "observed_series",
]
