"""Merging the counts of all partitions into results: pure."""
