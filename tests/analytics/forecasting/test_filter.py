"""The filter is the Kalman filter of the model: statsmodels says the same."""

import numpy as np
import pytest

from analytics.forecasting.filtering import NO_ORIGINS, log_likelihood, predict
from analytics.forecasting.fitting import Fit
from analytics.forecasting.predicting import Tracked
from analytics.forecasting.structure import FIRST_HARMONIC, Series, Structure
from protocols.arrays import Floats

pytestmark = pytest.mark.xdist_group("statsmodels")  # which takes two CPU seconds to import
STRUCTURES = [Structure(), Structure.of([7]), Structure.of([12, 2]), Structure((24, 168), sides=1)]
PERIODS = 260


def a_fit(structure: Structure) -> Fit:
    point = (-3.75, -1.0, 2.25, -1.5, *(log for place in range(len(structure.seasons)) for log in (0.0, -5.0 - place)))
    return Fit(structure, 50.0, 6, point, point)


def a_series(structure: Structure, seed: int = 3) -> tuple[Floats, Floats]:
    """Values with missing ones, and known noise that is different in every period."""
    random = np.random.default_rng(seed)
    noise = random.uniform(0, 30, PERIODS)
    values = (
        50 + 8 * structure.regressors(np.arange(PERIODS))[:, FIRST_HARMONIC:].sum(axis=1) + random.normal(0, 8, PERIODS)
    )
    values[random.random(PERIODS) < 0.1] = np.nan
    return values, noise


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda structure: str(structure.seasons))
def test_the_likelihood_is_that_of_statsmodels(structure: Structure) -> None:
    from tests.analytics.forecasting.oracle import Oracle

    fit, (values, noise) = a_fit(structure), a_series(structure)
    ours = log_likelihood(values, noise, structure.regressors(np.arange(PERIODS)), *fit.filter(), *NO_ORIGINS)
    theirs = Oracle(values, noise, fit).ssm.loglike()
    assert ours == pytest.approx(theirs, abs=1e-6)


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda structure: str(structure.seasons))
def test_forecasts_are_those_of_statsmodels(structure: Structure) -> None:
    from tests.analytics.forecasting.oracle import Oracle

    fit, (values, noise) = a_fit(structure), a_series(structure)
    last = fit.filter()
    regressors = structure.regressors(np.arange(PERIODS + 30))
    log_likelihood(values, noise, regressors, *last, *NO_ORIGINS)
    mean, variance = np.empty((2, 30))
    predict(*last, regressors[PERIODS:], mean, variance)
    future = Oracle(np.concatenate([values, np.full(30, np.nan)]), np.concatenate([noise, np.zeros(30)]), fit)
    theirs = future.ssm.filter()
    np.testing.assert_allclose(mean, theirs.forecasts[0, PERIODS:], rtol=1e-8)
    np.testing.assert_allclose(variance, theirs.forecasts_error_cov[0, 0, PERIODS:], rtol=1e-8)


def test_many_series_are_updated_as_one_by_one_to_the_last_bit() -> None:
    structure = Structure.of([7])
    values, noise = a_series(structure, 0)
    whole = Series("whole", values, noise, noise)
    fit = a_fit(structure)
    known, later = (Tracked(whole.before(end), structure, fit) for end in (PERIODS, PERIODS - 9))
    for t in range(PERIODS - 9, PERIODS):
        later.take(values[t], noise[t], noise[t], np.array([t]))
    for one, other in zip(known.filters, later.filters, strict=True):
        assert one.x.tobytes() == other.x.tobytes() and one.p.tobytes() == other.p.tobytes()
        assert (one.p == one.p.T).all()
