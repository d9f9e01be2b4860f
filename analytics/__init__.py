"""Estimates, windows, mobility reports and forecasts: pure functions over sufficient statistics."""
