"""What a request is answered, by what became of its reports."""

from __future__ import annotations

import json
from enum import Enum
from functools import lru_cache

from gateway.http.messages import Response, refusal
from protocols.wire import Reject


class Outcome(Enum):
    """What becomes of a report that is good."""

    TAKEN = "taken"  # it is in the log
    HELD = "held"  # it is in the gateway's own log
    FAILED = "failed"  # it may or may not be in the log: send it again


Result = Outcome | Reject
TAKEN = Response(201, b'{"status":"taken"}')
HELD = Response(202, b'{"status":"held"}')
UNSURE = refusal(503, "unavailable", "it is not known whether this was counted; send it again", ("retry-after", "2"))


def single(result: Result | None) -> Response:
    if result is Outcome.TAKEN:
        return TAKEN
    if result is Outcome.HELD:
        return HELD
    if isinstance(result, Reject):
        return refusal(422, result.reason, result.detail)
    return UNSURE


def many(results: list[Result | None]) -> Response:
    """201 if all were taken, 202 if some are held; 200 if some were refused, 503 if some must be sent again."""
    if all(result is Outcome.TAKEN for result in results):
        return _all_taken(len(results))
    if Outcome.FAILED in results:
        return UNSURE
    refused = any(isinstance(result, Reject) for result in results)
    status = 200 if refused else 202 if Outcome.HELD in results else 201
    return Response(status, json.dumps({"results": [_in_words(result) for result in results]}).encode())


@lru_cache(maxsize=16)
def _all_taken(reports: int) -> Response:
    return Response(201, b'{"results": [%s]}' % b", ".join([b'{"status": "taken"}'] * reports))


def _in_words(result: Result | None) -> dict[str, str]:
    if isinstance(result, Reject):
        return {"status": "refused", "reason": result.reason, "detail": result.detail}
    assert result is not None
    return {"status": result.value}


def rows(results: list[Result | None]) -> Response:
    """The same for the rows of a frame, counted by reason: its sender knows its rows by their order."""
    if Outcome.FAILED in results:
        return UNSURE
    refused: dict[str, list[int]] = {}
    for row, result in enumerate(results):
        if isinstance(result, Reject):
            refused.setdefault(result.reason, []).append(row)
    count = sum(map(len, refused.values()))
    status = 200 if refused else 202 if Outcome.HELD in results else 201
    return Response(status, json.dumps({"taken": len(results) - count, "refused": refused}).encode())
