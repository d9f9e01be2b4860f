"""Counting and merging (pure), and the Faust app around them."""
