"""What becomes of the reports of a request is noted in its ticket; with the last of them it is answered."""

from __future__ import annotations

from collections.abc import Callable

from gateway.service.answers import Result
from protocols.wire import Reason, Reject

DETAILS = {
    Reason.BAD_TOKEN: "a token of zero",
    Reason.BAD_GAP: "a gap of less than 1, or beyond the survey's horizon",
    Reason.BAD_VALUE: "an answer beyond the attribute's values, or with spare bits",
    Reason.TOO_MANY_BITS: "an answer that supports more values than the noise of presence_epsilon covers",
}


class Ticket:
    """Collects a result for each report of a request, and calls `done` with the last of them."""

    __slots__ = ("_done", "_left", "results")

    def __init__(self, reports: int, done: Callable[[list[Result | None]], None]) -> None:
        self.results: list[Result | None] = [None] * reports
        self._left = reports
        self._done = done

    def settle(self, place: int, result: Result) -> None:
        self.results[place] = result
        self._left -= 1
        if self._left == 0:
            self._done(self.results)

    def settle_all(self, result: Result) -> None:
        """The same result for every report."""
        self._done([result] * len(self.results))


def row_reject(reason: Reason, survey: str) -> Reject:
    return Reject(reason, DETAILS[reason], survey)
