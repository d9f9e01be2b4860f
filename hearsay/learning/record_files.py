"""Synthetic records as files that say what they follow."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pyarrow.parquet

from hearsay.learning.synthesizing import Synthesis
from protocols.errors import SettingsError

SUFFIXES = (".csv", ".parquet")
ABOUT = "# "
"""Begins the lines above a table in a CSV file that say what it is."""


def check_suffix(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise SettingsError(
            f"{path}: records are written as CSV or Parquet", f"end the name in {' or '.join(SUFFIXES)}"
        )


def write_records(synthesis: Synthesis, path: Path) -> None:
    """Write the records: CSV begins with lines about them, Parquet has them as metadata named `hearsay`."""
    table = synthesis.table()
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
        return
    with path.open("wb") as file:
        file.write("".join(f"{ABOUT}{line}\n" for line in synthesis.lines()).encode())
        pyarrow.csv.write_csv(table, file)
