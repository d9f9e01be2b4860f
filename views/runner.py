"""Makes views of finals as they come, and gives them to sinks. It keeps nothing that it could not make again.

Every sink says through which period it is complete. The runner begins with the period after the lowest of them, and
records have keys, so that writing one again changes nothing. Two runners at once only do the work twice.
"""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any

import structlog

from protocols.errors import HearsayError
from protocols.scheme import Scheme
from protocols.survey import Survey
from stream_app.finals import Final, FinalKey, Status
from stream_app.log import FINALS, OPEN, Come, Output
from views.past import Open, Past
from views.reading import Messages
from views.sinks.sink import Made, Sink
from views.view import View, all_views

FLUSH_EVERY = 64
"""Of how many periods results are given to sinks before they are flushed, while it catches up."""

log = structlog.get_logger(__name__)


class Runner:
    """Makes the views of all surveys, or of those that are `mine`. `made` is told of every result.

    What goes wrong with one survey does not stop the others.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        mine: Callable[[str], bool] = lambda survey: True,
        made: Callable[[Made], None] = lambda made: None,
        views: Sequence[View[Any]] | None = None,
    ) -> None:
        self._sinks = sinks
        self._mine = mine
        self._made = made
        self._views = all_views() if views is None else views
        self._surveys: dict[str, Survey] = {}
        self._finals: dict[str, SurveyFinals] = {}
        self.failed: dict[str, Exception] = {}  # by survey: why no results of it are made

    def apply(self, come: Come) -> None:
        """Make what can be made of what has come, and flush the sinks."""
        self._surveys |= {survey.id: survey for survey in come.surveys}
        changed: dict[str, None] = {}
        unflushed = 0
        for _, _, message in come.messages:
            if message.topic not in (FINALS, OPEN):
                continue
            key = FinalKey.decode(message.key)
            if key.survey not in self._surveys or key.survey in self.failed or not self._mine(key.survey):
                continue
            try:
                if message.topic == FINALS:
                    unflushed += self._take_final(self._of(key.survey), key, message)
                else:
                    self._of(key.survey).take_open(key, message)
                    changed[key.survey] = None
            except Exception as error:
                self._fail(key.survey, error)
            if unflushed >= FLUSH_EVERY:
                self._flush()
                unflushed = 0
        for survey in changed:
            try:
                own, found = self._of(survey), self._of(survey).open
                for view in self._views:
                    if view.topic.replaced and found is not None:
                        self._give(own, view, FinalKey(survey), view.make(found))
            except Exception as error:
                self._fail(survey, error)
        self._flush()

    def first_needed(self, survey: Survey) -> int:
        """The first period of a survey whose final is looked at."""
        self._surveys[survey.id] = survey
        return self._of(survey.id).first_needed

    def _of(self, survey: str) -> "SurveyFinals":
        if survey not in self._finals:
            scheme = Scheme(self._surveys[survey])
            reach = max(view.reach(scheme) for view in self._views)
            reached = [sink.complete().get(survey, -1) for sink in self._sinks]
            self._finals[survey] = SurveyFinals(scheme, reach, reached)
        return self._finals[survey]

    def _take_final(self, survey: "SurveyFinals", key: FinalKey, message: Output) -> bool:
        """Make the views of a final. Returns whether there is something to flush."""
        past = survey.past(key.period or 0, message.value)
        if past is None:
            return False
        results = [(view, view.make(past)) for view in self._views if not view.topic.replaced]
        for view, result in results:  # all of them, or none if one cannot be made
            self._give(survey, view, key, result)
        survey.through = past.period
        return True

    def _give(self, survey: "SurveyFinals", view: View[Any], key: FinalKey, result: Any) -> None:
        if result is None:
            return
        made = Made(view, key, result, survey.scheme.survey)
        for sink, reached in zip(self._sinks, survey.reached, strict=True):
            if key.period is None or key.period > reached:
                sink.add(made)
        self._made(made)

    def _flush(self) -> None:
        for sink in self._sinks:
            sink.flush()

    def _fail(self, survey: str, error: Exception) -> None:
        """Make no more results of a survey until the next start: one left out would be missing for ever.

        What can be tried again, such as a sink that is not there, fails all.
        """
        if isinstance(error, HearsayError) and error.retriable:
            raise error
        self.failed[survey] = error
        expected = isinstance(error, HearsayError)
        log.error("no results", survey=survey, error=str(error), exc_info=None if expected else error)


def backfill(
    store: Messages,
    sink: Sink,
    surveys: Collection[str] | None = None,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Make what a sink lacks of these surveys, or of all, from all finals of a store; returns of how many periods.

    `step` is told how many finals have been read, and how many there are.
    """
    made: set[FinalKey] = set()
    runner = Runner([sink], lambda survey: surveys is None or survey in surveys, lambda one: made.add(one.key))
    known, total, done = store.surveys(), store.count(FINALS), 0
    messages = chain(store.messages(FINALS), store.messages(OPEN))
    while some := list(islice(messages, FLUSH_EVERY)):
        runner.apply(Come(known, [(0, 0, message) for message in some]))
        done += len(some)
        step(min(done, total), total)
    for error in runner.failed.values():
        raise error
    return sum(key.period is not None for key in made)


class _Decoded(Sequence[Final]):
    """Finals of consecutive periods, each decoded when it is looked at."""

    def __init__(self, decode: Callable[[int], Final], periods: range) -> None:
        self._decode = decode
        self._periods = periods

    def __len__(self) -> int:
        return len(self._periods)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return _Decoded(self._decode, self._periods[at])
        return self._decode(self._periods[at])


class SurveyFinals:
    """The last finals of one survey, as many as its views look at, and what is open of it."""

    def __init__(self, scheme: Scheme, reach: int, reached: list[int]) -> None:
        self.reached = reached
        self.scheme = scheme
        self._reach = reach
        self.through = min(reached)  # results are made
        self._values: dict[int, bytes] = {}
        self._counted: dict[int, bytes] = {}
        self._first = 0  # of the consecutive finals up to the newest
        self._status: Status | None = None
        self._memory: dict[str, Any] = {}
        # Windows need the finals of a horizon again, with each new one.
        self._final = lru_cache(scheme.survey.horizon + 1)(lambda period: Final.decode(self._values[period]))

    def past(self, period: int, value: bytes) -> Past | None:
        """The finals up to one that has come; None if nothing is to be made of it."""
        if period in self._values or period < self.first_needed:  # the first record of a key holds
            return None
        self._values[period] = value
        self._values.pop(period - self._reach, None)
        self._first = self._first if period - 1 in self._values else period
        if period <= self.through:
            return None
        first = max(self._first, period - self._reach + 1)
        return Past(self.scheme, _Decoded(self._final, range(first, period + 1)), self._memory)

    @property
    def first_needed(self) -> int:
        return self.through + 2 - self._reach

    def take_open(self, key: FinalKey, message: Output) -> None:
        if key.period is None:
            self._status = Status.model_validate_json(message.value)
            self._counted = {t: value for t, value in self._counted.items() if t in self._status.open}
        else:
            self._counted[key.period] = message.value

    @property
    def open(self) -> Open | None:
        """What is open now; None before the first status."""
        if self._status is None:
            return None
        counted = {t: Final.decode(self._counted[t]) for t in self._status.open if t in self._counted}
        return Open(self.scheme, self._status, counted)
