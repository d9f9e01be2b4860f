"""Counting one partition of the reports topic: pure."""

from stream_app.counting.counters import Statistics

__all__ = ["Statistics"]
