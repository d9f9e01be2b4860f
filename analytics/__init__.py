"""Estimates, windows and mobility reports: pure functions over sufficient statistics."""

from analytics.consistent import clip_renormalise, norm_sub
from analytics.estimation import Estimates, estimate, estimate_all
from analytics.likelihood import most_likely
from analytics.smoothing import smooth
from analytics.windows import all_windows, by_gap, first_reports

__all__ = [
    "Estimates",
    "all_windows",
    "by_gap",
    "clip_renormalise",
    "estimate",
    "estimate_all",
    "first_reports",
    "most_likely",
    "norm_sub",
    "smooth",
]
