"""What a survey will cost, reveal and deliver, and what its author should know."""

from protocols.planning.links import CrowdPlan, LinkPlan
from protocols.planning.plan import DEVICES, AttributePlan, NoisePlan, Plan, plan
from protocols.planning.presence import PresenceErrors, PresencePlan

__all__ = [
    "DEVICES",
    "AttributePlan",
    "CrowdPlan",
    "LinkPlan",
    "NoisePlan",
    "Plan",
    "PresenceErrors",
    "PresencePlan",
    "plan",
]
