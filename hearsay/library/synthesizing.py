"""Synthetic records, as an Arrow table that says what it follows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from hearsay.learning.following import follow
from protocols.errors import SettingsError

MOST_ROWS = 10_000_000


def synthesize(
    data: str | Path | None = None,
    *,
    kafka: str | None = None,
    survey: str | None = None,
    rows: int = 10_000,
    window: tuple[int, int] | None = None,
    seed: int = 0,
) -> pa.Table:
    """Draw records that follow what was published, in a data directory or on the Kafka cluster at `kafka` (HOST:PORT).

    One row for each record and one column for each attribute, as `hearsay synthesize` writes them. `window` are the
    first and the last period of what is followed: `(3, 3)` is period 3, and None the last final. `survey` is the
    survey's id, which may be left out if there is only one. The same results and the same `seed` give the same records.

    Only pairs that a cross has asked are followed; all others are independent, or joined by those. The table's metadata
    says so: `about` in lines for people, `hearsay` as JSON with the total variation of records and every measured pair.
    It costs no budget, and what is suppressed stays suppressed.
    """
    if not 1 <= rows <= MOST_ROWS:
        raise SettingsError(f"{rows} rows", f"ask for 1 to {MOST_ROWS:,}")
    return follow(survey, None if data is None else Path(data), kafka, window, rows, seed).table()
