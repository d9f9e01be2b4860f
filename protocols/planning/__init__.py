"""What a survey will cost, reveal and deliver, and what its author should know."""

from protocols.planning.links import CrowdPlan, LinkPlan
from protocols.planning.plan import DEVICES, AttributePlan, NoisePlan, Plan, plan
from protocols.planning.precision import PrecisionPlan, told_apart, widest_interval
from protocols.planning.presence import PresenceErrors, PresencePlan
from protocols.planning.shares import SharePlan, SharesPlan

__all__ = [
    "DEVICES",
    "AttributePlan",
    "CrowdPlan",
    "LinkPlan",
    "NoisePlan",
    "Plan",
    "PrecisionPlan",
    "PresenceErrors",
    "PresencePlan",
    "SharePlan",
    "SharesPlan",
    "plan",
    "told_apart",
    "widest_interval",
]
