"""Holding reports until many have come: `--hold M`. What is held is durable in a file of the gateway's own.

Reports of a survey, period and partition are released together once there are M of them, or when the period nears its
end, with fewer. So arrival order and company say nothing. What is released is removed from the file after it is
confirmed; a crash in between sends it twice, and the counter refuses the repeats.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import structlog

from gateway.door.gathering import Cut, in_parts
from gateway.door.judging import closing_time
from protocols.scheme import Scheme
from protocols.wire import Frame, Lookup, Reject, decode_frame, encode_frame, join_frames
from servers.private_files import open_private, private_directory

LEAD_SHARE, LONGEST_LEAD = 10, timedelta(minutes=5)
"""Held reports leave a tenth of the time in which a period is open before its end, and at most so long."""
MOST_HELD = 1_000_000
"""Reports that are held at most; beyond that they go straight to the log."""
_TABLE = """
CREATE TABLE IF NOT EXISTS held (
    id INTEGER PRIMARY KEY, survey TEXT NOT NULL, period INTEGER NOT NULL, partition INTEGER NOT NULL,
    frame BLOB NOT NULL
)
"""
Place = tuple[str, int, int]  # survey, period, partition


class Held(NamedTuple):
    """The reports of a place, up to the last one that was read."""

    place: Place
    last: int


log = structlog.get_logger(__name__)


def release_time(scheme: Scheme, period: int) -> float:
    """From when on reports of a period are not held any longer."""
    survey = scheme.survey
    lead = min(LONGEST_LEAD, (survey.period + survey.grace) / LEAD_SHARE)
    return (closing_time(survey, period) - lead).timestamp()


class Holder:
    """Held reports in a directory. One call ends before the next begins."""

    def __init__(self, directory: Path, most: int) -> None:
        file = private_directory(directory) / "held.sqlite"
        open_private(file, "ab").close()  # SQLite gives the files beside it the same mode
        self._most = most
        self._db = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(_TABLE)
        self._tokens: dict[Place, set[int]] = {}
        self._unread = True

    def holds(self, scheme: Scheme, period: int, now: float) -> bool:
        """Whether a report of this period is held. With `clock: source` none is: its end is not known."""
        full = sum(map(len, self._tokens.values())) >= MOST_HELD
        return scheme.survey.clock == "wall" and not full and now < release_time(scheme, period)

    def keep(self, cuts: Sequence[tuple[Scheme, Cut]]) -> None:
        """Make reports durable here. One whose token is held already is not kept again."""
        if not cuts:
            return
        self._db.execute("BEGIN IMMEDIATE")
        for scheme, cut in cuts:
            for partition, frame in cut.frames:
                place = frame.survey, frame.period, partition
                tokens = self._tokens.setdefault(place, set())
                new = np.array([token not in tokens for token in frame.tokens.tolist()])
                if new.any():
                    kept = frame.take(new)
                    tokens.update(kept.tokens.tolist())
                    record = (*place, encode_frame(kept, scheme))
                    self._db.execute("INSERT INTO held (survey, period, partition, frame) VALUES (?, ?, ?, ?)", record)
        self._db.execute("COMMIT")

    def ripe(self, lookup: Lookup, now: float) -> list[tuple[Held, list[tuple[int, bytes]]]]:
        """What is to be released now: a place, and the frames with everything that it held."""
        if self._unread:
            self._read(lookup)
        found = []
        for place, tokens in self._tokens.items():
            scheme = lookup(place[0])
            if scheme is None or not tokens or (len(tokens) < self._most and now < release_time(scheme, place[1])):
                continue
            rows = self._db.execute(
                "SELECT id, frame FROM held WHERE survey = ? AND period = ? AND partition = ? ORDER BY id", place
            ).fetchall()
            frames = [frame for _, value in rows for frame in _decoded(value, lookup)]
            parts = [part for whole in _alike(frames) for part in in_parts(whole.sorted())]
            released = [(place[2], encode_frame(part, scheme)) for part in parts]
            found.append((Held(place, rows[-1][0] if rows else 0), released))
        return found

    def forget(self, held: Held) -> None:
        """Remove what was confirmed. What was kept in the meantime stays."""
        where = "survey = ? AND period = ? AND partition = ?"
        self._db.execute(f"DELETE FROM held WHERE {where} AND id <= ?", (*held.place, held.last))
        del self._tokens[held.place]
        self._unread = True  # what was kept in the meantime is read again

    def close(self) -> None:
        self._db.close()

    def _read(self, lookup: Lookup) -> None:
        """Find out what is in the file: at first what an earlier process has left."""
        places = self._db.execute("SELECT survey, period, partition, frame FROM held").fetchall()
        self._unread = any(lookup(survey) is None for survey, *_ in places)  # a survey may not be known yet
        for survey, period, partition, value in places:
            for frame in _decoded(value, lookup):
                self._tokens.setdefault((survey, period, partition), set()).update(frame.tokens.tolist())
        if places:
            log.debug("held reports were read", frames=len(places))


def _decoded(value: bytes, lookup: Lookup) -> list[Frame]:
    frame = decode_frame(value, lookup)
    return [] if isinstance(frame, Reject) else [frame]


def _alike(frames: Sequence[Frame]) -> list[Frame]:
    """Frames that answer the same attributes, joined."""
    by_form: dict[tuple[str, ...], list[Frame]] = {}
    for frame in frames:
        by_form.setdefault(tuple(frame.answers), []).append(frame)
    return [join_frames(alike) for alike in by_form.values()]
