"""How much an observer can learn, as plans, results and evaluations show it."""

from __future__ import annotations

from math import isinf
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Relation = Literal["constant", "renaming", "any"]
"""How the two histories are related that a loss holds between (PROTOCOLS 3).

    constant    in both, the value never changes
    renaming    both are the same up to an injective renaming of cells: they change and return at the same times
    any         nothing is assumed about them
"""


class Loss(BaseModel):
    """The largest log-ratio an observer can find, computed from the survey's channels."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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
