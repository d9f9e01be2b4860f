"""Results as Parquet files, in directories by survey and date: `DIR/TABLE/survey=ID/date=YYYY-MM-DD/PERIOD.parquet`.

The date is that on which the period begins, in UTC. A file is written under another name, which readers of Parquet pass
over, and renamed: it is there whole or not at all. `DIR/_reached`, which is written last, says through which period a
survey is complete.
"""

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from secrets import token_hex

import pyarrow as pa
import pyarrow.parquet

from servers.private_files import sync_directory
from views.sinks.sink import Made, TableSink, tables_of


class ParquetSink(TableSink):
    """A directory. Files have no column `survey`, as readers know it from the directory that they are in."""

    errors = (OSError, ValueError, LookupError)
    hint = (
        "see whether the disk has space, and who may write there; if `_reached` is deleted, all files are "
        "written again from finals"
    )

    def __init__(self, address: str) -> None:
        super().__init__(address.removeprefix("parquet:"))
        self._root = Path(self._place)
        self._reached = self._root / "_reached"
        self._reached_name = f"{sha256(self.edition.encode()).hexdigest()[:16]}.json"
        with self._explained():
            self._reached.mkdir(parents=True, exist_ok=True)
            _write(probe := self._reached / f".{token_hex(8)}", b"")  # it can be written
            probe.unlink()

    def complete(self) -> Mapping[str, int]:
        with self._explained():
            files = self._reached.glob(f"*/{self._reached_name}")
            return {file.parent.name: json.loads(file.read_bytes())["period"] for file in files}

    def _write(self, waiting: Sequence[Made], through: Mapping[str, int]) -> None:
        with self._explained():
            for made in waiting:
                begin, _ = made.survey.bounds(made.key.period or 0)
                partition = f"survey={made.key.survey}/date={begin.astimezone(UTC).date()}"
                for name, parts in tables_of(made):
                    table = pa.concat_tables([part.table() for part in parts]).drop_columns(["survey"])
                    if len(table):
                        pyarrow.parquet.write_table(table, encoded := BytesIO(), compression="zstd")
                        _write(self._root / name / partition / f"{made.key.period}.parquet", encoded.getvalue())
            complete = self.complete()
            for survey, period in through.items():
                said = {"views": self.edition.split(), "period": max(period, complete.get(survey, -1))}
                _write(self._reached / survey / self._reached_name, json.dumps(said).encode())

    def close(self) -> None:
        """Nothing is open between two calls."""


def _write(path: Path, data: bytes) -> None:
    """Put a file in its place as a whole; it is on disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{token_hex(8)}")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_directory(path.parent)
