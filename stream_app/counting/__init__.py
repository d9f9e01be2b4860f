"""Counting one partition of the reports topic: pure."""

from stream_app.counting.counters import Counts, Statistics
from stream_app.counting.tables.tokens import load_loops
