"""Exact guarantees: per report, after t linked reports, for ever, per value, at the cap; tuples and attributes."""

from protocols.guarantees.survey_wide import Guarantees, Loss

__all__ = ["Guarantees", "Loss"]
