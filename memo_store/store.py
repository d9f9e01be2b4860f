"""The memo store: which Redis, which surveys."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Self

from memo_store.history import History
from memo_store.link import Client, Link
from memo_store.survey_memos import SurveyMemos
from protocols.respondent import Respondent


def _now() -> datetime:
    return datetime.now(UTC)


class MemoStore:
    """First-round perturbations that never change, and what each device has spent, on Redis.

    `target` is a URL (redis://, rediss://, unix://) or a client of redis-py; `options` go to the client that is made
    from a URL, such as `username` and `password`. A server that is part of a cluster is recognised.
    """

    def __init__(self, target: str | Client, *, now: Callable[[], datetime] = _now, **options: Any) -> None:
        self._link = Link(target, **options)
        self._now = now

    def survey(self, respondent: Respondent) -> SurveyMemos:
        """The memos of one survey's devices.

        Raises FingerprintChanged if the survey's id was used with other terms, and HistoryLost if the survey has a cap
        and the store cannot say what its devices were permitted.
        """
        return SurveyMemos(self._link, respondent, self._now)

    def accept_loss(self) -> None:
        """Begin a new history: the store is new, or the operator accepts that what it permitted is forgotten.

        From here on capped surveys are served, and devices may memoise up to their caps once more.
        """
        History(self._link).begin()

    def close(self) -> None:
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
