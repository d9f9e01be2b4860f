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

    relation: Relation = Field(
        description="between which two histories: constant (the value never changes), renaming (the same up to an"
        " injective renaming of what is memoised), or any two"
    )
    whole: float | None = Field(description="between two that may differ in every attribute; null: no bound")
    attribute: float | None = Field(description="between two that differ in one attribute; null: no bound")
    exact: bool = Field(description="false: an upper bound, never below the truth")


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

    metres: float = Field(description="how far the two positions are apart")
    per_report: float = Field(description="one report, between any two histories")
    for_ever: float | None = Field(
        description="all reports of a place that never changes (constant); also what each further place of histories "
        "that are the same up to renaming adds (renaming); null: reports add up"
    )
    any: dict[int, float | None] = Field(
        description="between any two histories that are never further apart, by linked reports; with memos it does not "
        "depend on the distance; null: no bound"
    )
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
