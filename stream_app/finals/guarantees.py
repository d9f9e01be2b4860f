"""The guarantees that every published result carries, each with the relation between histories it holds for."""

from functools import lru_cache
from typing import Any

from pydantic import Field, model_validator

from analytics.columns import ResultModel
from protocols.privacy import Loss, PlaceLoss
from protocols.scheme import Scheme

LINKED = (10, 100)  # linked reports of any two histories for which a figure is published
ONCE_STATED = ("central", "central_since_first")
"""Figures that histograms of version 6 had, live results of 8 and mobility reports of 7: readers compute them now."""


class PublishedGuarantees(ResultModel):
    """What an observer can learn about a device's values (PROTOCOLS 3 to 5). Who reported when is not protected.

    Figures that rest on the survey's memo_cap do not hold after a loss of the memo store was accepted; those
    `without_cap` do. What readers of results learn follows from their numbers of answers: `views.results.readers`.
    """

    per_report: Loss
    per_window: Loss | None
    for_ever: Loss
    per_additional_value: Loss | None
    renaming: Loss | None
    renaming_without_cap: Loss | None
    any: dict[int, Loss]
    any_without_cap: dict[int, Loss] | None

    places: dict[str, tuple[PlaceLoss, ...]] = Field({})

    @model_validator(mode="before")
    @classmethod
    def _without_figures_of_readers(cls, given: Any) -> Any:
        """Of results that still state them. Who reads those computes the same figures as for new ones."""
        if not isinstance(given, dict):
            return given
        return {name: entry for name, entry in given.items() if name not in ONCE_STATED}

    @property
    def after_a_loss(self) -> "PublishedGuarantees":
        """What still holds after a loss of the memo store: the figures without the cap in place of those with it."""
        held = {
            "renaming": self.renaming_without_cap or self.renaming,
            "any": self.any_without_cap or self.any,
            "renaming_without_cap": None,
            "any_without_cap": None,
        }
        return self.model_copy(update=held)


@lru_cache(maxsize=64)
def published_guarantees(scheme: Scheme) -> PublishedGuarantees:
    """The guarantees of a survey, as published with each of its results."""
    return PublishedGuarantees(**scheme.guarantees.figures(LINKED))
