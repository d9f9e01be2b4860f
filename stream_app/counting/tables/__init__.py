"""Sets of tokens, and rows of gaps: by numpy, and by compiled loops where a process asked for them."""

SLOTS_PER_LINE = 8
"""How many tokens of 8 bytes fit in a line of the processor's cache."""
