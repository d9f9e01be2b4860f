"""What was published, as tables by name: a few columns of each, with local times."""

from collections.abc import Iterator, Mapping
from functools import cached_property

import pyarrow as pa

from protocols.survey import Survey, html_table

TIMES = ("begin", "end")
WINDOW = (*TIMES, "kind")
SHARES = (*WINDOW, "attribute", "value", "share", "people", "people_low", "people_high", "truth")
FEW: Mapping[str, tuple[str, ...]] = {
    "histograms": ("begin", "attribute", "value", "n", "estimate", "low", "high", "consistent"),
    "visitors": (*WINDOW, "visitors", "new", "returning", "suppressed", "truth"),
    "gaps": (*WINDOW, "shortest", "longest", "visitors"),
    "values": SHARES,
    "groups": SHARES,
    "rankings": (*WINDOW, "attribute", "place", "value", "people", "probability"),
    "dwell": (*WINDOW, "attribute", "mean", "mean_low", "mean_high", "unit", *(f"quartiles_{n}" for n in (1, 2, 3))),
    "flows": (*WINDOW, "attribute", "origin", "destination", "people", "people_low", "people_high"),
    "crosses": (*WINDOW, "attribute", "row", "column", "share", "people", "people_low", "people_high"),
}
"""Of each table, what most people look at. `everything` has the rest."""
SHOWN = 5  # rows of each table in a notebook


class Tables(Mapping[str, pa.Table]):
    """The tables of one survey by name. `everything` has all their columns; times are those of the survey's clock."""

    def __init__(self, survey: Survey, everything: Mapping[str, pa.Table]) -> None:
        zone = survey.time_zone.name if survey.time_zone else "UTC"
        self.survey = survey
        self.everything = {name: _local(table, zone) for name, table in everything.items()}

    @cached_property
    def _few(self) -> dict[str, pa.Table]:
        return {name: table.select(FEW.get(name, table.column_names)) for name, table in self.everything.items()}

    def __getitem__(self, name: str) -> pa.Table:
        return self._few[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._few)

    def __len__(self) -> int:
        return len(self._few)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} ({len(table):,})" for name, table in self.items())
        return f"Tables of survey {self.survey.id}, with rows: {sizes}"

    def _repr_html_(self) -> str:
        title = self.survey.title or self.survey.id
        return "".join(
            html_table(
                f"{title}: {name}, {min(SHOWN, len(table))} of {len(table):,} rows",
                table.column_names,
                (row.values() for row in table.slice(max(0, len(table) - SHOWN)).to_pylist()),
            )
            for name, table in self.items()
            if len(table)
        )


def _local(table: pa.Table, zone: str) -> pa.Table:
    for name in set(TIMES) & set(table.column_names):
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].cast(pa.timestamp("us", tz=zone)))
    return table
