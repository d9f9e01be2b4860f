"""Forecasts of published series that know the noise in them: model, filter, fits, intervals, backtests."""

from analytics.forecasting.backtesting import Scored, backtest
from analytics.forecasting.predicting import Forecast, forecast
from analytics.forecasting.series import Series
from analytics.forecasting.structure import Structure

__all__ = ["Forecast", "Scored", "Series", "Structure", "backtest", "forecast"]
