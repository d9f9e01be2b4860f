"""Forecasts of published series that know the noise in them: model, filter, fits, intervals, backtests."""

from analytics.forecasting.backtesting import Scored, backtest
from analytics.forecasting.predicting import About, Forecast, adding_up, forecast, unexpected
from analytics.forecasting.series import Series
from analytics.forecasting.structure import Structure
from analytics.forecasting.usual_seasons import check_enough, usual_seasons

__all__ = [
    "About",
    "Forecast",
    "Scored",
    "Series",
    "Structure",
    "adding_up",
    "backtest",
    "check_enough",
    "forecast",
    "unexpected",
    "usual_seasons",
]
