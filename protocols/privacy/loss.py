"""How much an observer can learn, as plans, results and evaluations show it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Loss(BaseModel):
    """The largest log-ratio an observer can find, computed from the survey's channels."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    whole: float | None = Field(description="between any two answers to the whole survey; null: no bound")
    attribute: float | None = Field(description="between two that differ in one attribute; null: no bound")
    exact: bool = Field(description="false: an upper bound, never below the truth")


UNBOUNDED = Loss(whole=None, attribute=None, exact=True)
