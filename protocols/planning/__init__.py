"""What a survey will cost, reveal and deliver, and what its author should know."""

from protocols.planning.plan import AttributePlan, NoisePlan, Plan, plan

__all__ = ["AttributePlan", "NoisePlan", "Plan", "plan"]
