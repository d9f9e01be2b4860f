"""The table of tokens, and the compiled loops over tables in memory."""

SLOTS_PER_LINE = 8
"""How many tokens of 8 bytes fit in a line of the processor's cache."""
