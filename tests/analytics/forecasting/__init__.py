"""Forecasts: the filter, its fits, intervals, scores, and what they are compared with."""
