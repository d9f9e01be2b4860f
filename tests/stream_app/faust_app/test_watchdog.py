"""When a worker that makes no progress ends, and when it waits."""

from __future__ import annotations

import pytest

from protocols.errors import ServerError
from stream_app.faust_app.crash import Watchdog


def test_too_many_checks_without_progress_are_an_error() -> None:
    watchdog = Watchdog(max_unchanged=3)
    for _ in range(3):
        watchdog.check((7, 100))
    with pytest.raises(ServerError, match="although the broker answers"):
        watchdog.check((7, 100))


@pytest.mark.parametrize("other", [(7, 101), (8, 100), None], ids=["recovered more", "assigned again", "none is due"])
def test_progress_in_between_starts_the_count_again(other: object) -> None:
    watchdog = Watchdog(max_unchanged=3)
    for _ in range(4):
        for progress in ((7, 100), (7, 100), (7, 100), other):
            watchdog.check(progress)


def test_if_no_progress_is_due_none_is_missed() -> None:
    watchdog = Watchdog(max_unchanged=3)
    for _ in range(100):
        watchdog.check(None)
