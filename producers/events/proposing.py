"""The options with which a text file could be read, from its first lines: all of them at once."""

import csv
import shlex
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from producers.events.interpreting import Options
from producers.files import ColumnMapping, places
from producers.files.text_files import SAMPLE, TextFile
from producers.files.times import BAD, moments
from protocols.errors import ReplayError
from protocols.respondent import UNKNOWN
from protocols.survey import Survey

DELIMITERS = ",;\t|"
ROWS = 100
FORMATS = (
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d-%m-%Y %H:%M:%S",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y%m%d %H%M%S",
    "%Y%m%dT%H%M%S",
    "%Y-%m-%d",
    "%d/%m/%Y",
)
UTF_16 = "utf-16"
ANY_ZONE = ZoneInfo("UTC")


def require_columns(path: Path, survey: Survey, columns: ColumnMapping, options: Options) -> None:
    """Refuse a text file that has not all of the columns, with the options that its first lines propose.

    Names of columns are shown if they are names: the first line has no digit, and the rows below it have times.
    """
    if not {".csv", ".tsv"} & set(path.suffixes):
        return
    own = "\t" if ".tsv" in path.suffixes else options.form.delimiter
    try:
        encoding = encoding_of(path, options.form.encoding)
        with TextFile(path, encoding) as file:
            lines = file.read(SAMPLE).splitlines()
        delimiter = own if own in lines[0] else max(DELIMITERS, key=lines[0].count)
        read = islice(csv.reader(lines, delimiter=delimiter), ROWS + 1)
        header, *rows = ([cell.strip() for cell in row] for row in read)
    except (OSError, IndexError, csv.Error):  # damaged, or empty: whoever reads all of it says so
        return
    missing = [name for name in columns.names if name not in header]
    if not missing and delimiter == own and (encoding != UTF_16 or encoding == options.form.encoding):
        return
    cells = {name: pa.array([row[at] for row in rows if len(row) == len(header)]) for at, name in enumerate(header)}
    times = [name for name, texts in cells.items() if len(texts) and _formats(texts) is not None]
    if len(missing) == len(columns.names) and (not times or any(map(str.isdigit, lines[0]))):
        return
    words = [] if encoding == options.form.encoding else ["--encoding", encoding]
    words += [] if delimiter == own else ["--delimiter", delimiter]
    left = {name: texts for name, texts in cells.items() if name not in columns.names}
    for attribute in survey.attributes:
        if columns.attributes.get(attribute.name) in missing:
            known = {name: np.count_nonzero(places(texts, attribute) != UNKNOWN) for name, texts in left.items()}
            best = max(known, key=known.__getitem__, default=None)
            column = best if best is not None and known[best] else "COLUMN"
            words += ["--map", f"{column}={attribute.name}"]
            left.pop(column, None)
    timed = columns.time if columns.time not in missing else next((name for name in times if name in left), "COLUMN")
    left.pop(timed, None)
    if columns.person in missing:
        words += ["--person", next(iter(left), "COLUMN")]
    if columns.time in missing:
        words += ["--time", timed]
    forms = (_formats(cells[timed]) or [] if timed in cells else []) if not options.time_formats else []
    words += ["--time-format", forms[0]] if len(forms) == 1 else []
    raise ReplayError(
        f"{path} has no column {', '.join(map(repr, missing))}" if missing else f"{path} is written in another way",
        f"it has {', '.join(header)}; add what is right of: {shlex.join(words)}",
    )


def encoding_of(path: Path, named: str) -> str:
    """The encoding that was named if the file's beginning is in it, otherwise the likeliest one."""
    try:
        with TextFile(path, named, "strict") as text:
            text.read(SAMPLE)
        return named
    except UnicodeDecodeError:
        with path.open("rb") as file:
            return UTF_16 if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "latin-1"


def _formats(texts: pa.Array) -> list[str] | None:
    """The formats that all of the times have, none for ISO 8601 and whole numbers; None if they are no times."""
    if (moments(texts, ANY_ZONE) != BAD).all():
        return []
    return [form for form in FORMATS if (moments(texts, ANY_ZONE, [form]) != BAD).all()] or None
