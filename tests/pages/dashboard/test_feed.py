"""A viewer that is cut off anywhere, and comes back to this or another dashboard, has everything once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from pages.dashboard.feed import Document, Feed, Position, Result, Viewer

PLACES = 3
SURVEYS = ("a", "b")

# What is published: (survey, place, number of the key). The last place replaces its results, as live results are.
records = st.lists(
    st.tuples(st.sampled_from(SURVEYS), st.integers(0, PLACES - 1), st.integers(0, 4)), min_size=1, max_size=30
)
# What happens: more is published, the viewer reads some parts and is cut off, the dashboard is started again.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 6)),
        st.tuples(st.just("view"), st.integers(0, 8)),
        st.tuples(st.just("restart"), st.integers(0, 6)),
    ),
    max_size=15,
)


def log_of(drawn: Sequence[tuple[str, int, int]]) -> list[Result]:
    """The results with their offsets. A final is published once under its key, so that of a key is made its own."""
    offsets, log = [0] * PLACES, []
    for survey, place, number in drawn:
        key = f"{place}/{survey}/{number if place == PLACES - 1 else offsets[place]}"
        log.append(Result(key, survey, place, offsets[place], f"{key}@{offsets[place]}".encode()))
        offsets[place] += 1
    return log


@dataclass
class Page:
    """What a browser keeps: the newest event of each key, and the last id."""

    last: Position | None = None
    state: dict[str, bytes] = field(default_factory=dict)
    received: list[bytes] = field(default_factory=list)

    def view(self, feed: Feed, parts: int | None) -> None:
        with Viewer(feed, "a", self.last) as viewer:
            for part in islice(viewer.take(), parts):
                if part.segment is None:
                    self.state.clear()
                elif part.position is not None:
                    key, _, _ = part.segment.decode().partition("@")
                    self.state[key] = part.segment
                    self.received.append(part.segment)
                    self.last = part.position


class Dashboard:
    """A feed that reads a log which grows; started again, it reads it from the beginning."""

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self.start()

    def start(self) -> None:
        self.feed, self._read = Feed(), 0
        self.feed.begin(self._identity, PLACES)

    def read(self, log: Sequence[Result], most: int | None = None) -> None:
        """Read on: at most so many records, or all."""
        end = len(log) if most is None else min(len(log), self._read + most)
        new, self._read = log[self._read : end], end
        offsets = [1 + max((r.offset for r in log[:end] if r.place == place), default=-1) for place in range(PLACES)]
        self.feed.publish(new, [], tuple(offsets), end == len(log))


@given(records, steps)
def test_a_viewer_that_resumes_has_what_a_full_replay_has_and_nothing_twice(
    drawn: list[tuple[str, int, int]], happening: list[tuple[str, int]]
) -> None:
    log, published, page, dashboard = log_of(drawn), 0, Page(), Dashboard("log")
    for what, number in happening:
        if what == "publish":
            published = min(len(log), published + number)
            dashboard.read(log[:published])
        elif what == "view":
            page.view(dashboard.feed, number)
        else:
            dashboard.start()
            dashboard.read(log[:published], number)
    dashboard.read(log)
    page.view(dashboard.feed, None)
    fresh = Page()
    fresh.view(dashboard.feed, None)
    assert page.state == fresh.state == {result.key: result.segment for result in log if result.survey == "a"}
    assert len(page.received) == len(set(page.received))


def test_a_viewer_that_has_read_more_than_there_is_begins_again() -> None:
    log = log_of([("a", 0, 0), ("a", 0, 0)])
    dashboard, page = Dashboard("log"), Page()
    dashboard.read(log)
    page.view(dashboard.feed, None)
    dashboard.start()  # the log was cut off
    dashboard.read(log[:1])
    page.view(dashboard.feed, None)
    assert page.state == {log[0].key: log[0].segment}


def test_documents_are_given_to_whoever_connects_and_again_when_they_change() -> None:
    feed = Feed()
    feed.begin("log", PLACES)
    of_a = Document("status/a", "a", True, b"1")
    feed.publish(
        [], [of_a, Document("survey/a", "a", False, b"2"), Document("status", None, True, b"3")], (0,) * 3, True
    )
    with Viewer(feed, None, None) as overview, Viewer(feed, "b", None) as other:
        assert [part.segment for part in overview.take()] == [b"1", b"3"]
        assert [part.segment for part in other.take()] == [b"3"]
        feed.publish([], [of_a._replace(segment=b"4")], (0,) * 3, True)
        assert [part.segment for part in overview.take()] == [b"4"]
        assert [part.segment for part in other.take()] == []
