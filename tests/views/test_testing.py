"""The test kit: sinks and views that are right pass, and each that is wrong in one way does not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from analytics.columns import Part
from protocols.survey_text import parse_survey
from tests.views.folders import Doubling, FolderSink, Hasty, Racing, content
from tests.views.trials import SURVEY, World, check_sink, check_view
from views.forecasts import FORECASTS
from views.past import Past
from views.results import HISTOGRAMS, MOBILITY, NOWCASTS
from views.view import all_views

WORLDS = {
    "exact": SURVEY,
    "minimum": SURVEY.replace("clock:", "minimum: 100, clock:"),
    "noise": SURVEY.replace("clock:", "presence_epsilon: 1, clock:"),
    "turns": SURVEY.replace("eps_inf: 4, eps_1: 2", "eps: 1, one_in: 3"),
    "forecasts": SURVEY.replace("clock:", "forecast: {ahead: 2, seasons: [7]}, clock:"),
}


@pytest.mark.parametrize("name", WORLDS)
def test_our_views_are_the_same_wherever_a_runner_begins(name: str) -> None:
    """Forecasts are made in the world that asks for them, after three weeks; there the others are no different."""
    for view in (FORECASTS,) if name == "forecasts" else (HISTOGRAMS, MOBILITY, NOWCASTS):
        check_view(view, World(parse_survey(WORLDS[name]), 24 if name == "forecasts" else 5))
    known = {FORECASTS, HISTOGRAMS, MOBILITY, NOWCASTS}
    assert known == {view for view in all_views() if not view.topic.replaced}, "check the new one, too"


def test_a_sink_that_is_right_passes(tmp_path: Path) -> None:
    check_sink(lambda place: FolderSink(f"folder:{tmp_path / place}"), lambda place: content(tmp_path / place))


@pytest.mark.parametrize("broken", [Doubling, Hasty, Racing])
def test_a_sink_that_is_wrong_does_not(tmp_path: Path, broken: type[FolderSink]) -> None:
    with pytest.raises(AssertionError):
        check_sink(lambda place: broken(f"folder:{tmp_path / place}"), lambda place: content(tmp_path / place))


def remembers(past: Past) -> Any:
    past.memory["seen"] = past.memory.get("seen", 0) + 1
    return HISTOGRAMS.make(past).model_copy(update={"period": past.memory["seen"]})


def looks_further(past: Past) -> Any:
    return HISTOGRAMS.make(past).model_copy(update={"period": len(past.finals)})


def changes_columns(found: Any, survey: Any) -> Any:
    return {"n": [Part(1, {f"column_{found.period}": pa.array([1])})]}


def has_odd_columns(found: Any, survey: Any) -> Any:
    return {"n": [Part(1, {"n": pa.array(np.zeros(1, dtype=np.uint8))})]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"make": remembers},
        {"make": looks_further},
        {"tables": changes_columns},
        {"tables": has_odd_columns},
    ],
)
def test_a_view_that_is_wrong_does_not(wrong: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        check_view(replace(HISTOGRAMS, **wrong))
