"""When a worker that does not get on gives up, and when it goes on waiting."""

from __future__ import annotations

import pytest

from protocols.errors import ServerError
from stream_app.faust_app.watchdog import Standstill


def test_the_same_again_and_again_is_a_standstill() -> None:
    standstill = Standstill(most_looks=3)
    for _ in range(3):
        standstill.look((7, 100))
    with pytest.raises(ServerError, match="although the broker answers"):
        standstill.look((7, 100))


@pytest.mark.parametrize("other", [(7, 101), (8, 100), None], ids=["recovered more", "assigned anew", "none is due"])
def test_anything_else_in_between_is_not(other: object) -> None:
    standstill = Standstill(most_looks=3)
    for _ in range(4):
        for progress in ((7, 100), (7, 100), (7, 100), other):
            standstill.look(progress)


def test_where_no_progress_is_due_nothing_stands_still() -> None:
    standstill = Standstill(most_looks=3)
    for _ in range(100):
        standstill.look(None)
