"""Capture now, send later: records kept in a directory of Arrow files, and their way from there to another sink.

    capture.json       how many partitions the records are routed to
    00000000.arrow     what one flush confirmed: columns partition, content_type, value, in the order sent
    00000001.arrow
    sent.json          the number of the first file that has not been sent on, once sending has begun

A file appears under its name whole and on disk, or not at all. Files that were sent may be removed: numbers go on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from producers.sinks.base import Sink
from producers.stopping import Stop, never
from protocols.errors import DeliveryError, ReplayError, SettingsError, Stopped

CAPTURE, SENT, SUFFIX = "capture.json", "sent.json", ".arrow"
SCHEMA = pa.schema([("partition", pa.uint32()), ("content_type", pa.string()), ("value", pa.large_binary())])


class DirectorySink:
    """Writes records to a directory, one file a flush. A directory that has files already is continued."""

    def __init__(self, directory: Path, partitions: int) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        if (directory / CAPTURE).exists() and captured_partitions(directory) != partitions:
            raise SettingsError(
                f"{directory} was captured for {captured_partitions(directory)} partitions, not {partitions}",
                "capture into another directory, or for the same number",
            )
        _write_whole(directory / CAPTURE, json.dumps({"partitions": partitions}).encode())
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
                f"{len(values)} records were not written: {path} is there already, so another process captures into "
                f"{self._directory}",
                "let one at a time",
            )
        try:
            _write_whole(path, _as_file(batch))
        except OSError as error:
            raise DeliveryError(
                f"{len(values)} records could not be written to {self._directory}: {error.strerror}",
                "make room and run again",
            ) from None
        self._next += 1
        self._records = []

    def close(self) -> None:
        self._records = []


def captured_files(directory: Path) -> list[Path]:
    """The files of a capture, in order."""
    return sorted(directory.glob(f"*{SUFFIX}"))


def captured_partitions(directory: Path) -> int:
    """For how many partitions a capture was routed."""
    try:
        return int(json.loads((directory / CAPTURE).read_text())["partitions"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ReplayError(
            f"{directory} is not a capture: it has no {CAPTURE} that can be read",
            "name the directory that reports were captured into",
        ) from None


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
    """Send every record of a capture, in order, that an earlier call has not sent; what was sent now.

    It is noted after each file is confirmed. After a crash one file may be sent twice; its reports are then refused
    as repeats, and its clock records say nothing new.
    """
    partitions = captured_partitions(directory)
    if partitions != sink.partitions:
        raise DeliveryError(
            f"{directory} was captured for {partitions} partitions, and there are {sink.partitions}",
            "send it where there are as many, or capture again",
        )
    files, first = captured_files(directory), _first_unsent(directory)
    unsent = [path for path in files if _number(path) >= first]
    sent = Sent(len(files) - len(unsent), len(files))
    for path in unsent:
        if stop():
            raise Stopped(
                f"stopped after {sent.files} of {len(files)} files of {directory}", "send it again to go on from there"
            )
        records = _read(path, partitions)
        for record in records:
            sink.send(*record)
        sink.flush()
        _write_whole(directory / SENT, json.dumps({"files": _number(path) + 1}).encode())
        size = sum(len(value) for *_, value in records)
        sent = Sent(sent.files + 1, len(files), sent.records + len(records), sent.bytes + size)
        progress(sent)
    return sent


def _number(path: Path) -> int:
    try:
        return int(path.stem)
    except ValueError:
        raise ReplayError(f"{path} is no file of this capture", "move it elsewhere") from None


def _first_unsent(directory: Path) -> int:
    try:
        return int(json.loads((directory / SENT).read_text())["files"])
    except FileNotFoundError:
        return 0
    except (ValueError, KeyError, TypeError):
        raise ReplayError(
            f"{directory / SENT} is damaged", "remove it: all is then sent again, and what was counted counts once"
        ) from None


def _read(path: Path, partitions: int) -> list[tuple[int, str, bytes]]:
    """The records of a file, if it is one of ours and sound: damaged offsets would lead out of its memory."""
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


def _as_file(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _write_whole(path: Path, content: bytes) -> None:
    """The file under its name is complete and on disk, or it is not there."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
