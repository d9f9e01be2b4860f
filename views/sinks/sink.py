"""A sink: where results go. It is two methods, and one that says how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel

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

    def reached(self, survey: str) -> int:
        """The last period of a survey of which every result is there; -1 if there is none."""

    def add(self, made: Made) -> None:
        """Take a result. It need not be there before the next `flush`."""

    def flush(self) -> None:
        """Make everything that was added durable: all results of a period, or none that `reached` would count."""

    def close(self) -> None: ...


class ListedSink(Sink, Protocol):
    """A sink of the catalogue, which `hearsay sinks check` looks at. Opening it shows that it can be written."""

    def complete(self) -> Mapping[str, int]:
        """What `reached` says, of all surveys that it holds something of."""
