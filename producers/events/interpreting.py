"""From rows to events: which device-period each belongs to, with which values, and what is wrong with the others.

Persons become devices as soon as they are read, by a hash under the operator's key. All else is a function of the files
alone, not of how they are cut into batches. A replay and a check before it use the same code.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from producers.events.choosing import Rule
from producers.events.quality import Fault, Quality
from producers.files import Batch, ColumnMapping, FileFormat
from producers.files.answers import named, origins_and_destinations, parts, places, set_places
from producers.files.times import BAD, Moments, Repeated, read_times
from protocols.arrays import Devices, Mask, Whole, Words
from protocols.errors import ReplayError
from protocols.randomness import Keyring
from protocols.respondent import UNKNOWN
from protocols.survey import MICROSECOND, Attribute, Survey, micros

ANY_ORDER = timedelta(days=1 << 23)
"""A tolerance longer than the time between any two valid events: nothing is reported before all files are read."""

SKETCH = 1 << 16
"""People that a replay counts exactly: of more, the number is an estimate."""

AHEAD = timedelta(minutes=10)
"""How far the clocks of an edge's sources may be ahead. Events beyond it are faults: a single one of the year 2999
would end all periods before it."""


@dataclass(frozen=True)
class Options:
    """How events are read, and how values are chosen."""

    columns: ColumnMapping
    tolerance: timedelta = timedelta(0)
    """How far events may be out of order: an event may follow events that are later by up to this much."""
    rules: Mapping[str, Rule] = field(default_factory=dict)
    """Which of a period's values is reported, per attribute; by default the last one."""
    zone: ZoneInfo | None = None
    """The zone of times that have none."""
    repeated: Repeated = Repeated.REFUSE
    """Which one is meant by a local time that the clock repeats."""
    until: datetime | None = None
    """Times from here on are bad: a single event in the year 2999 would end all periods before it."""
    form: FileFormat = field(default_factory=FileFormat)
    time_formats: Sequence[str] = ()
    """Formats of times besides ISO 8601 and whole numbers."""
    strict: bool = False
    """Whether the first faulty row stops the replay."""
    most_faults: float = 1.0
    """The share of rows with one fault from which on nothing more is reported."""
    speed: float | None = None
    """How many times as fast as real time a replay's event time runs; None: it never waits."""

    @property
    def meaning(self) -> tuple[object, ...]:
        """What decides which reports a file becomes."""
        return self.tolerance, self.zone, self.repeated, self.form, tuple(self.time_formats)


@dataclass(frozen=True)
class Events:
    """The rows of a batch that name a person."""

    rows: Whole
    devices: Devices
    time: Whole
    """Microseconds since 1970, or BAD."""
    period: Whole
    usable: Mask
    """Which have a valid time and are not late."""
    late: Mask
    values: NDArray[np.int32]
    """By row and attribute: the position of the value, or UNKNOWN; of positions, the quarter of a cell.

    Of sets 0, or UNKNOWN where one of the values is not listed.
    """
    sets: Mapping[int, tuple[Whole, Whole]] = field(default_factory=dict)
    """By the place of an attribute of sets: a row and a position for each of its values, rows ascending."""

    def one_by_one(self) -> "Events":
        """The same with a row for each value of a set, or one without any; the first has the other attributes."""
        if not self.sets:
            return self
        count = len(self.rows)
        sizes = {i: np.bincount(rows, minlength=count) for i, (rows, _) in self.sets.items()}
        repeats = np.maximum(np.max([*sizes.values()], axis=0), 1)
        begins, index = np.cumsum(repeats) - repeats, np.repeat(np.arange(count), repeats)
        values = np.full((len(index), self.values.shape[1]), UNKNOWN, dtype=np.int32)
        values[begins] = self.values
        for i, (rows, positions) in self.sets.items():
            within = np.arange(len(rows)) - (np.cumsum(sizes[i]) - sizes[i])[rows]
            values[:, i] = UNKNOWN
            values[begins[rows] + within, i] = positions
        rows, devices, time, period = self.rows[index], self.devices[index], self.time[index], self.period[index]
        return Events(rows, devices, time, period, self.usable[index], self.late[index], values)


class Distinct:
    """Counts the different ones of many random 64-bit numbers, in bounded memory.

    The count is exact below `size`, and beyond has a relative standard error of one over the root of `size`: numbers
    are uniform, so how many there are follows from the largest of the `size` smallest ones.

    >>> few = Distinct(4)
    >>> few.add(np.array([7, 9, 7], dtype=np.uint64))
    >>> few.count(), few.exact
    (2, True)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._smallest = np.empty(0, dtype=np.uint64)

    def add(self, numbers: Words) -> None:
        if not self.exact:
            numbers = numbers[numbers < self._smallest[-1]]
        self._smallest = np.unique(np.concatenate([self._smallest, numbers]))[: self._size]

    @property
    def exact(self) -> bool:
        return len(self._smallest) < self._size

    def count(self) -> int:
        return len(self._smallest) if self.exact else round((self._size - 1) * 2**64 / int(self._smallest[-1]))


class People:
    """Turns identifiers into device indices, and counts how many different ones there were."""

    def __init__(self, keyring: Keyring) -> None:
        self._key = keyring.key(("person",))
        self.seen = Distinct(SKETCH)

    def devices(self, persons: pa.Array) -> Devices:
        """The device of each person, from the text of the identifier, which is not empty."""
        coded = persons.dictionary_encode()  # people return: each is hashed once in a batch
        persons, key = coded.dictionary.to_pylist(), self._key
        digests = [hashlib.blake2b(person.encode(), key=key, digest_size=8).digest() for person in persons]
        devices = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
        self.seen.add(devices)
        found: Devices = devices[np.asarray(coded.indices)]
        return found


class Interpreter:
    """Reads batches in order. The watermark is the latest event time read so far.

    A period ends when the watermark is at its end plus the tolerance; an event of the period that is read after that is
    late.
    """

    def __init__(self, survey: Survey, options: Options, keyring: Keyring) -> None:
        for attribute in (*options.columns.attributes, *options.rules, *options.columns.positions):
            if survey.index(attribute) >= len(survey.attributes):  # refuses an attribute that the survey does not have
                raise ReplayError(
                    f"{attribute} is a cross, and has no column of its own", "name the columns of its two attributes"
                )
        self.survey = survey
        self.options = options
        self.people = People(keyring)
        self.attributes = len(survey.attributes)
        attributes = {
            a.name: options.columns.attributes.get(a.name, a.name)
            for a in survey.attributes
            if a.name not in options.columns.positions
        }
        self.columns = replace(options.columns, attributes=attributes)  # by default a column has the attribute's name
        self.calendar = survey.calendar
        self.start = micros(survey.start)
        self.tolerance = min(options.tolerance, ANY_ORDER) // MICROSECOND
        last = self.calendar.end(self.calendar.last)
        self.until = min(last, micros(options.until)) if options.until else last
        self.watermark = int(BAD)
        self.before = int(BAD)
        """The time of the row before, for those that the clock repeats."""
        self.enough_tolerance = self.tolerance
        """The tolerance, in microseconds, at which none of the events read so far would be late."""

    def read(self, batch: Batch, quality: Quality) -> Events:
        """The events of a batch. Counts the faults of all rows."""
        note = quality.note
        quality.rows += len(batch.rows) + len(batch.malformed)
        note(Fault.MALFORMED, batch.malformed)
        persons = self.columns.person
        with_person = np.asarray(pc.not_equal(batch.columns[persons], ""))
        note(Fault.NOBODY, batch.rows[~with_person], f"column {persons}")
        batch = batch.only(with_person)
        time = self._times(batch, quality)
        read = time != BAD
        good = read & (time >= self.start) & (time < self.until)
        note(Fault.OUTSIDE, batch.rows[read & ~good], f"column {self.columns.time}")
        watermark = np.maximum.accumulate(np.maximum(np.where(good, time, BAD), self.watermark))
        self.watermark = int(watermark[-1]) if len(watermark) else self.watermark
        period = self.calendar.of(np.where(good, time, self.start))
        end = self.calendar.end(period)
        late = good & (end + self.tolerance <= watermark)
        note(Fault.LATE, batch.rows[late])
        behind = (watermark - end)[late]
        self.enough_tolerance = max(self.enough_tolerance, int(behind.max(initial=-1)) + 1)
        values = np.empty((len(batch.rows), len(self.survey.attributes)), dtype=np.int32)
        sets = {}
        for i, attribute in enumerate(self.survey.attributes):
            if attribute.several is None:
                values[:, i], column = self._values(batch, attribute)
            else:
                column = self.columns.attributes[attribute.name]
                complete, rows, positions = set_places(batch.columns[column], attribute)
                sets[i] = rows, positions
                values[:, i] = np.where(complete, 0, UNKNOWN)
            note(Fault.UNKNOWN_VALUE, batch.rows[values[:, i] == UNKNOWN], f"column {column}")
        quality.check()
        devices = self.people.devices(batch.columns[persons])
        return Events(batch.rows, devices, time, period, good & ~late, late, values, sets)

    def refuse_future(self) -> None:
        """Times far after this moment, by the clock of this machine, are faults from now on."""
        latest = self.calendar.end(self.calendar.last)
        self.until = min(latest, micros(datetime.now(UTC)) + AHEAD // MICROSECOND)

    def _times(self, batch: Batch, quality: Quality) -> Moments:
        column, options = self.columns.time, self.options
        offsets = batch.columns[self.columns.offset] if self.columns.offset else None
        time, skipped, repeated = read_times(
            batch.columns[column], options.zone, options.time_formats, offsets, options.repeated, self.before
        )
        known = time[time != BAD]
        self.before = int(known[-1]) if len(known) else self.before
        bad = time == BAD
        quality.told_apart += int(np.count_nonzero(repeated & ~bad))
        quality.note(Fault.SKIPPED, batch.rows[skipped], f"column {column}")
        quality.note(Fault.REPEATED, batch.rows[repeated & bad], f"column {column}")
        quality.note(Fault.BAD_TIME, batch.rows[bad & ~skipped & ~repeated], f"column {column}")
        return time

    def listed(self, attribute: Attribute) -> Sequence[str]:
        """The texts that its column may have: its values, or the places of transitions."""
        if self.options.rules.get(attribute.name) is Rule.TRANSITION:
            return origins_and_destinations(attribute)[1]
        return attribute.values

    def _values(self, batch: Batch, attribute: Attribute) -> tuple[NDArray[np.int32], str]:
        """The values of an attribute (parts of cells, if they are positions), and the columns that they are from."""
        if attribute.name in self.columns.positions:
            pair = self.columns.positions[attribute.name]
            first, second = (batch.columns[column] for column in pair)
            return parts(first, second, attribute, self.columns.metres), " and ".join(pair)
        column = self.columns.attributes[attribute.name]
        if self.options.rules.get(attribute.name) is Rule.TRANSITION:
            return named(batch.columns[column], self.listed(attribute)), column
        return places(batch.columns[column], attribute), column

    @property
    def last_ended(self) -> int:
        """The last period whose end plus the tolerance is not after the watermark; negative: none."""
        earliest = self.start - 1
        return self.calendar.closed(max(self.watermark - self.tolerance, earliest))
