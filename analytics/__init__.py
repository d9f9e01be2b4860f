"""Estimates, windows and mobility reports: pure functions over sufficient statistics."""
