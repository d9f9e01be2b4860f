"""What a survey costs those who answer it, and what it takes to be precise: in words and numbers, for the page."""

from __future__ import annotations

from typing import Any

from protocols.planning import AttributePlan, Plan, PrecisionPlan, plan, told_apart
from protocols.privacy import Loss, PlaceLoss
from protocols.scheme import Scheme

ERROR = 0.01  # the standard error of a share for which the page says how many devices are needed


def costs(scheme: Scheme, loss_accepted: bool = False) -> dict[str, Any]:
    """Guarantees, precision and cautions of a survey.

    `loss_accepted`: a loss of the memo store was accepted, so what rests on the cap no longer holds.
    """
    drawn = plan(scheme, error=ERROR, alternatives=False)
    presence = drawn.presence
    return {
        "declared": drawn.guarantee.declared,
        "solution": drawn.solution,
        "guarantees": _guarantees(drawn, loss_accepted),
        "loss_accepted": loss_accepted,
        "error": drawn.error,
        "presence_epsilon": None if presence is None else presence.epsilon,
        "precision": [
            _precision(drawn, asked, asked.precision) for asked in drawn.attributes if asked.precision is not None
        ],
        "cautions": [caution.model_dump() for caution in drawn.cautions],
    }


def _precision(drawn: Plan, asked: AttributePlan, exact: PrecisionPlan) -> dict[str, Any]:
    """How many devices the wanted standard error needs, with the noise on counts if there is any."""
    own = exact if drawn.presence is None else drawn.presence.attributes[asked.name]
    return {
        "attribute": asked.name,
        "mechanism": f"{asked.mechanism} {asked.detail}".strip(),
        "devices_needed": own.devices_needed,
    }


def _guarantees(drawn: Plan, loss_accepted: bool) -> list[dict[str, Any]]:
    promise = drawn.guarantee
    linked = "linked reports of a device" if promise.per_window is None else "consecutive periods of a device"
    found = [_guarantee("one report", "any two sets of answers", promise.per_report)]
    if promise.per_window is not None:
        found.append(_guarantee("any one_in consecutive periods", "any two histories", promise.per_window))
    found.append(_guarantee("all reports of a device, linked", "two values that never change", promise.for_ever))
    renaming = promise.renaming_without_cap if loss_accepted else promise.renaming
    if renaming or promise.renaming:
        held = renaming or promise.renaming
        assert held is not None
        found.append(_guarantee("all reports of a device, linked", "histories that change at the same times", held))
    several = (promise.any_without_cap or promise.any) if loss_accepted else promise.any
    found += [_guarantee(f"{t} {linked}", "any two histories", loss) for t, loss in several.items()]
    for span, figures in (drawn.central or {}).items():
        loss = figures.constant
        if loss.epsilon is not None:
            seen = f"all results of a {span}, if {loss.crowd:,} honest devices answer each question in a period"
            figure = Loss(relation="constant", whole=loss.epsilon, attribute=loss.epsilon, exact=False)
            found.append(_guarantee(seen, f"two values that never change, but for a chance of {loss.delta:g}", figure))
    for name, losses in promise.places.items():
        found += [_guarantee_of_place(name, loss) for loss in losses]
    return found


def _guarantee_of_place(name: str, loss: PlaceLoss) -> dict[str, Any]:
    """One report, between two positions."""
    apart = f"two positions {loss.metres:,.0f} m apart" + ("" if loss.protected else " (not protected)")
    figure = Loss(relation="any", whole=loss.per_report, attribute=loss.per_report, exact=True)
    return {**_guarantee(f"one report, {name}", apart, figure), "metres": loss.metres}


def _guarantee(seen: str, between: str, loss: Loss) -> dict[str, Any]:
    """A loss with what it means: how often a guess between the two is right, at most."""
    return {
        "seen": seen,
        "between": between,
        "epsilon": loss.whole,
        "one_attribute": loss.attribute,
        "exact": loss.exact,
        "right_guess": 1.0 if loss.whole is None else told_apart(loss.whole),
    }
