"""The newest event of every key, and the viewers that wait for newer ones. Everything here runs in one event loop.

A viewer has no queue: it has a position, and is given the events that are newer. So the memory of a viewer does not
depend on how slowly it reads, and one that was slow gets the newest event of a key, not all of them.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

_FORM = re.compile(r"([0-9a-f]{0,64}):(\d{1,19}(?:\.\d{1,19}){0,63})")


class Position(NamedTuple):
    """The next offset of each place (a topic, or a data directory), and the identity of what has these offsets.

    Offsets are those of what is published, not of this process: a position is right after a restart, too.
    """

    identity: str
    offsets: tuple[int, ...]

    def __str__(self) -> str:
        """The id of an event, which browsers send back as `Last-Event-ID`.

        >>> str(Position("5eed", (12, 0, 7)))
        '5eed:12.0.7'
        """
        return f"{self.identity}:{'.'.join(map(str, self.offsets))}"

    @staticmethod
    def parse(text: str) -> "Position | None":
        """The position in an id; None if it is none.

        >>> Position.parse("5eed:12.0.7"), Position.parse("12")
        (Position(identity='5eed', offsets=(12, 0, 7)), None)
        """
        found = _FORM.fullmatch(text)
        return Position(found[1], tuple(map(int, found[2].split(".")))) if found else None


class Result(NamedTuple):
    """An event of something published, and where it was published."""

    key: str
    survey: str
    place: int
    offset: int
    segment: bytes


class Document(NamedTuple):
    """An event about the present, which has no offset: every viewer that connects gets the newest."""

    key: str
    survey: str | None  # None: for every page
    overview: bool  # for the page about all surveys, too
    segment: bytes


class Feed:
    """What viewers see."""

    def __init__(self) -> None:
        self.position = Position("", ())
        self.caught_up = False
        self.closed = False
        self.viewers: set[Viewer] = set()
        # By survey and place; by key, in the order of offsets. And documents by key, in the order of changes.
        self._results: dict[str, list[dict[str, Result]]] = {}
        self._documents: dict[str, tuple[int, Document]] = {}  # with the number of the change
        self._changes = 0

    def begin(self, identity: str, places: int) -> None:
        """Forget everything: what follows was published elsewhere, or is read from the beginning again."""
        self.position = Position(identity, (0,) * places)
        self.caught_up = False
        self._results.clear()
        self._documents.clear()
        self._wake()

    def publish(
        self,
        results: Iterable[Result],
        documents: Iterable[Document],
        offsets: tuple[int, ...],
        caught_up: bool,
    ) -> None:
        """Add events. `offsets` are the next ones of each place, `caught_up` is whether the past has been read."""
        for result in results:
            places = self._results.setdefault(result.survey, [{} for _ in self.position.offsets])
            places[result.place].pop(result.key, None)
            places[result.place][result.key] = result
        for document in documents:
            self._changes += 1
            self._documents.pop(document.key, None)
            self._documents[document.key] = self._changes, document
        self.position = Position(self.position.identity, offsets)
        self.caught_up = self.caught_up or caught_up
        self._wake()

    def close(self) -> None:
        """End the streams of all viewers."""
        self.closed = True
        self._wake()

    def knows(self, survey: str) -> bool:
        """Whether a survey is described, or may still be: before the past has been read."""
        return not self.caught_up or f"survey/{survey}" in self._documents

    def changes(self, after: Position, survey: str) -> list[Result]:
        """The events of a survey's results after a position, place by place in the order of offsets."""
        found: list[Result] = []
        for offset, place in zip(after.offsets, self._results.get(survey, ()), strict=False):
            found += _from(offset, place)
        return found

    def documents(self, after: int, survey: str | None) -> tuple[int, list[Document]]:
        """The documents of a page that changed after a number of changes, and the number now."""
        newer = takewhile(lambda numbered: numbered[0] > after, reversed(self._documents.values()))
        wanted = (None, survey)
        listed = [one for _, one in newer if (one.overview if survey is None else one.survey in wanted)]
        return self._changes, listed[::-1]

    def _wake(self) -> None:
        for viewer in self.viewers:
            viewer.changed.set()


def _from(offset: int, place: dict[str, Result]) -> list[Result]:
    return [*takewhile(lambda result: result.offset >= offset, reversed(place.values()))][::-1]


class Part(NamedTuple):
    """A part of a viewer's stream: a segment, and the viewer's position once it has it, if that changes.

    Without a segment: everything that the viewer has is to be forgotten.
    """

    segment: bytes | None
    position: Position | None


class Viewer:
    """One open page: of a survey, or (without one) of all surveys. It begins at a position, or with nothing."""

    def __init__(self, feed: Feed, survey: str | None, position: Position | None) -> None:
        self.changed = asyncio.Event()
        self._feed = feed
        self._survey = survey
        self._position = position
        self._seen_changes = 0

    def __enter__(self) -> "Viewer":
        self._feed.viewers.add(self)
        return self

    def __exit__(self, *exception: object) -> None:
        self._feed.viewers.discard(self)

    def take(self) -> Iterator[Part]:
        """What the viewer lacks now."""
        self.changed.clear()
        if not self._feed.position.offsets:
            return  # nothing has been read yet: it is not known whether the viewer's position is one of this feed
        if self._position is None or not self._continues(self._position):
            if self._position is not None:
                yield Part(None, None)
            self._position = Position(self._feed.position.identity, (0,) * len(self._feed.position.offsets))
            self._seen_changes = 0
        self._seen_changes, documents = self._feed.documents(self._seen_changes, self._survey)
        yield from (Part(document.segment, None) for document in documents)
        if self._survey is None:
            return
        reached = self._feed.position
        for result in self._feed.changes(self._position, self._survey):
            self._advance(result.place, result.offset + 1)
            yield Part(result.segment, self._position)
        for place, offset in enumerate(reached.offsets):
            self._advance(place, offset)

    def _continues(self, position: Position) -> bool:
        """Whether the feed can go on from a position. While it still reads the past, it may be behind it."""
        now = self._feed.position
        if position.identity != now.identity or len(position.offsets) != len(now.offsets):
            return False
        return not self._feed.caught_up or all(a <= b for a, b in zip(position.offsets, now.offsets, strict=True))

    def _advance(self, place: int, offset: int) -> None:
        assert self._position is not None
        offsets = list(self._position.offsets)
        offsets[place] = max(offsets[place], offset)
        self._position = Position(self._position.identity, tuple(offsets))
