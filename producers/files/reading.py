"""One or many event files, read one after the other as if they were one."""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from producers.files.batch import Batch, ColumnMapping
from producers.files.csv_events import CsvEvents
from producers.files.json_events import json_batches
from producers.files.text_files import SAMPLE, check_encoding
from producers.files.typed_events import ARROW, typed_batches
from protocols.errors import ReplayError

ROWS_PER_FILE = 1 << 40  # file i has the row numbers from i times this on
JSON, TYPED = (".jsonl", ".ndjson"), (".parquet", ".pq", *ARROW)
SUFFIXES = (".csv", ".tsv", *JSON, *TYPED)
STANDARD_INPUT = Path("-")


@dataclass(frozen=True)
class FileFormat:
    """How text files are written; Parquet files describe themselves."""

    delimiter: str = ","
    quotes: bool = True
    """Whether quotes enclose cells; if not, they are text."""
    encoding: str = "utf-8"


class EventFiles:
    """The files of a replay, in order. Rows have numbers that say which file they are from."""

    def __init__(self, paths: Sequence[Path], form: FileFormat | None = None) -> None:
        self.paths = paths
        self._files = [_open(path, form or FileFormat()) for path in paths]

    def batches(self, columns: ColumnMapping, most: int | None = None) -> Iterator[Batch]:
        """The rows of all files; if `most` is given, only about this number of each."""
        sizes = np.array([path.stat().st_size for path in self.paths], dtype=float)
        shares = sizes / max(1.0, sizes.sum())
        for i, file in enumerate(self._files):
            first, before = i * ROWS_PER_FILE, float(shares[:i].sum())
            rows, read = 0, file.batches if isinstance(file, CsvEvents) else file
            for batch in read(columns):
                yield replace(
                    batch,
                    rows=batch.rows + first,
                    malformed=[row + first for row in batch.malformed],
                    share_read=before + batch.share_read * float(shares[i]),
                )
                rows += len(batch.rows) + len(batch.malformed)
                if most is not None and rows >= most:
                    break

    def places(self, rows: Iterable[int]) -> dict[int, tuple[Path, int]]:
        """The file of each row and its line there, as an editor counts."""
        found, sought = dict[int, tuple[Path, int]](), set(rows)
        for i, file in enumerate(self._files):
            own = {row % ROWS_PER_FILE for row in sought if row // ROWS_PER_FILE == i}
            lines = file.lines(own) if isinstance(file, CsvEvents) else {row: row for row in own}
            found |= {i * ROWS_PER_FILE + row: (self.paths[i], line) for row, line in lines.items()}
        return found

    def describe(self, row: int) -> str:
        """Where a row is, in words."""
        path, line = self.places([row])[row]
        return f"line {line}" if len(self.paths) == 1 else f"{path.name} line {line}"

    def identity(self, *options: object) -> str:
        """A hash of the files (of each its size, its first and last megabyte) and of how they are replayed."""
        digest = hashlib.sha256()
        for path in self.paths:
            size = path.stat().st_size
            digest.update(repr(size).encode())
            with path.open("rb") as file:
                digest.update(file.read(SAMPLE))
                file.seek(max(0, size - SAMPLE))
                digest.update(file.read(SAMPLE))
        digest.update(repr(options).encode())
        return digest.hexdigest()[:32]


@contextmanager
def event_paths(sources: Sequence[Path]) -> Iterator[list[Path]]:
    """The files to read. Standard input becomes a private temporary file, as CSV: it is read more than once."""
    if STANDARD_INPUT not in sources:
        yield expand(sources)
        return
    if len(sources) > 1:
        raise ReplayError("standard input (-) cannot be combined with files", "replay one of them at a time")
    with tempfile.TemporaryDirectory(prefix="hearsay-events-") as directory:
        path = Path(directory) / "standard-input.csv"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [path]


def expand(sources: Iterable[Path]) -> list[Path]:
    """The files that are meant by paths, directories and patterns such as `2026-*.csv`, sorted within each."""
    paths: list[Path] = []
    for source in sources:
        if source.is_dir():
            found = event_files(source)
            if not found:
                raise ReplayError(f"{source} has no event files", f"it has none that end with {', '.join(SUFFIXES)}")
        elif not source.exists() and any(sign in source.name for sign in "*?["):
            found = sorted(path for path in source.parent.glob(source.name) if path.is_file())
            if not found:
                raise ReplayError(f"no file is called {source}", "check the pattern, and the directory it is used in")
        else:
            found = [source]
        paths += found
    if twice := sorted({str(path) for path in paths if paths.count(path) > 1}):
        raise ReplayError(f"{twice[0]} is given twice", "give every file once")
    return paths


def event_files(directory: Path) -> list[Path]:
    """The files in a directory that have the name of an event file, sorted."""
    return sorted(
        path
        for path in directory.iterdir()
        if path.is_file() and set(path.suffixes) & set(SUFFIXES) and not path.name.startswith(".")
    )


def _open(path: Path, form: FileFormat) -> CsvEvents | Callable[[ColumnMapping], Iterator[Batch]]:
    """The reader for a file, by its suffix."""
    if not path.is_file():
        raise ReplayError(
            f"there is no file {path}", f"give the path of a file of events, one of {', '.join(SUFFIXES)}"
        )
    delimiter = form.delimiter
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\0\r\n"':
        raise ReplayError(f"{delimiter!r} is not a valid delimiter", "choose one ASCII character, such as , or ;")
    if path.suffix in TYPED:
        return partial(typed_batches, path)
    if set(path.suffixes) & set(JSON):
        return partial(json_batches, path, check_encoding(form.encoding))
    if ".csv" in path.suffixes or ".tsv" in path.suffixes:
        tabs = ".tsv" in path.suffixes
        return CsvEvents(path, "\t" if tabs else delimiter, form.quotes, check_encoding(form.encoding))
    raise ReplayError(f"{path} is not one of {', '.join(SUFFIXES)}", "convert it, or give it the suffix of its format")
