"""Reading published results: the same for every store, which provides only the messages of a topic.

A record that cannot be read is left out and named: it costs the result of one period, and not those of the survey.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from protocols.errors import ResultsError, UnreadableRecord
from protocols.survey import Survey
from stream_app.finals import FinalKey
from stream_app.log import FINALS, Output, TopicName
from views.encoding import decode, digest, join
from views.forecasts import FORECASTS, ForecastResult
from views.results.histogram import HISTOGRAMS, Histogram
from views.results.mobility import MOBILITY, MobilityResult
from views.results.status import LIVE, Live
from views.view import View, all_views, what_is_wrong

FOREIGN = "was it written by another version, or by something else than a worker?"

R = TypeVar("R", bound=BaseModel)


class Messages(Protocol):
    """A store of published messages: a data directory, or a Kafka cluster."""

    def surveys(self) -> list[Survey]: ...

    def messages(self, topic: TopicName) -> Iterator[Output]:
        """Every message of a topic, in the order of publication."""

    def count(self, topic: TopicName) -> int:
        """How many messages a topic has, about."""


def _warn(error: UnreadableRecord) -> None:
    import structlog  # takes time, and is seldom needed

    log = structlog.get_logger(__name__)
    log.warning("a record is left out", record=error.record, error=error.message, advice=error.hint)


class Results:
    """The published results of any number of surveys. `left_out` is told once of each record that cannot be read."""

    def __init__(self, store: Messages, left_out: Callable[[UnreadableRecord], None] = _warn) -> None:
        self.store = store
        self.unreadable: dict[str, UnreadableRecord] = {}  # by record
        self._left_out = left_out

    def read(self, view: View[R], survey: str) -> list[R]:
        """The results of a survey of one kind, by period. One that lacks a piece is not there yet, or no longer.

        One that cannot be read is left out. Raises ResultsError if it is one of a newer version.
        """
        values, pieces = self._holding(view, survey)
        found: list[R] = []
        for key, value in values.items():
            try:
                result = decode_result(view, key, value, pieces.get(key, {}).values())
            except UnreadableRecord as error:
                self._leave_out(error)
                continue
            if result is not None:
                found.append(result)
        return found

    def _leave_out(self, error: UnreadableRecord) -> None:
        if error.record not in self.unreadable:
            self.unreadable[error.record] = error
            self._left_out(error)

    def values(self, view: View[Any], survey: str | None = None) -> dict[FinalKey, bytes]:
        """Each result as published, in the order of the keys, of one survey or of all; large ones without columns."""
        return self._holding(view, survey)[0]

    def _holding(
        self, view: View[Any], survey: str | None
    ) -> tuple[dict[FinalKey, bytes], dict[FinalKey, dict[int, bytes]]]:
        """The record that holds for each key, in the order of the keys, and the pieces of each.

        A crash may repeat a record. Where the first one holds, a repetition must have the same bytes.
        """
        results: dict[Any, bytes] = {}
        pieces: dict[FinalKey, dict[Any, bytes]] = {}
        for message in self.store.messages(view.name):
            try:
                key, piece = _decode_key(view, message.key)
            except UnreadableRecord as error:
                self._leave_out(error)
                continue
            if survey not in (None, key.survey):
                continue
            held, place = (results, key) if piece is None else (pieces.setdefault(key, {}), piece)
            if view.topic.replaced:
                held[place] = message.value
            elif held.setdefault(place, message.value) != message.value:
                raise _changed_final(view, key)
        return dict(sorted(results.items(), key=itemgetter(0))), pieces

    def finals(self, survey: str | None = None) -> dict[FinalKey, bytes]:
        """The finals, of one survey or of all, in the order of their keys; of each key the first one."""
        found: dict[FinalKey, bytes] = {}
        for message in self.store.messages(FINALS):
            key = FinalKey.decode(message.key)
            if survey in (None, key.survey):
                found.setdefault(key, message.value)
        return dict(sorted(found.items(), key=itemgetter(0)))

    def periods(self, survey: str) -> list[int]:
        """The periods that have a histogram: what is made of a final is published before it."""
        return [key.period for key in self.values(HISTOGRAMS, survey) if key.period is not None]

    def histograms(self, survey: str) -> list[Histogram]:
        """The final histograms of a survey, by period."""
        return self.read(HISTOGRAMS, survey)

    def mobility(self, survey: str) -> list[MobilityResult]:
        """The mobility reports of a survey, by period."""
        return self.read(MOBILITY, survey)

    def forecasts(self, survey: str) -> list[ForecastResult]:
        """The forecasts that were published after each period of a survey."""
        return self.read(FORECASTS, survey)

    def live(self, survey: str) -> Live | None:
        """The newest published status of a survey."""
        return next(iter(self.read(LIVE, survey)), None)


class Followed(NamedTuple):
    """A result that is complete."""

    view: View[Any]
    key: FinalKey
    result: BaseModel


class Follower:
    """Reads the messages of result topics in the order of publication, those of one topic or of several in turn.

    It has the rules of `Results.read`, and keeps no results: of each only a digest, and pieces until they are
    joined (of results that are replaced, the newest ones).
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[TopicName, FinalKey], str] = {}
        self._pieces: defaultdict[tuple[TopicName, FinalKey], dict[int, bytes]] = defaultdict(dict)

    def apply(self, message: Output) -> Followed | None:
        """The result that a message completes. None: it is a piece or a repetition, lacks a piece, or is no result.

        Raises ResultsError if it cannot be read, or changes a final.
        """
        view = next((one for one in all_views() if one.name == message.topic), None)
        if view is None:
            return None
        key, piece = _decode_key(view, message.key)
        place = view.name, key
        if piece is not None:
            if view.topic.replaced or place not in self._seen:
                self._pieces[place][piece] = message.value
            return None
        name = digest(message.value)
        if self._seen.get(place) == name:
            return None
        if not view.topic.replaced and place in self._seen:
            raise _changed_final(view, key)
        result = decode_result(view, key, message.value, self._pieces.get(place, {}).values())
        if result is None:
            return None
        self._seen[place] = name
        if not view.topic.replaced:
            self._pieces.pop(place, None)
        return Followed(view, key, result)


def _changed_final(view: View[Any], key: FinalKey) -> ResultsError:
    """The error about a result of which two records differ, although the first holds."""
    return ResultsError(
        f"{_place(view, key)}: published twice with different values",
        "keep the topic as it is and report this: a final result must never change",
    )


def _decode_key(view: View[Any], key: bytes) -> tuple[FinalKey, int | None]:
    """The result that a record belongs to, and which of its pieces it is, if it is one."""
    name, cut, number = key.partition(b"#")
    try:
        found = FinalKey.decode(name)
        if (found.period is None) != view.topic.replaced:
            raise ValueError
        return found, int(number) if cut else None
    except ValueError:
        raise UnreadableRecord(
            f"topic {view.name}: a record has the key {key!r} instead of {view.topic.key}",
            FOREIGN,
            record=f"topic {view.name}, key {key!r}",
        ) from None


def decode_result(view: View[R], key: FinalKey, value: bytes, pieces: Iterable[bytes] = ()) -> R | None:
    """The result in a record and its pieces, if this program knows its version; None if a piece is missing."""
    try:
        tree = decode(value)
        version, listed = tree["schema_version"], tree.get("pieces", ())  # which every version of every model has
        if version > view.schema_version:
            raise ResultsError(
                f"{_place(view, key)}: schema version {version}; this program reads versions up to "
                f"{view.schema_version}",
                "upgrade hearsay here to the version of the workers that published it",
            )
        if listed:
            known = {digest(piece): piece for piece in pieces}
            if not known.keys() >= set(listed):
                return None
            join(tree, [known[name] for name in listed])
        return view.model.model_validate(tree)
    except (ValueError, LookupError, TypeError) as error:
        wrong = what_is_wrong(error) if isinstance(error, ValidationError) else error
        raise UnreadableRecord(
            f"{_place(view, key)}: the record is not a {view.kind} result: {wrong}",
            FOREIGN,
            record=_place(view, key),
        ) from None


def _place(view: View[Any], key: FinalKey) -> str:
    return f"topic {view.name}, key {key.encode().decode()}"
