"""Results of `hearsay serve` are made beside its reports: a slow one holds up nothing, a failed one ends it."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event

import pytest

from hearsay.serving.embedded_log import EmbeddedLog
from protocols.errors import StateError
from stream_app.local import EmbeddedApp, LocalStore
from tests.gateway.world import KEY, NOON, PATIENCE_SECONDS, SCHEME
from tests.stream_app.worlds import Reports, Row, wire
from views import local
from views.local import LocalViews, ViewsBeside
from views.reading import Results


def a_report(token: int) -> list[tuple[int, bytes]]:
    _, frame = wire(Reports(0, (Row(token),)), SCHEME)
    return [(0, frame)]


@contextmanager
def opened(directory: Path) -> Iterator[EmbeddedLog]:
    """The log of `hearsay serve`, with its views beside it, at noon of the first period."""
    views = ViewsBeside()
    with closing(EmbeddedApp(directory, [SCHEME.survey], KEY, KEY, published=views, closed=views.close)) as app:
        yield EmbeddedLog(app, [SCHEME.survey], lambda: NOON, lambda: 0.0, views.check)


def test_a_report_is_confirmed_while_a_result_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failure would look like: devices that wait for the estimate of another survey, and give up after 20 seconds."""
    may_end, make = Event(), LocalViews.__call__

    def slow(views: LocalViews, store: LocalStore) -> None:
        assert may_end.wait(PATIENCE_SECONDS), "nobody let the result be made"
        make(views, store)

    monkeypatch.setattr(LocalViews, "__call__", slow)

    async def send() -> None:
        with opened(tmp_path) as log:
            try:
                for token in (1, 2, 3):
                    await asyncio.wait_for(log.write(a_report(token)), PATIENCE_SECONDS / 4)
                    await asyncio.wait_for(log.tend(), PATIENCE_SECONDS / 4)
            finally:
                may_end.set()
                await log.close()

    asyncio.run(send())
    live = Results(LocalStore.existing(tmp_path)).live(SCHEME.survey.id)
    assert live is not None
    assert [period.n for period in live.open] == [3]


def test_a_result_that_cannot_be_made_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(views: LocalViews, store: LocalStore) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(LocalViews, "__call__", fail)

    async def send() -> None:
        with opened(tmp_path) as log:
            with pytest.raises(StateError, match="no space left"):
                for _ in range(100):
                    await log.tend()
                    await asyncio.sleep(0.05)
            with pytest.raises(StateError, match="no space left"):
                await log.close()

    asyncio.run(send())


def test_a_process_that_ends_does_not_wait_for_a_slow_result_and_the_next_one_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, make = Event(), LocalViews.__call__

    def slow(views: LocalViews, store: LocalStore) -> None:
        assert may_end.wait(PATIENCE_SECONDS), "nobody let the result be made"

    async def send() -> None:
        with opened(tmp_path) as log:
            await log.write(a_report(1))
            await asyncio.wait_for(log.close(), PATIENCE_SECONDS / 4)

    monkeypatch.setattr(local, "END_SECONDS", 0.1)
    monkeypatch.setattr(LocalViews, "__call__", slow)
    asyncio.run(send())
    may_end.set()
    assert Results(LocalStore.existing(tmp_path)).live(SCHEME.survey.id) is None
    monkeypatch.setattr(LocalViews, "__call__", make)
    monkeypatch.setattr(local, "END_SECONDS", PATIENCE_SECONDS)
    asyncio.run(closed_at_once(tmp_path))
    assert Results(LocalStore.existing(tmp_path)).live(SCHEME.survey.id) is not None


async def closed_at_once(directory: Path) -> None:
    with opened(directory) as log:
        await log.close()
