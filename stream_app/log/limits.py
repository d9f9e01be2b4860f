"""How large records may be."""

from __future__ import annotations

RECORD_BYTES = 8 * 1024 * 1024
"""The largest record that the app writes."""
RECORD_COST = 1024
"""What a record costs besides its value, in memory and in time: small ones would otherwise be taken for nothing."""
VALUE_BYTES = RECORD_BYTES - 64 * 1024
"""The largest value of a record: there must be room for its key and its headers."""
