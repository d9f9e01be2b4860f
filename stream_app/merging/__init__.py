"""Merging what the partitions counted: pure."""
