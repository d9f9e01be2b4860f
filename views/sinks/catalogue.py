"""The kinds of sinks that a command or a setting can name: one line for each, loaded when it is used."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import NamedTuple

from protocols.errors import SettingsError
from views.sinks.sink import ListedSink


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


def open_sink(address: str) -> ListedSink:
    """Open the sink at an address. Raises DeliveryError if it cannot be reached or written."""
    opened: ListedSink = resolve_name(check_address(address).opens)(address)
    return opened
