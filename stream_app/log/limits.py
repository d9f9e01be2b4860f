"""How large records may be."""

from __future__ import annotations

RECORD_BYTES = 8 * 1024 * 1024
"""The largest record that the app writes."""
VALUE_BYTES = RECORD_BYTES - 64 * 1024
"""The largest value of a record: there must be room for its key and its headers."""
