"""Forecasts of published series that know the noise in them: model, filter, fits, intervals, backtests."""

from analytics.forecasting.backtesting import Scored, backtest
from analytics.forecasting.predicting import (
    MODEL,
    About,
    Forecast,
    Tracked,
    adding_up,
    forecast,
    interval_ends,
    unexpected,
)
from analytics.forecasting.series import Series, mean_of_known
from analytics.forecasting.structure import SEEN_CYCLES, Structure, check_enough, usual_seasons, values_needed
