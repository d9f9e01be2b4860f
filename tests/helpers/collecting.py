"""A small collection in a directory: reports are counted as they come, and their results published there."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from stream_app.local import EmbeddedApp, LocalStore
from stream_app.log.flushes import Output
from views.local import collector
from views.view import all_views

KEY = b"the operator's own key"


def small_survey(id: str = "colours", extra: str = "", values: Sequence[str] = ("red", "green", "blue")) -> Survey:
    """A survey with one attribute, of days."""
    listed = ", ".join(f'"{value}"' for value in values)
    return parse_survey(
        f"{{id: {id}, start: 2026-01-05T00:00Z, period: 1d, horizon: 3, eps_inf: 4, eps_1: 2, clock: source, "
        f"minimum: 20, {extra} attributes: [{{name: colour, values: [{listed}], mechanism: l-grr}}]}}"
    )


class Collection:
    """What a source of reports does, and what is published after it."""

    def __init__(self, app: EmbeddedApp, survey: Survey) -> None:
        self._app = app
        self._scheme = Scheme(survey)
        self._tokens = 0

    def report(self, period: int, answers: Sequence[int]) -> None:
        """So many devices that were never seen before answer each value."""
        symbols = np.repeat(np.arange(len(answers), dtype=np.uint8), answers)
        tokens = np.arange(self._tokens + 1, self._tokens + 1 + len(symbols), dtype=np.uint64)
        self._tokens += len(symbols)
        gaps = np.full(len(symbols), self._scheme.survey.horizon, dtype=np.uint16)
        frame = Frame(self._scheme.survey.id, self._scheme.fingerprint, period, tokens, gaps, {"colour": symbols})
        self.send(encode_frame(frame, self._scheme))

    def send(self, frame: bytes) -> None:
        self._app.send(0, FRAME, frame)
        self._app.flush()

    def close(self, through: int) -> None:
        """End all periods up to one."""
        self._app.send(0, CLOCK, encode_clock(Clock(self._scheme.survey.id, through), KEY))
        self._app.flush()

    def finish(self, *periods: Sequence[int]) -> None:
        """So many devices answer each value in each period from the first on, which is closed then."""
        for period, answers in enumerate(periods):
            self.report(period, answers)
            self.close(period)

    @property
    def store(self) -> LocalStore:
        return self._app.store

    def published(self, after: int = 0) -> list[tuple[int, Output]]:
        """The messages of result topics with their ids."""
        names = {topic.name for topic in all_views()}
        return [(id, message) for id, message in self._app.store.after(after) if message.topic in names]


@contextmanager
def collecting(directory: Path, *surveys: Survey) -> Iterator[list[Collection]]:
    """Collections of some surveys in one directory."""
    with collector(directory, surveys, KEY, KEY) as app:
        yield [Collection(app, survey) for survey in surveys]
