"""A sink: where results go. It is two methods, and one that says how far it is.

The kinds of sinks that a command or a setting can name have one line each, and are loaded when they are used.
"""

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel

from protocols.errors import SettingsError
from protocols.survey import Survey
from stream_app.finals import FinalKey
from views.view import View


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


class SinkKind(NamedTuple):
    """A kind of sink. Its address begins with its name and a colon; `opens` is a function of an address."""

    name: str
    address: str  # for people
    about: str
    opens: str  # module:object


SINKS = (
    SinkKind("sqlite", "sqlite:PATH", "tables of an SQLite file", "views.sinks.sqlite:SqliteSink"),
    SinkKind("parquet", "parquet:DIR", "Parquet files by survey and date", "views.sinks.parquet:ParquetSink"),
    SinkKind(
        "postgresql",
        "postgresql://USER@HOST/DATABASE",
        "tables of a PostgreSQL database",
        "views.sinks.postgresql:PostgresqlSink",
    ),
)


def check_address(address: str) -> SinkKind:
    """The kind of sink that an address is of; an error if there is none.

    >>> check_address("sqlite:results.sqlite").name
    'sqlite'
    """
    name, colon, rest = address.partition(":")
    found = next((kind for kind in SINKS if kind.name == name), None)
    if found is None or not colon or not rest:
        known = ", ".join(kind.address for kind in SINKS)
        raise SettingsError(f"{name!r} is no sink", f"a sink is one of {known}")
    return found


def open_sink(address: str) -> Sink:
    """Open the sink at an address. Raises DeliveryError if it cannot be reached or written."""
    opened: Sink = resolve_name(check_address(address).opens)(address)
    return opened
