"""Synthetic records from published results, and what a classifier learns from a table."""
