"""What becomes of the reports of a request, and what it is answered once that is known of all of them."""

import json
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from gateway.http.messages import Response, refusal
from protocols.wire import Reason, Reject


class Outcome(Enum):
    """What becomes of a report that is good."""

    TAKEN = "taken"  # it is in the log
    HELD = "held"  # it is in the gateway's own log
    FAILED = "failed"  # it may or may not be in the log: send it again


Result = Outcome | Reject
DETAILS = {
    Reason.BAD_TOKEN: "a token of zero",
    Reason.BAD_GAP: "a gap of less than 1 or beyond the survey's horizon, or flags that no report of the period has",
    Reason.BAD_VALUE: "an answer beyond the attribute's values, or with spare bits",
    Reason.TOO_MANY_BITS: "an answer that supports more values than the noise of presence_epsilon covers",
}
UNSURE = refusal(503, "unavailable", "it is not known whether this was counted; send it again", ("retry-after", "2"))
ALONE = {
    Outcome.TAKEN: Response(201, b'{"status":"taken"}'),
    Outcome.HELD: Response(202, b'{"status":"held"}'),
    Outcome.FAILED: UNSURE,
}


def single(result: Result) -> Response:
    return refusal(422, result.reason, result.detail) if isinstance(result, Reject) else ALONE[result]


def many(results: list[Result]) -> Response:
    """201 if all were taken, 202 if some are held; 200 if some were refused, 503 if some must be sent again."""
    if all(result is Outcome.TAKEN for result in results):
        return Response(201, b'{"results": [%s]}' % b", ".join([b'{"status": "taken"}'] * len(results)))
    return _response(results, {"results": list(map(_in_words, results))})


def _response(results: list[Result], content: dict[str, Any]) -> Response:
    if Outcome.FAILED in results:
        return UNSURE
    refused = any(isinstance(result, Reject) for result in results)
    status = 200 if refused else 202 if Outcome.HELD in results else 201
    return Response(status, json.dumps(content).encode())


def _in_words(result: Result) -> dict[str, str]:
    if isinstance(result, Reject):
        return {"status": "refused", "reason": result.reason, "detail": result.detail}
    return {"status": result.value}


def rows(results: list[Result]) -> Response:
    """The same for the rows of a frame, counted by reason: its sender knows its rows by their order."""
    refused: dict[str, list[int]] = {}
    for row, result in enumerate(results):
        if isinstance(result, Reject):
            refused.setdefault(result.reason, []).append(row)
    count = sum(map(len, refused.values()))
    return _response(results, {"taken": len(results) - count, "refused": refused})


class Ticket:
    """Collects a result for each report of a request, and calls `done` with the last of them."""

    __slots__ = ("_done", "_left", "results")

    def __init__(self, reports: int, done: Callable[[list[Result]], None]) -> None:
        self.results: list[Result] = [Outcome.FAILED] * reports
        self._left = reports
        self._done = done

    def settle(self, place: int, results: Sequence[Result]) -> None:
        """The results of the reports from a place on."""
        self.results[place : place + len(results)] = results
        self._left -= len(results)
        if self._left == 0:
            self._done(self.results)


def row_reject(reason: Reason, survey: str) -> Reject:
    return Reject(reason, DETAILS[reason], survey)
