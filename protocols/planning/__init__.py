"""What a survey will cost, reveal and deliver, and what its author should know."""

from protocols.planning.plan import AttributePlan, Figure, NoisePlan, Plan, plan

__all__ = ["AttributePlan", "Figure", "NoisePlan", "Plan", "plan"]
