"""Shares of places: early-stopped expectation-maximisation, and intervals that include what stopping removes."""

from analytics.estimation.places.fitting import (
    advance,
    best_steps,
    covariance_of,
    fit_places,
    fitted_places,
    spread_of,
)

__all__ = ["advance", "best_steps", "covariance_of", "fit_places", "fitted_places", "spread_of"]
