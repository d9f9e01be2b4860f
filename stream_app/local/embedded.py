"""The whole stream app in one process: the same counting and merging, over local files instead of a broker.

    DIRECTORY/log/0.log ...     the records that were sent, a file for each partition
    DIRECTORY/results.sqlite    state, results, dead letters

The process may be killed at any moment. Records that `flush` confirmed are in the log, records in the log that the
state does not contain are counted when the directory is opened again, and state and results change in one transaction.
After it, the log may forget them all: what is read at a start does not grow with the history.
"""

import os
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

from protocols.errors import DeliveryError, FingerprintChanged, LogError, StateError, SurveyError
from protocols.randomness import Keyring
from protocols.scheme import Scheme, confined_to
from protocols.survey import Survey
from protocols.wire import CLOCK, Frame, Lookup, ReportRow, named
from servers.private_files import lock_directory, private_directory
from stream_app.counting.judging import Record, decode
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.local.log import SAME_BACKUP, Cut, LocalLog
from stream_app.local.store import LocalStore
from stream_app.log.flushes import PARTIALS, Output, Write, state_key
from stream_app.log.marks import Acceptance
from stream_app.log.recovery import LeftOut
from stream_app.merging.merger import Merger

NO_LIMIT = sys.maxsize  # a record in the store may be as large as it needs to be
FLUSH_BYTES = 32 << 20  # flush automatically when about this much has not been written
UNSYNCED_BYTES = 4 << 20
"""Sync when about this much of a log is not on disk: so much is kept in memory, in case a sync fails."""
REPORT_BYTES = 10  # what a report takes at least, wherever it stands: a token and a gap


def _log() -> Any:
    """Where faults are logged: there are seldom any, and structlog takes time to load."""
    import structlog

    return structlog.get_logger(__name__)


class EmbeddedApp(AbstractContextManager["EmbeddedApp"]):
    """Counts the records sent to it. It is a sink, with the interface of the sink for Kafka.

    `clock_key` is the operator's key, `presence_key` the key of the noise on presence. A directory must always be
    opened with the same keys. It keeps the `partitions` that it was made with: one process counts them all, so more
    than one only means more files to sync, and smaller frames. What closes a period is published by the next flush,
    anything else at most every `pace_seconds`. `published` is called after each publication; finals and open periods
    are in the store then, and stay there if it fails. `closed` is called when the app is closed.

    A survey that was counted here before, and cannot be compiled any more, is left out: `refused` says why. What is
    kept of it stays as it is, and the next start tries it again.
    """

    def __init__(
        self,
        directory: Path,
        surveys: Sequence[Survey],
        clock_key: bytes,
        presence_key: bytes,
        *,
        partitions: int = 1,
        pace_seconds: float = 0.0,
        published: Callable[[LocalStore], None] = lambda store: None,
        closed: Callable[[], None] = lambda: None,
    ) -> None:
        private_directory(private_directory(directory) / "log")
        self.clock_key = clock_key
        self._pace_seconds = pace_seconds
        self._after_publication = published
        self._published, self._closes = 0.0, False
        with ExitStack() as held:
            self._held = held  # for what is closed because it fails here
            held.callback(os.close, lock_to_count(directory))
            held.callback(closed)
            self.store = held.enter_context(closing(LocalStore.to_write(directory)))
            self.partitions = int(self.store.setting("partitions", str(partitions)))
            self.refused: dict[str, str] = {}  # by survey
            schemes = self._compile(directory, surveys)
            self.store.leave_out(self.refused)
            self._left_out = {survey: LeftOut(why) for survey, why in self.refused.items()}
            self._counters: list[PartitionCounter] = []
            self._logs: list[LocalLog] = []
            for partition in range(self.partitions):
                counter, log = self._open(log_file(directory, partition), partition, schemes)
                self._counters.append(counter)
                self._logs.append(held.enter_context(closing(log)))
            merged = self.store.records("merge/0/")
            keyring = Keyring(presence_key)
            self._merger = Merger(0, self.partitions, schemes.get, keyring, merged, failing=self._left_out)
            self._catch_up(directory)
            self._held = held.pop_all()

    def _open(self, path: Path, partition: int, schemes: dict[str, Scheme]) -> tuple[PartitionCounter, LocalLog]:
        """A log and its counter. What had to be cut off the log is lost, at most, in the periods that are open."""

        def recovered() -> PartitionCounter:
            records = self.store.records(f"count/{partition}/")
            return PartitionCounter(
                partition,
                self.partitions,
                schemes.get,
                self.clock_key,
                records,
                surveys=schemes,
                limit=NO_LIMIT,
                failing=self._left_out,
            )

        def note(cut: Cut) -> None:
            lost = reports_in(cut.records, cut.damaged_bytes, schemes.get, self.clock_key)
            mark = replace(counter.mark, acceptances=counter.mark.acceptances + 1)
            self.store.write([Write(state_key("count", partition, "accepted"), Acceptance(mark, lost).encode())])
            told = {"log": str(path), "offset": cut.offset, "records": len(cut.records), "reports_at_most": lost}
            advice = "if a backup has this record whole, restore the directory from it"
            _log().error(
                "a record is damaged; it and those behind it are not counted", **told, kept=str(cut.file), advice=advice
            )

        counter = recovered()
        with self._closed_on_failure():
            opened = LocalLog(path, counter.next_offset, note)
        return counter if opened.cut is None else recovered(), opened

    def send(self, partition: int, content_type: str, value: bytes) -> None:
        """Append a record and count it. It is durable after the next `flush`."""
        counter, log = self._counters[partition], self._logs[partition]
        counter.apply(log.append(content_type, value))
        self._closes |= content_type == CLOCK
        if log.unsynced_bytes > UNSYNCED_BYTES:
            self.sync()
        if counter.pending_bytes > FLUSH_BYTES:
            self.publish()

    def sync(self) -> None:
        """Make everything sent so far durable, without a flush: after a crash it is counted from the log."""
        with self._closed_on_failure():
            for log in self._logs:
                log.sync()

    def flush(self) -> None:
        """Make everything sent so far durable, and publish what is due."""
        if self._closes or monotonic() - self._published >= self._pace_seconds:
            self.publish()
        else:
            self.sync()

    def publish(self) -> None:
        """Make everything sent so far durable, and publish all results.

        If that fails, the app is closed: its counts in memory are ahead of the store. Opening the directory again
        recovers them.
        """
        self.sync()
        with self._closed_on_failure():
            with self.store.transaction():
                self._write()
            for log in self._logs:
                log.forget()
        self._after_publication(self.store)
        self._published, self._closes = monotonic(), False

    @contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            self.close()
            raise DeliveryError(
                f"the records sent could not be written: {error}",
                "make sure the disk has space and no faults, then run again: it resumes where it stopped",
            ) from error

    def _write(self) -> None:
        for counter in self._counters:
            for item in counter.flush(everything=True):
                if isinstance(item, Output) and item.topic == PARTIALS:
                    self._merger.apply(self._merger.next_offset, item.value)
                else:
                    self.store.write([item])
        self.store.write(self._merger.flush(everything=True))

    def closed_through(self, survey: str) -> int:
        """The last period of a survey that is closed in every partition; -1 if none is."""
        return min(counter.closed_through(survey) for counter in self._counters)

    def begun_through(self, survey: str) -> int:
        """The last period of a survey of which reports are counted, or the one after the last closed; -1 if none is."""
        held = [number for counter in self._counters for name, number in counter.open_periods if name == survey]
        closed = self.closed_through(survey)
        return max(held, default=closed if closed < 0 else closed + 1)

    def close(self) -> None:
        """Close the files, without a flush."""
        self._held.close()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self.publish()
        self.close()

    def _compile(self, directory: Path, surveys: Sequence[Survey]) -> dict[str, Scheme]:
        """The surveys of the directory, these included, by id. Refuse other terms than each was first counted under.

        Of those that are kept here and not given, one that cannot be used is left out.
        """
        given = [Scheme(survey) for survey in surveys]
        for scheme in given:
            self.store.setting(f"survey/{scheme.survey.id}", scheme.survey.model_dump_json())
        for scheme in given:
            self._require_first_terms(directory, scheme)
        asked = {scheme.survey.id for scheme in given}
        found: dict[str, Scheme] = {}
        for survey in self.store.surveys():
            try:
                with confined_to(survey.id):
                    found[survey.id] = Scheme(survey)
                self._require_first_terms(directory, found[survey.id])
            except (SurveyError, FingerprintChanged) as error:
                if survey.id in asked:
                    raise
                found.pop(survey.id, None)
                self.refused[survey.id] = error.message
                about = {"survey": survey.id, "error": error.message, "advice": error.hint}
                _log().error("a survey that was counted here is left out", **about, exc_info=error.__cause__)
        return found

    def _require_first_terms(self, directory: Path, scheme: Scheme) -> None:
        id = scheme.survey.id
        if self.store.setting(f"fingerprint/{id}", scheme.fingerprint) != scheme.fingerprint:
            raise FingerprintChanged(
                f"survey {id!r} was counted in {directory} under other terms",
                "give the survey a new id, or use another directory; "
                "if its file is unchanged, another release or kind of machine has resolved it to other terms",
            )

    def _catch_up(self, directory: Path) -> None:
        """Count the records of the log that the state does not contain.

        What went wrong with a survey is raised: here somebody is waiting for the result, and none is quarantined.
        """
        for reader in (*self._counters, self._merger):
            for survey, error in reader.failed.items():
                if survey not in self.refused:
                    raise error
        for log, counter in zip(self._logs, self._counters, strict=True):
            if log.confirmed_checksum != counter.mark.epoch:
                raise LogError(
                    f"{directory}: log {counter.partition} is not the one that was counted: record "
                    f"{counter.next_offset - 1} is another",
                    SAME_BACKUP,
                )
            self._require_none_left_out(directory, log.unread)
            counter.apply_all(log.unread)
            log.unread.clear()
        self.publish()

    def _require_none_left_out(self, directory: Path, records: Sequence[Record]) -> None:
        """Refuse to go past records of a survey that is left out: nobody would count them later."""
        for record in records:
            about = named(record.content_type or "", record.value or b"")
            if about is not None and about.survey in self.refused:
                raise StateError(
                    f"{directory}: the log has reports of survey {about.survey!r} that are not counted yet, and this "
                    f"release cannot count them: {self.refused[about.survey]}",
                    "start and stop the release that wrote them once: then they are counted",
                )


def reports_in(records: Sequence[Record], damaged_bytes: int, lookup: Lookup, clock_key: bytes) -> int:
    """How many reports these records and damaged bytes have at most."""
    found = [decode(record, lookup, clock_key) for record in records]
    rows = sum(len(one) if isinstance(one, Frame) else 1 for one in found if isinstance(one, Frame | ReportRow))
    return rows + damaged_bytes // REPORT_BYTES


def log_file(directory: Path, partition: int) -> Path:
    """Where the log of a partition is."""
    return directory / "log" / f"{partition}.log"


def lock_to_count(directory: Path) -> int:
    """Lock the directory for this process. The system releases the lock when the process ends."""
    try:
        return lock_directory(directory)
    except BlockingIOError:
        raise StateError(
            f"{directory} is in use by another process", "stop that process, or use another directory"
        ) from None
