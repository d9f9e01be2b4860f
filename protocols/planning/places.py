"""Why places are asked the way they are."""

from __future__ import annotations

from protocols.mechanisms.places.fitting import is_tight
from protocols.mechanisms.places.weighing import WeighedRound
from protocols.question import Question


def placed_why(question: Question) -> str:
    """Of geo-tight also whether it is tight here, or what is used instead, and what that costs."""
    rounds = (question.mechanism.first, question.mechanism.second)
    weighed = [noise for noise in rounds if isinstance(noise, WeighedRound)]
    if not weighed:
        return "places with geo are moved over their grid"
    loose = [noise for noise in weighed if not is_tight(noise)]
    if not loose:
        return "places stay inside their area: the tight mechanism exists, and uses the whole budget"
    return (
        "places stay inside their area; the tight mechanism does not exist where a cell side costs "
        f"{max(noise.rate for noise in loose):.2g}, so the exponential mechanism is used, with weights, at "
        f"{min(noise.slope / noise.rate for noise in loose):.0%} of the rate "
        "(larger cells or a higher level make it tight)"
    )
