"""The interface of a sink; clock records for surveys with `clock: source`; and capture now, send later: Arrow files.

    capture.json       the number of partitions the records are for, and their surveys
    00000000.arrow     the records of one flush: columns partition, content_type, value, in the order sent
    00000001.arrow
    sent.json          the number of the first file that was not sent yet; missing if none was sent

Files are written atomically and synced to disk. Files that were sent may be removed: new ones get higher numbers.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pydantic import BaseModel

from producers.stopping import Stop, never
from protocols.errors import DeliveryError, FingerprintChanged, ReplayError, SettingsError, Stopped, SurveyError
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.wire import CLOCK, Clock, encode_clock
from servers.private_files import private_directory, read_limited, write_private

CAPTURE, SENT, SUFFIX = "capture.json", "sent.json", ".arrow"
MOST_BYTES = 64 << 20
"""More than the surveys of a capture have."""
SCHEMA = pa.schema([("partition", pa.uint32()), ("content_type", pa.string()), ("value", pa.large_binary())])


class Sink(Protocol):
    """Delivers records in order. No record counts as delivered before `flush` has returned.

    Sinks are `KafkaSink`, `DirectorySink` and the embedded app.
    """

    @property
    def partitions(self) -> int:
        """The number of partitions that records are sent to."""
        ...

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        """Send one record. May block until there is room; keeps the order within a partition."""
        ...

    def flush(self) -> None:
        """Return once all sent records are stored. Raises DeliveryError if some are not."""
        ...

    def close(self) -> None:
        """Close connections and files, without a flush."""
        ...


def require_source_clock(survey: Survey) -> None:
    """Refuse a survey whose periods neither a simulation nor a replay can close."""
    if survey.clock != "source":
        raise SurveyError(
            f"survey {survey.id!r} has `clock: wall`: its periods are closed by real time, not by the time of a "
            "simulation or a replay",
            f"make a copy of the survey with another id, such as {survey.id}-sim, and `clock: source`",
        )


class SourceClock:
    """Closes period p once the source's watermark is at the end of p plus grace.

    The watermark is counted in periods: at t, period t begins. Advancing to the same t again changes nothing.
    """

    def __init__(self, survey: Survey, key: bytes, sink: Sink) -> None:
        self._survey = survey
        self._key = key
        self._sink = sink
        self._closed = -1

    def advance(self, time: int) -> None:
        """Close the periods whose grace has ended, if they are open."""
        calendar = self._survey.calendar
        self.finish(calendar.closed(calendar.begin(time), self._survey.grace))

    def finish(self, last: int) -> None:
        """Close all periods up to the last one, by a clock record to every partition: no reports follow."""
        if last <= self._closed:
            return
        record = encode_clock(Clock(self._survey.id, last), self._key)
        try:
            for partition in range(self._sink.partitions):
                self._sink.send(partition, CLOCK, record)
            self._sink.flush()
        except DeliveryError as error:
            where = f"the end of period {last} of survey {self._survey.id!r}"
            raise DeliveryError(f"{where}: {error.message}", error.hint) from error
        self._closed = last


class CapturedSurvey(BaseModel):
    """A survey, and the fingerprint that its captured reports carry."""

    fingerprint: str
    survey: Survey


class Capture(BaseModel):
    """The contents of `capture.json`. Surveys are by id."""

    partitions: int
    surveys: dict[str, CapturedSurvey] = {}

    def check_partitions(self, directory: Path, partitions: int) -> None:
        """Refuse another number of partitions: rows in a wrong partition are not counted."""
        if partitions != self.partitions:
            raise SettingsError(
                f"{directory} was captured for {self.partitions} partitions, not {partitions}",
                "use as many partitions, or capture into another directory",
            )


def read_capture(directory: Path) -> Capture:
    """What is captured in a directory."""
    try:
        return Capture.model_validate_json(read_limited(directory / CAPTURE, MOST_BYTES))
    except (OSError, ValueError):
        raise ReplayError(
            f"{directory} is not a capture: it has no readable {CAPTURE}",
            "give the directory that reports were captured into",
        ) from None


class DirectorySink:
    """Writes records of a survey to a directory, one file per flush. Surveys and files that are already there stay."""

    def __init__(self, directory: Path, partitions: int, scheme: Scheme) -> None:
        private_directory(directory)
        capture = read_capture(directory) if (directory / CAPTURE).exists() else Capture(partitions=partitions)
        capture.check_partitions(directory, partitions)
        new = CapturedSurvey(fingerprint=scheme.fingerprint, survey=scheme.survey)
        if capture.surveys.get(scheme.survey.id, new).fingerprint != new.fingerprint:
            raise FingerprintChanged(
                f"{directory} has reports of survey {scheme.survey.id!r} under other terms",
                "capture into another directory; changed terms need a new id",
            )
        capture.surveys[scheme.survey.id] = new
        write_private(directory / CAPTURE, capture.model_dump_json())
        self._directory = directory
        self.partitions = partitions
        numbers = map(_number, captured_files(directory))
        self._next = max([_first_unsent(directory), *(number + 1 for number in numbers)])
        self._records: list[tuple[int, str, bytes]] = []

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        self._records.append((partition, content_type, value))

    def flush(self) -> None:
        if not self._records:
            return
        partitions, content_types, values = zip(*self._records, strict=True)
        batch = pa.record_batch([partitions, content_types, values], schema=SCHEMA)
        path = self._directory / f"{self._next:08d}{SUFFIX}"
        if path.exists():
            raise DeliveryError(
                f"{len(values)} records were not written: {path} exists, so another process captures into "
                f"{self._directory}",
                "run one capture at a time",
            )
        content = pa.BufferOutputStream()
        with pa.ipc.new_file(content, SCHEMA) as writer:
            writer.write_batch(batch)
        try:
            write_private(path, content.getvalue().to_pybytes())
        except OSError as error:
            raise DeliveryError(
                f"{len(values)} records could not be written to {self._directory}: {error.strerror}",
                "free some space and run again",
            ) from None
        self._next += 1
        self._records = []

    def close(self) -> None:
        self._records = []


def captured_files(directory: Path) -> list[Path]:
    """The files of a capture, in order."""
    return sorted(directory.glob(f"*{SUFFIX}"))


@dataclass(frozen=True)
class Sent:
    """How far sending a capture has come."""

    files: int
    of_files: int
    records: int = 0
    bytes: int = 0


def send_capture(
    directory: Path, sink: Sink, progress: Callable[[Sent], None] = lambda sent: None, stop: Stop = never
) -> Sent:
    """Send the records of a capture, in order, except those of files that were sent before. Returns what was sent now.

    Progress is recorded after each confirmed file. After a crash one file may be sent twice: its reports are then
    refused as repeats, and its clock records change nothing.
    """
    read_capture(directory).check_partitions(directory, sink.partitions)
    files, first = captured_files(directory), _first_unsent(directory)
    unsent = [path for path in files if _number(path) >= first]
    sent = Sent(len(files) - len(unsent), len(files))
    for path in unsent:
        if stop():
            raise Stopped(
                f"stopped after {sent.files} of {len(files)} files of {directory}",
                "send it again to continue from there",
            )
        records = _read(path, sink.partitions)
        for record in records:
            sink.send(*record)
        sink.flush()
        write_private(directory / SENT, json.dumps({"files": _number(path) + 1}).encode())
        size = sum(len(value) for *_, value in records)
        sent = Sent(sent.files + 1, len(files), sent.records + len(records), sent.bytes + size)
        progress(sent)
    return sent


def _number(path: Path) -> int:
    try:
        return int(path.stem)
    except ValueError:
        raise ReplayError(f"{path} is not a file of this capture", "move it out of the directory") from None


def _first_unsent(directory: Path) -> int:
    try:
        return int(json.loads(read_limited(directory / SENT))["files"])
    except FileNotFoundError:
        return 0
    except (ValueError, KeyError, TypeError):
        raise ReplayError(
            f"{directory / SENT} is damaged", "remove it: all files are then sent again, and no report is counted twice"
        ) from None


def _read(path: Path, partitions: int) -> list[tuple[int, str, bytes]]:
    """The records of a file. It is validated, because damaged offsets would read outside of its memory."""
    try:
        with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
            batch = reader.get_batch(0)
        batch.validate(full=True)
        columns = [column.to_pylist() for column in batch.columns]
    except (pa.ArrowException, ValueError, OSError) as error:
        raise ReplayError(f"{path} cannot be read: {error}", "restore it from where it was captured") from None
    if batch.schema != SCHEMA or any(None in column for column in columns) or max(columns[0], default=0) >= partitions:
        raise ReplayError(
            f"{path} is not a file of records captured for {partitions} partitions",
            f"restore it; its columns must be {', '.join(SCHEMA.names)}",
        )
    return list(zip(*columns, strict=True))
