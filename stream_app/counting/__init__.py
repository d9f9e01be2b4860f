"""Counting one partition of the reports topic: pure."""

from stream_app.counting.counters import Counts, PeriodCounts, Statistics, add_counts
from stream_app.counting.tables.loading import count_with_compiled_loops, load_loops
