"""What a survey costs those who answer it, and what it takes to be precise: in words and numbers, for the page."""

from typing import Any

from protocols.planning import AttributePlan, Plan, PrecisionPlan, chances, plan
from protocols.scheme import Scheme

ERROR = 0.01  # the standard error of a share for which the page says how many devices are needed


def costs(scheme: Scheme, loss_accepted: bool = False) -> dict[str, Any]:
    """Guarantees, precision and cautions of a survey.

    `loss_accepted`: a loss of the memo store was accepted, so what rests on the cap no longer holds.
    """
    drawn = plan(scheme, error=ERROR, alternatives=False)
    presence = drawn.presence
    shown = chances(drawn.guarantee, drawn.central, True) if loss_accepted else drawn.chances
    return {
        "declared": drawn.guarantee.declared,
        "solution": drawn.solution,
        "guarantees": [chance.model_dump() for chance in shown],
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
