"""What a forecast depends on: how far it looks back."""

import numpy as np
import pytest

from analytics.forecasting import Structure
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from views.forecasts import FORECASTS
from views.forecasts.forecaster import history_length, refit_after

SURVEY = """{id: s, start: 2026-01-05T00:00Z, period: 1d, eps: 1, forecast: {ahead: 3, seasons: SEASONS},
             attributes: [{name: a, values: [x, y]}]}"""


@pytest.mark.parametrize("seasons", [[7], [24, 168]])
def test_a_forecaster_that_begins_anywhere_sees_all_that_the_last_fit_has_seen(seasons: list[int]) -> None:
    """Otherwise a forecast that is made again after a restart would have other bytes."""
    scheme = Scheme(parse_survey(SURVEY.replace("SEASONS", str(seasons))))
    structure = Structure.of(tuple(seasons))
    fits = [period for period in range(6000) if refit_after(period, structure)]
    longest_without_fit = max(np.diff(fits))
    assert FORECASTS.reach(scheme) >= longest_without_fit + history_length(structure)
    assert FORECASTS.reach(scheme) <= longest_without_fit + history_length(structure) + 1, "no more is read than needed"
