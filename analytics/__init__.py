"""Estimates, windows, mobility reports and evaluation: pure functions over sufficient statistics."""
