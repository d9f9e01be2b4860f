"""Forecasts of published series that know the noise in them: model, filter, fits, intervals, backtests."""

from analytics.forecasting.backtesting import Scored, backtest
from analytics.forecasting.bank import Bank, BankForecast, history_length, longest_between, refit_after
from analytics.forecasting.predicting import (
    MODEL,
    About,
    Forecast,
    adding_up,
    forecast,
    interval_ends,
    unexpected,
    usually_unexpected,
)
from analytics.forecasting.series import Series, mean_of_known
from analytics.forecasting.structure import Structure, check_enough, usual_seasons
