"""Forecasts of a survey, made after each of its finals, for surveys that ask for them."""

from views.forecasts.forecast import FORECASTS
from views.forecasts.model import ForecastResult, ForecastTable, Intervals
from views.forecasts.observing import Cell, cells, observe, observed_series
