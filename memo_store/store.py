"""The memo store: a Redis, and the surveys in it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

from memo_store.connection.epochs import LOSS_NOTE, STORE_ID, Epochs, Seen, epoch_keys
from memo_store.connection.link import Client, Link, warn_unless_durable
from memo_store.ledger import StoreStats, read_stats
from memo_store.period_keys import Forgetting
from memo_store.survey_memos import SurveyMemos
from protocols.errors import StoreError
from protocols.respondent import Respondent


class MemoStore(Link, AbstractContextManager["MemoStore"]):
    """Memos that never change, and what each device has spent, on Redis.

    `target` is a URL (redis://, rediss://, unix://) or a client of redis-py. `options`, such as `username` and
    `password`, go to the client that is made from a URL. A server that is part of a cluster is recognised. `lasting`:
    warn if the server may lose what is written.
    """

    def __init__(
        self,
        target: str | Client,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        lasting: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(target, **options)
        self._now = now
        if lasting:
            warn_unless_durable(self)

    @property
    def id(self) -> str | None:
        """The store's id, drawn at its first use; None if it is new, or was emptied."""
        found: bytes | None = self.ask("GET", STORE_ID)
        return None if found is None else found.decode()

    @property
    def history_confirmed(self) -> bool:
        """Whether an operator has confirmed that every shard's history is complete."""
        return all(self.run([("HGET", key, "confirmed") for key in epoch_keys()]))

    def survey(self, respondent: Respondent, seen: Seen = (), forgetting: Forgetting | None = None) -> SurveyMemos:
        """The memos of one survey's devices.

        `seen` is what an earlier process has seen of this store (`SurveyMemos.seen`). If the store has lost data since,
        presence counts as lost. With `forgetting`, reports are drawn from period keys, which are forgotten some time
        after the end of their period (`period_keys`); this must be said each time, from the first time on.

        Raises FingerprintChanged if the survey's id was used with other terms, and HistoryLost if the survey has a cap
        and the store's history is not confirmed. Under a new secret, values that have memos get second ones.
        """
        return SurveyMemos(self, respondent, self._now, seen, forgetting)

    def stats(self) -> StoreStats:
        """How much was spent, by how many devices, and how large the store is. Needs no key."""
        return read_stats(self, self.history_confirmed, self.has_lost_data)

    @property
    def has_lost_data(self) -> bool:
        """Whether the store is known to have lost data at any time. Then no cap bounds what its devices memoised."""
        return self.ask("GET", LOSS_NOTE) is not None

    def accept_loss(self) -> None:
        """Start a new history: the operator accepts that the store has lost what devices memoised.

        Capped surveys are then served, and devices may memoise up to their caps once more.
        """
        Epochs(self).start_history()

    def confirm_history(self) -> None:
        """Let capped surveys be served: the operator declares that the store has lost nothing, because it is new."""
        if self.has_lost_data:
            raise StoreError(
                f"the memo store at {self.where} has lost data", "accept the loss: leave out --nothing-lost"
            )
        Epochs(self).confirm_history()

    def __exit__(self, *_: object) -> None:
        self.close()
