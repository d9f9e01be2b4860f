"""The whole stream app in one process: the same counting and merging over local files instead of a broker.

    DIRECTORY/log/0.log ...     what was sent, a file for each partition
    DIRECTORY/results.sqlite    state, results, dead letters

Kill it at any moment: what `flush` confirmed is in the log, what the log has beyond the state is counted when the
directory is opened again, and state and results change in one transaction.
"""

from __future__ import annotations

import fcntl
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from protocols.errors import DeliveryError, FingerprintChanged, LogError, StateError
from protocols.randomness import Keyring
from protocols.scheme import Scheme
from protocols.survey import Survey
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.counting.state import Rejects
from stream_app.local.log import LocalLog
from stream_app.local.store import LocalStore
from stream_app.log.flushes import Output
from stream_app.merging.merger import Merger

FLUSH_BYTES = 32 << 20  # flush by ourselves when about this much waits to be written


class EmbeddedApp:
    """Counts what is sent to it. It is a sink: anything that sends to Kafka can send here instead.

    `clock_key` is the operator's, `presence_key` that of the noise on presence: both stay the same for a directory.
    """

    def __init__(
        self,
        directory: Path,
        surveys: Sequence[Survey],
        partitions: int,
        clock_key: bytes,
        presence_key: bytes,
    ) -> None:
        (directory / "log").mkdir(parents=True, exist_ok=True)
        self.partitions = partitions
        self.clock_key = clock_key
        with ExitStack() as held:
            held.enter_context(_lock(directory))
            self.store = held.enter_context(closing(LocalStore.to_write(directory)))
            self._settle(directory, surveys)
            lookup = {survey.id: Scheme(survey) for survey in self.store.surveys()}.get
            self._counters = [
                PartitionCounter(p, partitions, lookup, clock_key, self.store.records(f"count/{p}/"))
                for p in range(partitions)
            ]
            self._logs = [
                held.enter_context(
                    closing(LocalLog(directory / "log" / f"{counter.partition}.log", counter.next_offset))
                )
                for counter in self._counters
            ]
            merged = self.store.records("merge/0/")
            self._merger = Merger(0, partitions, lookup, Keyring(presence_key), merged)
            self._catch_up(directory)
            self._held = held.pop_all()

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        """Append a record and count it. It is safe after the next `flush`."""
        counter = self._counters[partition]
        counter.apply(self._logs[partition].append(content_type, value))
        if counter.pending_bytes > FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Make everything sent so far safe, and publish what follows from it.

        If that fails, the app is closed: its counts are ahead of what is written, and only reopening sets that right.
        """
        try:
            for log in self._logs:
                log.sync()
            with self.store.transaction():
                self._write()
        except (OSError, sqlite3.Error) as error:
            self.close()
            raise DeliveryError(
                f"what was sent could not be written: {error}", "make room, then run again: it goes on where it stopped"
            ) from error

    def _write(self) -> None:
        for counter in self._counters:
            for item in counter.flush():
                if isinstance(item, Output) and item.topic == "partials":
                    self._merger.apply(self._merger.next_offset, item.value)
                else:
                    self.store.write([item])
        self.store.write(self._merger.flush())

    @property
    def rejects(self) -> Rejects:
        """Rows refused since the beginning, by survey ("" where it could not be read) and reason."""
        totals: Rejects = {}
        for counter in self._counters:
            for survey, reasons in counter.rejects.items():
                totals.setdefault(survey, Counter()).update(reasons)
        return totals

    def close(self) -> None:
        """Let go of the files. Not a flush."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self.flush()
        self.close()

    def _settle(self, directory: Path, surveys: Sequence[Survey]) -> None:
        """What may not change once there is data: the number of partitions, and the terms under a survey's id."""
        kept = self.store.setting("partitions", str(self.partitions))
        if kept != str(self.partitions):
            raise StateError(f"{directory} has {kept} partitions, not {self.partitions}", "use another directory")
        for survey in surveys:
            text = self.store.setting(f"survey/{survey.id}", survey.model_dump_json())
            if Survey.model_validate_json(text).fingerprint != survey.fingerprint:
                raise FingerprintChanged(
                    f"survey {survey.id!r} was counted in {directory} under other terms",
                    "give changed terms a new id, or use another directory",
                )

    def _catch_up(self, directory: Path) -> None:
        """Count what the log has beyond the state."""
        for log, counter in zip(self._logs, self._counters, strict=True):
            if log.next_offset < counter.next_offset:
                raise LogError(
                    f"{directory}: log {counter.partition} ends at {log.next_offset}, before what was counted",
                    "logs and results belong together; restore both from the same backup",
                )
            for record in log.read(counter.next_offset):
                counter.apply(record)
        self.flush()


def _lock(directory: Path) -> BinaryIO:
    """One process at a time; the lock goes with the process, however it ends."""
    lock = (directory / "lock").open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise StateError(
            f"{directory} is in use by another process", "stop that one, or use another directory"
        ) from None
    return lock
