"""The forecasts a survey asks for: how far ahead, and with which seasons."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from protocols.survey.attribute import Strict

MOST_AHEAD = 1000
LONGEST_SEASON = 2000


class ForecastPlan(Strict):
    """Forecasts to publish after every period. They are made from published results, so they are no terms."""

    ahead: int = Field(description="how many periods ahead", ge=1, le=MOST_AHEAD)
    seasons: tuple[Annotated[int, Field(ge=2, le=LONGEST_SEASON)], ...] = Field(
        (), max_length=3, description="seasons in periods, such as [24, 168] for days and weeks of hours"
    )
