"""For whoever writes a view or a sink: worlds of finals, and what must hold in them, whatever crashes.

    check_view(VIEW)                       a view makes the same result wherever a runner begins
    check_sink(open_sink, content)         a sink is complete after any crash, and never claims more than it has

Both raise AssertionError with what is wrong.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from threading import Barrier, BrokenBarrierError
from types import FrameType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.survey import Survey
from protocols.survey_text import parse_survey
from stream_app.counting import Statistics
from stream_app.finals import FinalKey, message
from stream_app.log import FINALS, Come, Output, TopicName
from tests.helpers.published import finals_of
from views.past import Past
from views.reading import decode_result
from views.runner import Runner
from views.sinks import Sink
from views.view import View, all_views, is_piece

SURVEY = """
{id: town, start: 2026-03-28T00:00+01:00, period: 1d, time_zone: Europe/Paris, horizon: 3, eps_inf: 4, eps_1: 2,
 clock: source, attributes: [{name: area, values: [north, east, south]}, {name: page, range: {last: 5}}]}
"""
TYPES = (pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.timestamp("us", tz="UTC"))
"""What columns of tables may be: every sink has a type for each."""
CRASHES = 10
FLUSH_SECONDS = 60.0
"""How long one of two runners waits for the other."""

Content = Mapping[FinalKey, Any]


class World:
    """The finals of a survey with made-up counts, as a store of messages has them. The same seed, the same world."""

    def __init__(self, survey: Survey | None = None, periods: int = 5, seed: int = 1) -> None:
        self.scheme = Scheme(parse_survey(SURVEY) if survey is None else survey)
        random = np.random.default_rng(seed)
        self.finals = finals_of(self.scheme, {period: _counts(self.scheme, random) for period in range(periods)})

    @property
    def keys(self) -> list[FinalKey]:
        return [FinalKey(final.survey, final.period) for final in self.finals]

    def surveys(self) -> list[Survey]:
        return [self.scheme.survey]

    def messages(self, topic: TopicName) -> Iterator[Output]:
        return (message(FINALS, f.survey, f.period, f.encode()) for f in self.finals if topic == FINALS)

    def count(self, topic: TopicName) -> int:
        return len(self.finals) if topic == FINALS else 0


def check_view(view: View[Any], world: World | None = None) -> None:
    """A view of periods is a function of the finals that it reaches, and its results can be written and read."""
    world = world or World()
    reach, columns = view.reach(world.scheme), dict[str, pa.Schema]()
    memory: dict[str, Any] = {}
    for last in range(1, len(world.finals) + 1):
        known = world.finals[:last]
        result = view.make(Past(world.scheme, known, memory))
        key = FinalKey(world.scheme.survey.id, known[-1].period)
        alone = view.make(Past(world.scheme, known[-reach:]))
        assert _json(alone) == _json(result), f"{key}: another result after a restart, from the finals that it reaches"
        if result is not None:
            *pieces, whole = view.messages(key, result, limit=500)
            read = decode_result(view, key, whole.value, [piece.value for piece in pieces])
            assert all(map(is_piece, pieces)) and _json(read) == _json(result), f"{key}: its JSON says something else"
        if result is not None and view.tables is not None:
            for name, parts in view.tables(result, world.scheme.survey).items():
                for part in parts:
                    first = columns.setdefault(name, part.schema)
                    assert part.schema == first, f"{key}: table {name} has other columns than before"
                    assert {field.type for field in first} <= {*TYPES}, f"table {name}: a column is none of {TYPES}"


def check_sink(open_sink: Callable[[str], Sink], content: Callable[[str], Content], world: World | None = None) -> None:
    """A sink keeps its promises.

    `open_sink` opens the sink at a place with this name, which is empty before. `content` is what is there, by the keys
    of finals, in any form that can be compared. A failure would look like this: rows that are there twice, or not at
    all; `complete` ahead of what is there, so that nobody makes what is missing.
    """
    trial = _Trial(open_sink, content, world or World())
    with closing(open_sink("calm")) as sink:
        assert trial.survey not in sink.complete(), "a new sink says that it has something"
        trial.run(sink)
    trial.expected = dict(content("calm"))
    assert sorted(trial.expected) == trial.world.keys, "not every period is there"
    trial.check_complete("calm")
    with closing(open_sink("calm")) as sink:
        trial.run(_changed(sink, complete=dict))  # it says that it has nothing
    trial.check_complete("calm")
    with closing(open_sink("counted")) as sink:
        counted = _Crashing(sink)
        trial.run(counted.sink)
    for call in range(0, counted.calls, max(1, counted.calls // CRASHES)):
        trial.crash(f"crash-{call}", call)
    trial.run_two_in_turns("in turns")
    trial.run_two_at_once("at once")


class _Trial:
    """A sink, a world, and what must be in the sink when everything in the world is."""

    def __init__(self, open_sink: Callable[[str], Sink], content: Callable[[str], Content], world: World) -> None:
        self.world = world
        self.survey = world.scheme.survey.id
        self.expected: Content = {}
        self._open = open_sink
        self._content = content
        self._views = tuple(replace(view, make=_remembered(view.make)) for view in all_views())

    def run(self, sink: Sink) -> None:
        for _ in self.steps(sink):
            pass

    def steps(self, sink: Sink) -> Iterator[None]:
        """A runner that is given one final after the other."""
        runner = Runner([sink], views=self._views)
        for final in self.world.messages(FINALS):
            runner.apply(Come(self.world.surveys(), [(0, 0, final)]))
            assert not runner.failed, runner.failed
            yield

    def check_complete(self, place: str) -> None:
        reached, last = self._reached(place), self.world.finals[-1].period
        assert reached == last, f"{place}: complete through {reached} instead of {last}"
        assert self._content(place) == self.expected, f"{place}: it has not what a sink has that nothing happened to"

    def check_never_ahead(self, place: str) -> None:
        reached, found = self._reached(place), self._content(place)
        for key in self.world.keys[: reached + 1]:
            assert found.get(key) == self.expected[key], (
                f"{place}: said to be complete through {reached}, without {key}"
            )

    def crash(self, place: str, call: int) -> None:
        """Crash before a call, and let another runner go on."""
        sink = self._open(place)
        crashing = _Crashing(sink, call)
        try:
            self.run(crashing.sink)
        except BaseException:
            if not crashing.crashed:  # otherwise it is _Crash, or what somebody made of it
                raise
        with suppress(Exception):
            sink.close()  # as the end of a process does, without a flush
        self.check_never_ahead(place)
        with closing(self._open(place)) as sink:
            self.run(sink)
        self.check_complete(place)

    def run_two_in_turns(self, place: str) -> None:
        with closing(self._open(place)) as one, closing(self._open(place)) as other:
            slow, quick = self.steps(one), self.steps(other)
            for _ in slow:
                next(quick, None)
                next(quick, None)
                self.check_never_ahead(place)
        self.check_complete(place)

    def run_two_at_once(self, place: str) -> None:
        """Two that flush each period at the same time, in threads."""
        together = Barrier(2)

        def wait_and_flush(sink: Sink) -> None:
            with suppress(BrokenBarrierError):  # the other one has ended
                together.wait(FLUSH_SECONDS)
            sink.flush()

        def one() -> None:
            try:
                with closing(self._open(place)) as sink:
                    self.run(_changed(sink, flush=lambda: wait_and_flush(sink)))
            finally:
                together.abort()

        with ThreadPoolExecutor(2) as both:
            for running in [both.submit(one), both.submit(one)]:
                running.result()
        self.check_complete(place)

    def _reached(self, place: str) -> int:
        with closing(self._open(place)) as sink:
            return sink.complete().get(self.survey, -1)


class _Crash(BaseException):
    """A process ends here."""


class _Crashing:
    """A sink in which a crash comes before one of the calls that it makes, of whatever function; it counts them."""

    def __init__(self, sink: Sink, at: int = -1) -> None:
        self.sink = _changed(
            sink, **{name: self._counted(getattr(sink, name)) for name in ("complete", "add", "flush")}
        )
        self._at = at
        self.calls = 0
        self.crashed = False

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any) -> Any:
            before = sys.getprofile()
            sys.setprofile(self._note)
            try:
                return call(*given)
            finally:
                sys.setprofile(before)

        return counted

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            self.calls += 1
            self.crashed = self.calls - 1 == self._at
            if self.crashed:
                raise _Crash


def _changed(sink: Sink, **methods: Callable[..., Any]) -> Sink:
    """A sink of which some methods are others."""
    own = {name: getattr(sink, name) for name in ("complete", "add", "flush", "close")}
    return cast(Sink, SimpleNamespace(**own | methods))


def _remembered(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Views are pure, so each result is made once."""
    results: dict[int, Any] = {}

    def remembered(past: Past) -> Any:
        if past.period not in results:
            results[past.period] = make(past)
        return results[past.period]

    return remembered


def _counts(scheme: Scheme, random: np.random.Generator) -> dict[str, Statistics]:
    gaps = np.arange(1, scheme.survey.horizon + 1, dtype=np.uint16)
    n = random.integers(50, 200, len(gaps))
    counts = {}
    for question in scheme.questions:
        n = random.integers(50, 200, len(gaps)) if scheme.discloses else n
        shares = question.channel.support(random.dirichlet(np.ones(question.k)))
        widths = question.mechanism.encoding.widths
        counts[question.name] = Statistics(
            gaps,
            n,
            random.binomial(n[:, None], np.clip(shares, 0, 1)).astype(np.int64),
            random.multinomial(n.sum(), np.full(widths, 1 / widths)) if widths else np.zeros(0, dtype=np.int64),
        )
    if scheme.takes_turns:
        counts[PRESENCE_ONLY] = Statistics(gaps, n, np.zeros((len(gaps), 0), dtype=np.int64))
    return counts


def _json(result: Any) -> str | None:
    return None if result is None else result.model_dump_json()
