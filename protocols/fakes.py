"""How much the sampled attribute may spend when the others are fake (PROTOCOLS 4)."""

from __future__ import annotations

from math import expm1, log1p

from protocols.errors import SurveyError
from protocols.survey import Survey


def amplified(survey: Survey, eps: float) -> float:
    """The budget e' of the sampled attribute for a declared eps.

    `tuple`: e' is eps, because whole tuples are separated by exactly e'. `published`: ln(d (e^eps - 1) + 1), as
    printed, which holds for one attribute and equal domains only.
    """
    if survey.guarantee == "tuple":
        return eps
    if survey.guarantee == "published":
        return log1p(len(survey.attributes) * expm1(eps))
    raise SurveyError("guarantee: attribute is not calibrated yet", "use tuple or published")
