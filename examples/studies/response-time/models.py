"""Models of response time, before and after places are randomised. All but the first need scikit-learn."""

from collections.abc import Callable

import numpy as np
from incidents import Floats

Predict = Callable[[Floats, Floats, Floats], Floats]
"""Features and minutes to learn from, features to predict for."""


def least_squares(features: Floats, minutes: Floats, wanted: Floats) -> Floats:
    """A linear model with an intercept."""
    ones = np.ones((len(features), 1))
    weights, *_ = np.linalg.lstsq(np.hstack([ones, features]), minutes, rcond=None)
    return np.asarray(weights[0] + wanted @ weights[1:])


def models(seed: int) -> dict[str, Predict]:
    """The models that can be learnt here, by name."""
    found: dict[str, Predict] = {"least squares": least_squares}
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from sklearn.linear_model import LassoCV
        from sklearn.neural_network import MLPRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        return found
    made = {
        "boosted trees": lambda: HistGradientBoostingRegressor(max_iter=200, random_state=seed),
        "MLP": lambda: make_pipeline(
            StandardScaler(),
            MLPRegressor(hidden_layer_sizes=(64, 32), early_stopping=True, max_iter=100, random_state=seed),
        ),
        "LASSO": lambda: make_pipeline(StandardScaler(), LassoCV(cv=4, random_state=seed)),
    }
    for name, make in made.items():
        found[name] = lambda features, minutes, wanted, make=make: make().fit(features, minutes).predict(wanted)
    return found


def rmse(predicted: Floats, minutes: Floats) -> float:
    return float(np.sqrt(np.mean((predicted - minutes) ** 2)))


def mae(predicted: Floats, minutes: Floats) -> float:
    return float(np.mean(np.abs(predicted - minutes)))


def mape(predicted: Floats, minutes: Floats) -> float:
    """The mean error as a share of what it should be."""
    return float(np.mean(np.abs(predicted - minutes) / minutes))


def r_squared(predicted: Floats, minutes: Floats) -> float:
    """The share of the variance that is explained."""
    return float(1 - np.mean((predicted - minutes) ** 2) / np.var(minutes))


FIGURES = {"rmse": rmse, "mae": mae, "mape": mape, "r2": r_squared}
