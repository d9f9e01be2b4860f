"""The document of a device, and what is done to it.

    {"format": 4, "lived": days that the device has lived, "keys": {id: key},
     "kept": {id and purpose: key of version 0.1},
     "surveys": {id: what was joined}, "charges": [[day, survey, question, amount], ...]}

It has no list of memos: that would be a list of true values. Cells are stored only where a cap needs
them. It has no key of a report: that is drawn while the report is settled, used, and never stored.
Who copies the document reads nothing that the device answers later.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Callable

from hearsay_device.clock import Uptime, born
from hearsay_device.limits import Limits
from hearsay_device.migration import FORMAT, migrated
from hearsay_device.respondent import Document, Entropy
from hearsay_device.sending import Sending
from hearsay_device.storage import Storage


class Change(Sending):
    """The document in change, with all that is done to it. What is refused is not stored."""


class State:
    """The state of a device, to be changed and closed."""

    def __init__(
        self,
        path: Path,
        limits: Limits,
        now: Callable[[], float],
        entropy: Entropy,
        uptime: Uptime,
    ) -> None:
        self._limits = limits
        self._now = now
        self._entropy = entropy
        self._uptime = uptime
        self._storage = Storage(path, self._new, migrated)
        self.close = self._storage.close

    @contextmanager
    def change(self, keep: bool = True) -> Iterator[Change]:
        """What is changed inside is stored, all or nothing, or not kept. Other processes wait."""
        moment = self._now()  # before any work, so that no moment that is drawn from it tells of work
        uptime = self._uptime()
        with self._storage.changing(keep) as document:
            yield Change(document, self._limits, moment, uptime, self._entropy)

    def _new(self) -> Document:
        lived = born(self._now(), self._uptime())
        return {
            "format": FORMAT,
            "lived": lived,
            "keys": {},
            "kept": {},
            "surveys": {},
            "charges": [],
        }
