"""A view: one kind of result, and the pure function that makes it from finals.

A view is one file, and one line in `stream_app.log.results.RESULTS`. Names and configuration of topics, JSON Schemas,
content types, tables and readers follow. `python -m views.view histogram` prints the schema of one.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pkgutil import resolve_name
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json

from analytics.columns import Part
from protocols.scheme import Scheme
from protocols.survey import Survey
from protocols.wire import CONTENT_TYPE_HEADER
from stream_app.finals import FinalKey
from stream_app.log import RESULTS, VALUE_BYTES, Output, ResultTopic, TopicName
from views.encoding import encode

PIECE = "application/vnd.hearsay.piece+json"
CONTENT_ENCODING_HEADER = "content-encoding"

R = TypeVar("R", bound=BaseModel)


Pieces = Annotated[
    tuple[str, ...],
    Field(description="of a result too large for one record: digests of the pieces that have its empty columns"),
]


@dataclass(frozen=True, eq=False)
class View(Generic[R]):
    """One kind of result. The model's first field is `schema_version`, whose default is the version written.

    `make` gets a `Past`, whose last final is the period to describe; of a view whose key is a survey, an `Open`. It
    returns None where there is nothing to say. `reach` is how many finals it looks at, the last one included: it may be
    given more, and must not look at them. `tables` are the rows of a result for sinks that have tables: by the name of
    the table, in parts, of which the first may have columns only. Sinks add `survey` and `period`, and end the name
    with a version: that of the model, or `tables_version` if columns changed without it. So a name always has the same
    columns.
    """

    name: TopicName
    kind: str  # one result, in the singular: names its schema and its content type
    model: type[R]
    make: Callable[[Any], R | None]
    reach: Callable[[Scheme], int] = lambda scheme: 1
    tables: Callable[[R, Survey], Mapping[str, Iterable[Part]]] | None = None
    tables_version: int = 0

    @property
    def topic(self) -> ResultTopic:
        return next(topic for topic in RESULTS if topic.name == self.name)

    @property
    def schema_version(self) -> int:
        """The newest version of the model: the one that is written, and the last one that can be read."""
        return int(self.model.model_fields["schema_version"].default)

    @property
    def json_schema(self) -> str:
        """The JSON Schema of the model, as it stands in docs/schemas."""
        return json.dumps(self.model.model_json_schema(mode="serialization"), indent=2) + "\n"

    @property
    def table_suffix(self) -> str:
        """How the names of its tables end."""
        return f"_v{self.tables_version or self.schema_version}"

    @property
    def content_type(self) -> str:
        """What the header of each record says."""
        return f"application/vnd.hearsay.{self.kind}+json"

    def what_readers_refuse(self, result: BaseModel) -> str:
        """The fields of a result that readers of its JSON would refuse, and why; empty if they read it."""
        try:
            self.model.model_validate(from_json(result.model_dump_json(warnings=False)))  # readers find the same
        except ValidationError as error:
            return what_is_wrong(error)
        return ""

    def messages(self, key: FinalKey, result: BaseModel, limit: int = VALUE_BYTES) -> list[Output]:
        """A result as it is published: its pieces, if it is too large for one record, and then the result."""
        name, (pieces, whole) = key.encode(), encode(result, limit)
        messages = [Output(self.name, b"%s#%d" % (name, at), piece, _headers(PIECE)) for at, piece in enumerate(pieces)]
        return [*messages, Output(self.name, name, whole, _headers(self.content_type))]


FIELDS_SHOWN = 5


def what_is_wrong(error: ValidationError) -> str:
    """The fields of a result that do not fit its model, and why. What they hold is not repeated.

    >>> from analytics.mobility.model import AmountQuantile
    >>> try:
    ...     AmountQuantile(at=0.5, value=float("nan"), low=0, high=None)
    ... except ValidationError as error:
    ...     what_is_wrong(error)
    'value: Input should be a finite number; high: Input should be a valid number'
    """
    found = error.errors(include_url=False, include_context=False, include_input=False)
    named = ["{}: {}".format(".".join(map(str, one["loc"])), one["msg"]) for one in found]
    more = len(named) - FIELDS_SHOWN
    return "; ".join(named[:FIELDS_SHOWN]) + (f"; and {more} more" if more > 0 else "")


@cache
def all_views() -> tuple[View[Any], ...]:
    return tuple(resolve_name(topic.view) for topic in RESULTS)


def is_piece(output: Output) -> bool:
    """Whether a message is a piece of a result, which must be published before it."""
    return output.headers == _headers(PIECE)


def _headers(content_type: str) -> tuple[tuple[str, bytes], ...]:
    return (CONTENT_TYPE_HEADER, content_type.encode()), (CONTENT_ENCODING_HEADER, b"gzip")


if __name__ == "__main__":
    sys.stdout.write(next(view for view in all_views() if view.kind == sys.argv[1]).json_schema)
