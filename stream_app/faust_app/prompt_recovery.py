"""Faust's table recovery, without the five seconds it often sleeps at its end.

The task that reads the changelogs announces the end by an event, and clears the event before its next read. Whoever
waits for it comes too late when the last records arrive quickly, and is told only after the read has timed out.
"""

from __future__ import annotations

import asyncio
import logging

from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery


class Announcement(asyncio.Event):
    """Stays until it is taken back."""

    def clear(self) -> None:
        pass

    def take_back(self) -> None:
        super().clear()


class PromptRecovery(Recovery):
    """Announces its end until the next recovery starts."""

    logger = logging.getLogger("faust.tables")

    def _set_recovery_started(self) -> None:
        super()._set_recovery_started()
        self._announcement.take_back()

    @property
    def signal_recovery_end(self) -> Announcement:
        return self._announcement

    def __post_init__(self) -> None:
        self._announcement = Announcement()


class PromptTables(TableManager):
    """Recovers its tables promptly."""

    logger = logging.getLogger("faust.tables")

    @property
    def recovery(self) -> Recovery:
        if self._recovery is None:
            self._recovery = PromptRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery
