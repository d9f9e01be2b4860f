"""The memo store: which Redis, which surveys."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np

from memo_store.connection.durability import warn_unless_durable
from memo_store.connection.epochs import History
from memo_store.connection.link import Client, Link
from memo_store.ledger import Spending, read_ledger
from memo_store.registry import registered
from memo_store.sealing import Veil
from memo_store.stats import StoreStats, read_stats
from memo_store.survey_memos import SurveyMemos
from memo_store.survey_state import SurveyState
from protocols.randomness import Devices, Keyring
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
        self.durability = warn_unless_durable(self._link)

    def survey(self, respondent: Respondent) -> SurveyMemos:
        """The memos of one survey's devices.

        Raises FingerprintChanged if the survey's id was used with other terms, and HistoryLost if the survey has a cap
        and the store cannot say what its devices were permitted. A new secret needs a new survey: under the old id it
        would draw second memos for values that have theirs.
        """
        scheme, veil = respondent.scheme, Veil(respondent.keyring, respondent.scheme.survey.id)
        return SurveyMemos(SurveyState(self._link, scheme, veil, self._now), respondent)

    def spending(self, keyring: Keyring, devices: Devices) -> Spending:
        """What these devices have spent, in each survey of this store and in all of them together."""
        surveys = registered(self._link).values()
        ledgers = tuple(read_ledger(self._link, Veil(keyring, terms.id), terms, devices) for terms in surveys)
        return Spending(ledgers, sum((ledger.spent for ledger in ledgers), np.zeros(len(devices))))

    def stats(self) -> StoreStats:
        """How much was spent, by how many devices, and how large the store is. Needs no key."""
        return read_stats(self._link)

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
