"""What a survey will cost, reveal and deliver, and what its author should know."""

from protocols.planning.plan import DEVICES, AttributePlan, NoisePlan, Plan, plan
from protocols.planning.precision import (
    PrecisionPlan,
    PresenceErrors,
    PresencePlan,
    SharesPlan,
    told_apart,
    widest_interval,
)

__all__ = [
    "DEVICES",
    "AttributePlan",
    "NoisePlan",
    "Plan",
    "PrecisionPlan",
    "PresenceErrors",
    "PresencePlan",
    "SharesPlan",
    "plan",
    "told_apart",
    "widest_interval",
]
