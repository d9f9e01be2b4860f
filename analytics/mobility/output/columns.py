"""What the columns of the tables mean, and in which unit they are: a table of its own, written beside them.

`columns.json` has the unit and the meaning of each column, but for those that are about another one.
"""

from __future__ import annotations  # pyarrow is loaded when it is used, and not for a type

import json
from collections.abc import Mapping
from importlib import resources

from protocols.arrays import lazy_arrow as pa

MEANINGS: Mapping[str, list[str]] = json.loads((resources.files(__package__) / "columns.json").read_text("utf-8"))
_TEXT, _PERIOD = "text", "number of a period"
_PARTS = {
    "error": "standard error of {}",
    "low": "lower end of the 95 % interval of {}",
    "high": "upper end of the 95 % interval of {}",
}
_COMPARED = {
    "against": (_TEXT, "what {} is compared with, in words"),
    "first": (_PERIOD, "first period of what {} is compared with"),
    "last": (_PERIOD, "last period of what {} is compared with"),
}


def explained(tables: Mapping[str, pa.Table]) -> pa.Table:
    """One row for each column of these tables."""
    rows = [(table, column, *meaning(column)) for table, listed in tables.items() for column in listed.column_names]
    return pa.table(dict(zip(("table", "column", "unit", "meaning"), map(list, zip(*rows, strict=True)), strict=True)))


def meaning(column: str) -> tuple[str, str]:
    """The unit of a column, and what it says.

    >>> meaning("people_low")
    ('people', 'lower end of the 95 % interval of people')
    >>> meaning("low_2")
    ('text', 'lower end of the 95 % interval of quartiles_2')
    >>> meaning("nothing")
    ('', '')
    """
    if column in MEANINGS:
        unit, words = MEANINGS[column]
        return unit, words
    name, _, part = column.rpartition("_")
    if part in _PARTS and name in MEANINGS:
        return MEANINGS[name][0], _PARTS[part].format(name)
    if part in _COMPARED:
        unit, words = _COMPARED[part]
        return unit, words.format(name)
    return (_TEXT, _PARTS[name].format(f"quartiles_{part}")) if name in _PARTS else ("", "")
