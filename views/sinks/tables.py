"""What all sinks with tables have in common: which tables a result has, and through which period they are complete.

A table's name ends with the version of its columns. So there are no migrations: a new version has new tables, for which
`complete` begins anew, and the runner fills them from all finals.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from analytics.mobility import Part
from protocols.errors import DeliveryError
from views.sinks.sink import Made, Sink
from views.view import all_views

TIME = pa.timestamp("us", tz="UTC")


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

    def add(self, made: Made) -> None:
        if made.view.tables is not None and made.key.period is not None:
            self._waiting.append(made)

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        through: dict[str, int] = {}
        for made in waiting:
            through[made.key.survey] = max(through.get(made.key.survey, -1), made.key.period or 0)
        if waiting:
            self._write(waiting, through)

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
