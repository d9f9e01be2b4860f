"""A sink: where results go. It is two methods, and one that says how far it is.

The kinds of sinks that a command or a setting can name have one line each, and are loaded when they are used.

All sinks with tables have in common which tables a result has, and through which period they are complete. A table's
name ends with the version of its columns. So there are no migrations: a new version has new tables, for which
`complete` begins anew, and the runner fills them from all finals.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pkgutil import resolve_name
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pydantic import BaseModel

from analytics.columns import Part
from protocols.arrays import lazy_arrow as pa
from protocols.errors import DeliveryError, SettingsError
from protocols.survey import Survey
from stream_app.finals import FinalKey
from views.view import View, all_views


class Made(NamedTuple):
    """A result that a view has made."""

    view: View[Any]
    key: FinalKey
    result: BaseModel
    survey: Survey


class Sink(Protocol):
    """Takes results. To add the same result again changes nothing, so two runners may write to one sink.

    What cannot be reached or written raises DeliveryError: the runner begins again with a sink that is opened anew.
    """

    def complete(self) -> Mapping[str, int]:
        """By survey: the last period of which every result is there. A survey that has none is left out."""

    def add(self, made: Made) -> None:
        """Take a result. It need not be there before the next `flush`."""

    def flush(self) -> None:
        """Make everything that was added durable: all results of a period, or none that `complete` would count."""

    def close(self) -> None: ...


@runtime_checkable
class Resuming(Protocol):
    """A sink that can lack a period and have later ones. Others get nothing of a survey after a refused period."""

    def skip(self, key: FinalKey) -> None:
        """Take note that the results of a period are refused, and that later ones follow.

        Until they are there, `complete` stays below the period, or `lacks` finds it.
        """

    def lacks(self, key: FinalKey) -> bool:
        """Whether the results of a period that `complete` includes are not there."""


class SinkKind(NamedTuple):
    """A kind of sink. An address begins as its own does, up to the colon; `opens` is a function of an address."""

    address: str  # for people
    about: str
    opens: str  # module:object


SINKS = (
    SinkKind("sqlite:PATH", "tables of an SQLite file", "views.sinks.sql:SqliteSink"),
    SinkKind("parquet:DIR[?group=NAME]", "Parquet files by survey and date", "views.sinks.parquet:ParquetSink"),
    SinkKind("postgresql://USER@HOST/DATABASE", "tables of a PostgreSQL database", "views.sinks.sql:PostgresqlSink"),
)


def check_address(address: str) -> SinkKind:
    """The kind of sink that an address is of; an error if there is none.

    >>> check_address("sqlite:results.sqlite").address
    'sqlite:PATH'
    """
    name, colon, rest = address.partition(":")
    found = next((kind for kind in SINKS if kind.address.startswith(f"{name}:")), None)
    if found is None or not colon or not rest:
        known = ", ".join(kind.address for kind in SINKS)
        raise SettingsError(f"{name!r} is no sink", f"a sink is one of {known}")
    return found


def open_sink(address: str) -> Sink:
    """Open the sink at an address. Raises DeliveryError if it cannot be reached or written."""
    opened: Sink = resolve_name(check_address(address).opens)(address)
    return opened


class TableSink(Sink, ABC):
    """A sink for the tables of results. Views without tables, such as the live status, are not for it.

    `edition` names the views and versions that it is complete with. Opening it shows that it can be written. `place`
    names it in errors; those that may come of it are `errors`.
    """

    errors: tuple[type[Exception], ...]
    hint: str

    def __init__(self, place: str) -> None:
        self._place = place
        with_tables = [view for view in all_views() if view.tables is not None]
        self.edition = " ".join(sorted(view.name + view.table_suffix for view in with_tables))
        self._waiting: list[Made] = []
        self._skipped: dict[str, int] = {}  # by survey: the first period of which results were refused

    def add(self, made: Made) -> None:
        if made.view.tables is not None and made.key.period is not None:
            self._waiting.append(made)

    def skip(self, key: FinalKey) -> None:
        """Go on, but be complete through the period before only: all from this one on is made again at the next start.

        Rows are replaced, so that changes nothing.
        """
        self._skipped.setdefault(key.survey, key.period or 0)

    def lacks(self, key: FinalKey) -> bool:
        return False

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        through: dict[str, int] = {}
        for made in waiting:
            through[made.key.survey] = max(through.get(made.key.survey, -1), made.key.period or 0)
        for survey, period in self._skipped.items():
            if through.get(survey, -1) >= period:
                through[survey] = period - 1
        if waiting:
            self._write(waiting, {survey: period for survey, period in through.items() if period >= 0})

    @abstractmethod
    def _write(self, waiting: Sequence[Made], through: Mapping[str, int]) -> None:
        """Replace the rows of these results; when they are durable, `complete` says that they are there."""

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self.errors as error:
            said = " ".join(str(error).split())
            raise DeliveryError(f"results cannot be written to {self._place}: {said}", self.hint) from error


def tables_of(made: Made) -> Iterator[tuple[str, Iterator[Part]]]:
    """The tables of a result, by their full names; the first columns are `survey` and `period`."""
    assert made.view.tables is not None
    about = {"survey": pa.scalar(made.key.survey), "period": pa.scalar(made.key.period, pa.int64())}
    for name, parts in made.view.tables(made.result, made.survey).items():
        full = name if name == made.view.name else f"{made.view.name}_{name}"
        led = (Part(part.rows, about | dict(part.columns)) for part in parts)
        yield full + made.view.table_suffix, led
