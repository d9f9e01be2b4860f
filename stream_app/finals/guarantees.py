"""The guarantees that every published result carries, each with the relation between histories it holds for."""

from functools import lru_cache

from pydantic import Field

from analytics.columns import ResultModel
from protocols.privacy import CentralLoss, Loss, PlaceLoss
from protocols.scheme import Scheme

LINKED = (10, 100)  # linked reports of any two histories for which a figure is published


class PublishedGuarantees(ResultModel):
    """What an observer can learn about a device's values (PROTOCOLS 3 to 5). Who reported when is not protected.

    Figures that rest on the survey's memo_cap do not hold after a loss of the memo store was accepted; those
    `without_cap` do.
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


class CentralGuarantees(PublishedGuarantees):
    """Those of a survey with `central`: also what readers of results learn, or why no figure is stated (PROTOCOLS 11).

    Results of other surveys have none: their answers by gap may be those of a single device.
    """

    central: CentralLoss
    central_since_first: CentralLoss


@lru_cache(maxsize=64)
def published_guarantees(scheme: Scheme) -> PublishedGuarantees:
    """The guarantees of a survey, as published with each of its results."""
    return PublishedGuarantees(**scheme.guarantees.figures(LINKED))


def guarantees_without_figure(scheme: Scheme, why: str) -> PublishedGuarantees:
    """The guarantees of a result that states no central figure, with the reason if its survey has `central`."""
    promised, promise = published_guarantees(scheme), scheme.survey.central
    if promise is None:
        return promised
    none = CentralLoss(epsilon=None, delta=promise.delta, relation="constant", periods=0, crowd=None, why=why)
    return CentralGuarantees(**dict(promised), central=none, central_since_first=none)
