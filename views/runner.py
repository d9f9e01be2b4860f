"""Makes views of finals as they come, and gives them to sinks. It keeps nothing that it could not make again.

Every sink says through which period it is complete. The runner begins with the period after the lowest of them, and
records have keys, so that writing one again changes nothing. Two runners at once only do the work twice.

A result that readers could not read is never given to a sink: it is *refused*, and with it all results of its period.
Later periods are made. Sinks do not count the period as complete, so it is made at the next start, maybe by a release
that can make it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any

import structlog
from pydantic import BaseModel

from protocols.errors import HearsayError
from protocols.scheme import Scheme
from protocols.survey import Survey
from stream_app.finals import Final, FinalKey, Status
from stream_app.log import FINALS, OPEN, Come, Output
from views.past import Open, Past
from views.reading import Messages
from views.refusing import Refusals, Refused, reason
from views.sinks.sink import Made, Resuming, Sink
from views.view import View, all_views

FLUSH_EVERY = 64
"""Of how many periods results are given to sinks before they are flushed, while it catches up."""

log = structlog.get_logger(__name__)


class Runner:
    """Makes the views of all surveys, or of those that are `mine`. `made` is told of every result.

    What goes wrong with one survey does not stop the others. A refused result costs the results of its period.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        mine: Callable[[str], bool] = lambda survey: True,
        made: Callable[[Made], None] = lambda made: None,
        views: Sequence[View[Any]] | None = None,
        refusals: Refusals | None = None,
    ) -> None:
        self._sinks = sinks
        self._mine = mine
        self._made = made
        self._views = all_views() if views is None else views
        self._refusals = refusals or Refusals()
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
                self._show_open(self._of(survey), FinalKey(survey))
            except Exception as error:
                self._fail(survey, error)
        self._flush()

    def first_needed(self, survey: Survey, periods: Iterable[int]) -> int:
        """The first period of a survey whose final is looked at; `periods` are those that have one."""
        self._surveys[survey.id] = survey
        return self._of(survey.id).first_needed(periods)

    def _of(self, survey: str) -> "SurveyFinals":
        if survey not in self._finals:
            scheme = Scheme(self._surveys[survey])
            if scheme.survey.hides_answers:
                log.warning(
                    "no answers are published: devices send their memo, and exact numbers would tell one of them; "
                    "ask with eps_1 under a new id",
                    survey=survey,
                )
            reach = max(view.reach(scheme) for view in self._views)
            self._finals[survey] = SurveyFinals(scheme, reach, self._sinks)
        return self._finals[survey]

    def _take_final(self, survey: "SurveyFinals", key: FinalKey, message: Output) -> bool:
        """Make the views of a final. Returns whether there is something to flush."""
        past = survey.past(key.period or 0, message.value)
        if past is None:
            return False
        views = [view for view in self._views if not view.topic.replaced]
        try:
            results = [(view, _result(view, key, past)) for view in views]
        except Refused as refused:
            self._refusals.note(refused)
            survey.skip(key)
            return False
        takers = survey.takers(past.period)
        for view, result in results:  # all of them, or none if one is refused
            self._give(takers, survey, view, key, result)
        return True

    def _show_open(self, survey: "SurveyFinals", key: FinalKey) -> None:
        """Make the views of what is open. A refused one is made again with the next news."""
        found = survey.open
        if found is None:
            return
        for view in self._views:
            if not view.topic.replaced:
                continue
            try:
                self._give(self._sinks, survey, view, key, _result(view, key, found))
            except Refused as refused:
                self._refusals.note(refused)

    def _give(
        self, sinks: Sequence[Sink], survey: "SurveyFinals", view: View[Any], key: FinalKey, result: BaseModel | None
    ) -> None:
        if result is None:
            return
        made = Made(view, key, result, survey.scheme.survey)
        for sink in sinks:
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


def _result(view: View[Any], key: FinalKey, of: Past | Open) -> BaseModel | None:
    """Make a result, and see whether readers can read it. Raises Refused if not.

    An error that explains itself is about the final, and not about this result alone.
    """
    try:
        result: BaseModel | None = view.make(of)
    except HearsayError:
        raise
    except Exception as error:
        raise Refused(view, key, reason(error)) from error
    wrong = "" if result is None else view.what_readers_refuse(result)
    if wrong:
        raise Refused(view, key, wrong)
    return result


def backfill(
    store: Messages,
    sink: Sink,
    surveys: Collection[str] | None = None,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Make what a sink lacks of these surveys, or of all, from all finals of a store; returns of how many periods.

    `step` is told how many finals have been read, and how many there are. Raises ResultsError, when all else is there,
    if results were refused.
    """
    made: set[FinalKey] = set()
    refusals = Refusals()

    def wanted(survey: str) -> bool:
        return surveys is None or survey in surveys

    runner = Runner([sink], wanted, lambda one: made.add(one.key), refusals=refusals)
    known, total, done = store.surveys(), store.count(FINALS), 0
    messages = chain(store.messages(FINALS), store.messages(OPEN))
    while some := list(islice(messages, FLUSH_EVERY)):
        runner.apply(Come(known, [(0, 0, message) for message in some]))
        done += len(some)
        step(min(done, total), total)
    for error in runner.failed.values():
        raise error
    refusals.raise_any()
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

    def __init__(self, scheme: Scheme, reach: int, sinks: Sequence[Sink]) -> None:
        self.scheme = scheme
        self._reach = reach
        self._sinks = [_SurveySink(sink, scheme.survey.id) for sink in sinks]
        self._newest = -1  # final that has come
        self._values: dict[int, bytes] = {}
        self._counted: dict[int, bytes] = {}
        self._first = 0  # of the consecutive finals up to the newest
        self._status: Status | None = None
        self._memory: dict[str, Any] = {}
        # Windows need the finals of a horizon again, with each new one.
        kept = 3 if scheme.survey.releases_windows else scheme.survey.horizon + 1
        self._final = lru_cache(kept)(lambda period: Final.decode(self._values[period]))

    def past(self, period: int, value: bytes) -> Past | None:
        """The finals up to one that has come; None if nothing is to be made of it."""
        if period <= self._newest:  # the first record of a key holds
            return None
        self._newest = period
        self._values[period] = value
        self._values.pop(period - self._reach, None)
        self._first = self._first if period - 1 in self._values else period
        if not self.takers(period) or self._is_superseded(period):
            return None
        first = max(self._first, period - self._reach + 1)
        return Past(self.scheme, _Decoded(self._final, range(first, period + 1)), self._memory)

    def _is_superseded(self, period: int) -> bool:
        """Whether release 0.2 has made a final by a rule that is gone: its results stay where they were published."""
        if not self.scheme.survey.releases_windows or not self._final(period).superseded:
            return False
        log.warning(
            "no results are made again of a period that release 0.2 has closed",
            survey=self.scheme.survey.id,
            period=period,
        )
        return True

    def takers(self, period: int) -> list[Sink]:
        """The sinks that lack the results of a period."""
        return [one.sink for one in self._sinks if one.takes(period)]

    def skip(self, key: FinalKey) -> None:
        """Go on after a period whose results are refused. What was remembered may be half of what it should be."""
        self._memory.clear()
        for one in self._sinks:
            one.skip(key)

    def first_needed(self, periods: Iterable[int]) -> int:
        """The first period whose final is looked at; `periods` are those that have one."""
        lacking = (period for period in sorted(periods) if self.takers(period))
        first = next(lacking, min(one.reached for one in self._sinks) + 1)
        return first + 1 - self._reach

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


class _SurveySink:
    """A sink, and which periods of one survey it takes."""

    def __init__(self, sink: Sink, survey: str) -> None:
        self.sink = sink
        self.reached = sink.complete().get(survey, -1)
        self._survey = survey
        self._stopped = False

    def takes(self, period: int) -> bool:
        """Whether it lacks the results of a period, and can have them now."""
        if self._stopped:
            return False
        if period > self.reached:
            return True
        return isinstance(self.sink, Resuming) and self.sink.lacks(FinalKey(self._survey, period))

    def skip(self, key: FinalKey) -> None:
        """Go on without the results of a period, or stop: a sink that knows no gaps would count it as complete."""
        if not self.takes(key.period or 0):
            return
        if isinstance(self.sink, Resuming):
            self.sink.skip(key)
        else:
            self._stopped = True
