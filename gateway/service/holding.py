"""Holding reports until they are of many senders: `--hold M`. What is held is durable in a file of the gateway's own.

Reports of a survey, period and partition are released together once M senders have sent some, or when the period nears
its end, with fewer. Senders are credentials: an edge is one, however many reports it sends. Where nobody has a
credential, each token is one. A quarter of M senders, chosen at random, stays for a later release: so who sends M - 1
reports to see the next one leave alone fails in one case of four.

What is released is removed from the file after it is confirmed; a crash in between sends it twice, and the counter
refuses the repeats.
"""

import sqlite3
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import SystemRandom
from typing import NamedTuple

import numpy as np
import structlog

from gateway.door.gathering import MOST_ROWS, Cut
from gateway.door.judging import closing_time
from protocols.scheme import Scheme
from protocols.wire import Frame, Lookup, decode_frame, encode_frame, join_frames
from servers.private_files import open_private, private_directory

LEAD_SHARE, LONGEST_LEAD = 10, timedelta(minutes=5)
"""Held reports leave a tenth of the time in which a period is open before its end, and at most so long."""
KEPT_SHARE = 4
"""A release keeps one in four of M senders back."""
MOST_HELD = 1_000_000
"""Reports that are held at most; beyond that they go straight to the log."""
_TABLE = """
CREATE TABLE IF NOT EXISTS held (
    id INTEGER PRIMARY KEY, survey TEXT NOT NULL, period INTEGER NOT NULL, partition INTEGER NOT NULL,
    frame BLOB NOT NULL, sender BLOB NOT NULL
)
"""
Place = tuple[str, int, int]  # survey, period, partition


class Held(NamedTuple):
    """The reports of a place, up to the last one that was read; and those of them that stay, with their senders."""

    place: Place
    last: int
    back: list[tuple[bytes, bytes]]


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
        self._senders: dict[Place, set[bytes]] = {}
        self._unread = True

    def holds(self, scheme: Scheme, period: int, now: float) -> bool:
        """Whether a report of this period is held. With `clock: source` none is: its end is not known."""
        full = sum(map(len, self._tokens.values())) >= MOST_HELD
        return scheme.survey.clock == "wall" and not full and now < release_time(scheme, period)

    def keep(self, cuts: Sequence[tuple[Scheme, Cut, bytes]]) -> None:
        """Make reports durable here, those of an edge with its name. One whose token is held is not kept again."""
        self._db.execute("BEGIN IMMEDIATE")
        for scheme, cut, sender in cuts:
            for partition, frame in cut.frames:
                place = frame.survey, frame.period, partition
                tokens = self._tokens.setdefault(place, set())
                new = np.array([token not in tokens for token in frame.tokens.tolist()])
                if new.any():
                    kept = frame.take(new)
                    self._note(place, sender, kept)
                    self._insert(place, sender, encode_frame(kept, scheme))
        self._db.execute("COMMIT")

    def ripe(self, lookup: Lookup, now: float) -> list[tuple[Held, list[tuple[int, bytes]]]]:
        """What is to be released now: a place, and the frames with what leaves it."""
        if self._unread:
            self._read(lookup)
        found = []
        for place, senders in self._senders.items():
            scheme = lookup(place[0])
            ends = scheme is not None and now >= release_time(scheme, place[1])
            if scheme is None or not senders or (len(senders) < self._most and not ends):
                continue
            staying = set() if ends else set(SystemRandom().sample(sorted(senders), self._most // KEPT_SHARE))
            rows = self._db.execute(
                "SELECT id, sender, frame FROM held WHERE survey = ? AND period = ? AND partition = ? ORDER BY id",
                place,
            ).fetchall()
            frames, back = [], []
            for _, sender, value in rows:
                if isinstance(frame := decode_frame(value, lookup), Frame):
                    stays = np.array([name in staying for name in _senders(sender, frame)])
                    frames.append(frame.take(~stays))
                    if stays.any():
                        back.append((sender, encode_frame(frame.take(stays), scheme)))
            parts = [part for whole in _alike(frames) for part in whole.sorted().parts(MOST_ROWS)]
            released = [(place[2], encode_frame(part, scheme)) for part in parts]
            found.append((Held(place, rows[-1][0] if rows else 0, back), released))
        return found

    def forget(self, held: Held) -> None:
        """Remove what was confirmed. What was kept in the meantime, or is kept back, stays."""
        where = "survey = ? AND period = ? AND partition = ?"
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute(f"DELETE FROM held WHERE {where} AND id <= ?", (*held.place, held.last))
        for sender, frame in held.back:
            self._insert(held.place, sender, frame)
        self._db.execute("COMMIT")
        del self._tokens[held.place], self._senders[held.place]
        self._unread = True  # what stays is read again

    def close(self) -> None:
        self._db.close()

    def _read(self, lookup: Lookup) -> None:
        """Find out what is in the file: at first what an earlier process has left."""
        places = self._db.execute("SELECT survey, period, partition, sender, frame FROM held").fetchall()
        self._unread = any(lookup(survey) is None for survey, *_ in places)  # a survey may not be known yet
        for survey, period, partition, sender, value in places:
            if isinstance(frame := decode_frame(value, lookup), Frame):
                self._note((survey, period, partition), sender, frame)
        if places:
            log.debug("held reports were read", frames=len(places))

    def _note(self, place: Place, sender: bytes, frame: Frame) -> None:
        self._tokens.setdefault(place, set()).update(frame.tokens.tolist())
        self._senders.setdefault(place, set()).update(_senders(sender, frame))

    def _insert(self, place: Place, sender: bytes, frame: bytes) -> None:
        columns = "survey, period, partition, sender, frame"
        self._db.execute(f"INSERT INTO held ({columns}) VALUES (?, ?, ?, ?, ?)", (*place, sender, frame))


def _senders(sender: bytes, frame: Frame) -> list[bytes]:
    """Who has sent each row: an edge, or whoever has the row's token."""
    return [sender or token.to_bytes(8, "big") for token in frame.tokens.tolist()]


def _alike(frames: Sequence[Frame]) -> list[Frame]:
    """Frames that answer the same attributes, joined."""
    by_form: dict[tuple[str, ...], list[Frame]] = {}
    for frame in frames:
        by_form.setdefault(tuple(frame.answers), []).append(frame)
    return [join_frames(alike) for alike in by_form.values()]
