"""How the token table is laid out in memory; apart, because the compiled loops and the table both need to know."""

from __future__ import annotations

SLOTS_PER_LINE = 8
"""How many tokens of 8 bytes fit in a line of the processor's cache."""
