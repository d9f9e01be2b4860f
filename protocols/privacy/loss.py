"""How much an observer can learn, as plans, results and evaluations show it."""

from collections.abc import Sequence
from math import isinf
from typing import Literal

from pydantic import Field

from protocols.survey.names import Strict

Relation = Literal["constant", "renaming", "any"]
"""How the two histories are related that a loss holds between (PROTOCOLS 3).

    constant    in both, the value never changes
    renaming    both are the same up to an injective renaming of cells: they change and return at the same times
    any         nothing is assumed about them
"""


class Loss(Strict):
    """The largest log-ratio an observer can find, computed from the survey's channels."""

    relation: Relation
    whole: float | None
    attribute: float | None
    exact: bool


def stated(relation: Relation, whole: float, attribute: float, exact: bool = True) -> Loss:
    """A loss in which infinity is stated as having no bound.

    >>> from math import inf
    >>> stated("any", inf, inf)
    Loss(relation='any', whole=None, attribute=None, exact=True)
    """
    return Loss(
        relation=relation,
        whole=None if isinf(whole) else whole,
        attribute=None if isinf(attribute) else attribute,
        exact=exact or isinf(whole),
    )


NOT_PROTECTED = 5.0
"""A loss above which two positions count as told apart: the likelier one is right in more than 99 of 100 cases."""


class PlaceLoss(Strict):
    """What an observer can learn about which of two positions it was, by how far they are apart (PROTOCOLS 10)."""

    metres: float
    per_report: float
    for_ever: float | None
    any: dict[int, float | None]
    protected: bool = Field(description=f"whether one report costs at most {NOT_PROTECTED:g}")


def in_words(losses: Sequence[PlaceLoss]) -> str:
    """For people: what one report tells about two positions.

    >>> near = PlaceLoss(metres=400, per_report=1.1, for_ever=None, any={}, protected=True)
    >>> in_words([near, PlaceLoss(metres=10_000, per_report=27.5, for_ever=None, any={}, protected=False)])
    'two positions 400 m apart: 1.1; 10 km apart: 28, not protected'
    """
    parts = [
        f"{_far(loss.metres)} apart: {_figure(loss.per_report)}" + ("" if loss.protected else ", not protected")
        for loss in losses
    ]
    return "two positions " + "; ".join(parts)


def _far(metres: float) -> str:
    return f"{metres:,.3g} m" if metres < 1000 else f"{metres / 1000:,.4g} km"


def _figure(loss: float) -> str:
    return f"{loss:.2g}" if loss < 100 else f"{loss:.0f}"
