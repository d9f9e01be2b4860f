"""A look at event files before anything is reported: what would be lost, why, and which options would help.

It reads with the replay's own code, and needs no key. Of cells, only values that the survey does not list are shown,
and only by --check: advice, which is also part of errors, has counts and column names.
"""

import csv
import secrets
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from producers.events.interpreting import Distinct, Events, Interpreter, Options
from producers.events.quality import Fault, Located, Quality
from producers.files import Batch, ColumnMapping, EventFiles, places
from producers.files.reading import TYPED
from producers.files.text_files import SAMPLE, TextFile
from producers.files.times import BAD, moments, without_zone
from protocols.errors import ReplayError, counted
from protocols.randomness import Keyring
from protocols.respondent import UNKNOWN
from protocols.survey import EPOCH, Survey

SAMPLED_ROWS = 100_000
"""Of each file, before a replay; about as many as are read in one piece."""
PEOPLE_SKETCH = 4096  # people per period are exact up to here, and have an error of 1.6 % beyond
SHOWN = 20  # unknown values of a column, the most frequent ones
DIFFERENT = 10_000  # unknown values of a column that are counted
RUN = 3.0  # rows in a row about one person from which on a file counts as sorted by person
MOST_TOLERANCE = timedelta(days=2)  # beyond it, reading everything before the first report is the better advice
DELIMITERS = ",;\t|"
PROPOSED_ROWS = 100  # of a text file, which say with what options it could be read
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


@dataclass(frozen=True)
class Inspection:
    """What was found in the rows that were looked at."""

    files: int
    rows: int
    complete: bool
    """Whether all rows are known to have been read."""
    faults: dict[Fault, Located]
    """Without duplicates, which are not looked for."""
    worst: tuple[Fault, float]
    """The most frequent fault, and its share of the rows."""
    told_apart: int
    """Local times that the clock repeats, of which one was chosen by the options."""
    people: dict[int, int]
    """By period: the people with an event that is not faulty."""
    unknown: dict[str, dict[str, int]]
    """By column: the most frequent values that the survey does not list, and how often each was found."""
    suppressed: int
    """How many of these periods have fewer people than the survey's minimum."""
    advice: list[str]


def inspect(
    survey: Survey,
    paths: Sequence[Path],
    options: Options,
    most_rows: int | None = SAMPLED_ROWS,
    progress: Callable[[float], None] = lambda _: None,
) -> Inspection:
    """Look at the first rows of each file, or at all of them if `most_rows` is None."""
    files = EventFiles(paths, options.form)
    quality = Quality(files)
    interpreter = Interpreter(survey, options, Keyring(secrets.token_bytes(32)))
    for path in paths:
        require_columns(path, survey, interpreter.columns, options)
    look = _Look(interpreter)
    for batch in files.batches(interpreter.columns, most_rows):
        look.add(batch, interpreter.read(batch, quality))
        progress(batch.share_read)
    people = {period: found.count() for period, found in sorted(look.by_period.items())}
    suppressed = sum(count < survey.threshold for count in people.values())
    named, texts = options.form.encoding, [path for path in paths if path.suffix not in TYPED]
    likely = {path: encoding_of(path, named) for path in texts}
    encodings = [f"{path.name} is not in {named}: try --encoding {it}" for path, it in likely.items() if it != named]
    return Inspection(
        len(paths),
        quality.rows,
        most_rows is None or quality.rows < most_rows,
        {fault: located for fault, located in quality.located().items() if fault is not Fault.DUPLICATE},
        quality.worst(),
        quality.told_apart,
        people,
        {column: dict(values.most_common(SHOWN)) for column, values in look.different.items() if values},
        suppressed,
        [*look.advice(quality), *encodings, *_on_size(survey, people, suppressed)],
    )


def refuse_faulty(survey: Survey, paths: Sequence[Path], options: Options) -> None:
    """Look at the beginning of each file, and refuse to replay if too many rows have one fault."""
    found = inspect(survey, paths, options)
    fault, share = found.worst
    if share > options.most_faults:
        path, line = found.faults[fault].places[0]
        advice = [*found.advice, "see everything with --check; permit more with --most-faults"]
        raise ReplayError(
            f"of the first {found.rows:,} rows {share:.1%} have one fault: {fault}, first in line {line} of "
            f"{path.name}; nothing was sent",
            "; ".join(advice),
        )


class _Look:
    """Collects why rows are faulty."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter, self._survey, self._options = interpreter, interpreter.survey, interpreter.options
        self.by_period: dict[int, Distinct] = {}
        self._runs, self._last_person = 0, None
        self._times: Counter[str] = Counter()
        self._formats: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        self._empty: Counter[str] = Counter()
        self._other_case: Counter[str] = Counter()
        self.different: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, batch: Batch, events: Events) -> None:
        devices = events.devices
        for period in np.unique(events.period[events.usable]).tolist():
            seen = self.by_period.setdefault(period, Distinct(PEOPLE_SKETCH))
            seen.add(devices[events.usable & (events.period == period)])
        if len(devices):
            changes = int(np.count_nonzero(devices[1:] != devices[:-1]))
            self._runs += changes + (devices[0] != self._last_person)
            self._last_person = devices[-1]
        batch = batch.only(np.isin(batch.rows, events.rows, assume_unique=True))
        self._look_at_times(batch.columns[self._interpreter.columns.time], events)
        for i, attribute in enumerate(self._survey.attributes):
            if attribute.name in self._interpreter.columns.positions:
                continue  # no other option helps with a position outside the grid
            name, listed = self._interpreter.columns.attributes[attribute.name], self._interpreter.listed(attribute)
            unknown = batch.columns[name].filter(pa.array(events.values[:, i] == UNKNOWN))
            self._unknown[name] += len(unknown)
            counts = {found["values"]: found["counts"] for found in pc.value_counts(unknown).to_pylist()}
            self.different[name] = Counter(dict((self.different[name] + Counter(counts)).most_common(DIFFERENT)))
            self._empty[name] += int(pc.sum(pc.equal(unknown, "")).as_py() or 0)
            lower = pc.index_in(pc.utf8_lower(unknown), value_set=pa.array([v.lower() for v in listed]))
            self._other_case[name] += len(lower) - lower.null_count

    def _look_at_times(self, column: pa.Array, events: Events) -> None:
        read = events.time != BAD
        self._times["early"] += int(np.count_nonzero(read & (events.time < self._interpreter.start)))
        self._times["future"] += int(np.count_nonzero(read & (events.time >= self._interpreter.until)))
        left = column.filter(pa.array(~read))
        if self._options.zone is not None:  # what its clock skips or repeats can be read
            left = left.filter(pa.array(moments(left, ANY_ZONE, self._options.time_formats) == BAD))
        local = without_zone(left) if self._options.zone is None else 0
        self._times["local"] += local
        self._times["unreadable"] += len(left) - local
        if len(left) > local and pa.types.is_string(left.type):
            for form in FORMATS:
                self._formats[form] += int(np.count_nonzero(moments(left, ANY_ZONE, [form]) != BAD)) - local

    def advice(self, quality: Quality) -> list[str]:
        return [*self._on_times(quality), *self._on_order(quality), *self._on_values()]

    def _on_times(self, quality: Quality) -> list[str]:
        found, column = [], self._interpreter.columns.time
        if skipped := quality.found[Fault.SKIPPED].count:
            found.append(
                f"{counted(skipped, 'time')} in column {column} that the clock in {self._options.zone} skips: "
                "name the zone they are in with --zone"
            )
        if repeated := quality.found[Fault.REPEATED].count:
            found.append(
                f"{counted(repeated, 'time')} in column {column} that the clock in {self._options.zone} shows twice: "
                "name a column that has their offset from UTC with --offset; if rows are in the order of time, use "
                "--repeated order; otherwise choose --repeated first or second"
            )
        if local := self._times["local"]:
            found.append(
                f"{counted(local, 'time')} without a zone in column {column}: give it, such as --zone Europe/Paris"
            )
        if unreadable := self._times["unreadable"]:
            fitting = [form for form in FORMATS if self._formats[form] >= 0.9 * unreadable]
            zone = "" if self._options.zone else ", and their zone with --zone"
            if fitting:
                named = " or ".join(f'--time-format "{form}"' for form in fitting)
                found.append(f"{counted(unreadable, 'time')} of another format in column {column}: try {named}{zone}")
            else:
                found.append(
                    f"{counted(unreadable, 'cell')} of column {column} without a time in ISO 8601 or as a whole number "
                    f"since 1970: name the format with --time-format{zone}"
                )
        if early := self._times["early"]:
            found.append(f"{counted(early, 'event')} before the survey's start, {self._survey.start.isoformat()}")
        if future := self._times["future"]:
            until = (EPOCH + timedelta(microseconds=self._interpreter.until)).isoformat()
            found.append(f"{counted(future, 'event')} at or after {until}: see --until")
        return found

    def _on_order(self, quality: Quality) -> list[str]:
        late = quality.found[Fault.LATE].count
        if not late:
            return []
        people, rows = self._interpreter.people.seen.count(), quality.rows
        if self._runs <= 1.1 * people and rows >= RUN * self._runs:
            return [f"{counted(late, 'late event')}, because the file is sorted by person: use --any-order"]
        needed = timedelta(microseconds=self._interpreter.enough_tolerance)
        if needed > MOST_TOLERANCE:
            return [f"{counted(late, 'late event')}, by up to {needed.days} days: use --any-order"]
        minutes = -(-needed // timedelta(minutes=1))  # rounded up
        return [f"{counted(late, 'late event')}: --tolerance {minutes}m accepts all of those that were looked at"]

    def _on_values(self) -> list[str]:
        found = []
        for column, unknown in self._unknown.items():
            if unknown:
                more = [f"{self._empty[column]:,} are empty"] if self._empty[column] else []
                if self._other_case[column]:
                    more.append(f"{self._other_case[column]:,} differ from a value only in upper or lower case")
                details = f" ({', '.join(more)})" if more else ""
                found.append(f"{counted(unknown, 'cell')} of column {column} without a value of the survey{details}")
        return found


def _on_size(survey: Survey, people: dict[int, int], suppressed: int) -> list[str]:
    if not people:
        return ["no event would be reported"]
    if suppressed:
        return [
            f"{suppressed:,} of {len(people):,} periods have fewer than {survey.threshold} people (`minimum`): "
            "nothing would be published about them"
        ]
    return []


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
        read = islice(csv.reader(lines, delimiter=delimiter), PROPOSED_ROWS + 1)
        header, *rows = ([cell.strip() for cell in row] for row in read)
    except (OSError, IndexError, csv.Error):  # damaged, or empty: whoever reads all of it says so
        return
    missing = [name for name in columns.names if name not in header]
    if not missing and delimiter == own and (encoding != UTF_16 or encoding == options.form.encoding):
        return
    whole = [row for row in rows if len(row) == len(header)]
    cells = {name: pa.array([row[at] for row in whole], pa.string()) for at, name in enumerate(header)}
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
