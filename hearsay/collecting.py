"""Putting the rooms together: a survey, a secret, a memo store and a collector, for as long as a block lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from analytics.mobility import MobilityReport
from analytics.mobility.combining import combine, with_lates
from hearsay.datadir import DataDirectory
from memo_store import MemoStore, local
from producers.fleet import Fleet
from producers.reporting import Memos
from producers.scenarios import Scenario
from protocols import Keyring, Respondent, Scheme, Survey
from protocols.settings import Settings
from stream_app.embedded import EmbeddedApp

PARTITIONS = 4


@dataclass(frozen=True)
class Collection:
    """Everything a run needs; what is sent to `app` is counted at once."""

    scheme: Scheme
    keyring: Keyring
    memos: Memos
    app: EmbeddedApp

    def fleet(self, scenario: Scenario) -> Fleet:
        return Fleet(self.scheme, self.keyring, self.memos, self.app, scenario, self.app.clock_key)

    def report(self) -> MobilityReport:
        """All that has been published, with what came too late."""
        survey = self.scheme.survey.id
        live = self.app.store.live(survey)
        return with_lates(combine(self.app.store.mobility(survey)), live.lates if live else {})

    def next_period(self) -> int:
        """The first period that is not closed: where an interrupted run goes on."""
        live = self.app.store.live(self.scheme.survey.id)
        return 0 if live is None else live.closed_through + 1


@contextmanager
def embedded(data: DataDirectory, survey: Survey, settings: Settings) -> Iterator[Collection]:
    """A collection in this process, with its state in a data directory."""
    scheme, keyring = Scheme(survey), data.fleet_keyring()
    with (
        memo_store(data, settings) as store,
        EmbeddedApp(data.collector, [survey], PARTITIONS, data.clock_key(), data.presence_key()) as app,
    ):
        yield Collection(scheme, keyring, store.survey(Respondent(scheme, keyring)), app)


@contextmanager
def memo_store(data: DataDirectory, settings: Settings) -> Iterator[MemoStore]:
    """The memo store that is set, or else one in the data directory, with a Redis of its own."""
    if settings.redis.url is not None:
        with MemoStore(settings.redis.url, **settings.redis.client_options()) as store:
            yield store
        return
    unvouched = data.unvouched
    with local(data.redis) as server, MemoStore(server.url) as store:
        if unvouched.exists():
            store.accept_loss()
            unvouched.unlink()
        yield store
