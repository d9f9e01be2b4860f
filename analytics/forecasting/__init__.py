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
from analytics.forecasting.structure import (
    SEEN_CYCLES,
    Series,
    Structure,
    check_enough,
    mean_of_known,
    usual_seasons,
    values_needed,
)
