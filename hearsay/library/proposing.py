"""A survey proposed from a table: which columns can be asked, and with which values."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from producers.files import TableSource, read_table
from protocols.errors import ScenarioError, counted
from protocols.survey import Survey
from protocols.survey_text import parse_survey

NUMBER = re.compile(r"[+-]?\d{1,15}(\.\d+)?")
MOST_STEPS = 20  # of a range: finer ones are seldom read, and each value costs precision
MOST_VALUES = 50
FEWEST_EACH = 10  # rows: a value that fewer have may name a person, and the survey is published
OTHER = "other"


def survey_from(
    table: TableSource | str,
    *,
    id: str = "proposed",
    start: datetime | None = None,
    period: str = "1d",
    eps_inf: float = 3.0,
    eps_1: float = 1.0,
    columns: Sequence[str] = (),
) -> Survey:
    """Propose a survey that asks what the columns of a table hold: columns by name, a data frame, or a CSV file.

    Numbers become ranges with steps, from the lowest to the highest of a hundred rows each; what lies beyond counts as
    the nearest step. Texts become values; those of fewer than ten rows, and missing ones, become "other". Columns with
    too many different texts, such as names, are left out, and the description says so: look at it, then change what you
    know better. `columns` chooses some of the columns.

    >>> ages = {"Age": [20 + row % 50 for row in range(1000)], "plan": ["basic", "pro"] * 500, "name": range(1000)}
    >>> proposed = survey_from(ages, columns=["Age", "plan"])
    >>> [(attribute.name, attribute.k) for attribute in proposed.attributes], proposed.attributes[0].values[:2]
    ([('age', 10), ('plan', 2)], ('20-24', '25-29'))
    """
    cells = read_table(Path(table) if isinstance(table, str) else table, ",;\t|")
    for name in columns:
        if name not in cells.column_names:
            raise ScenarioError(f"the table has no column {name!r}", f"its columns: {', '.join(cells.column_names)}")
    attributes, left_out, taken = list[dict[str, Any]](), list[str](), set[str]()
    for column in columns or cells.column_names:
        found = Counter(cells[column].to_pylist())
        asked = _asked(found)
        if asked is None:
            left_out.append(f"{column} ({len(found):,} different entries)")
        else:
            attributes.append({"name": _name(column, taken), **asked})
    if not attributes:
        raise ScenarioError("no column of the table can be asked", f"left out: {', '.join(left_out)}")
    told = f"Proposed from a table of {counted(len(cells), 'row')}."
    begin = start or datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    survey = {
        "id": id,
        "description": f"{told} Left out: {', '.join(left_out)}." if left_out else told,
        "start": begin.isoformat(),
        "period": period,
        "eps_inf": eps_inf,
        "eps_1": eps_1,
        "attributes": attributes,
    }
    return parse_survey(json.dumps(survey), "the proposed survey")


def _asked(found: Counter[str]) -> dict[str, Any] | None:
    """The values of a column with these entries; None if it has too few or too many."""
    texts = Counter({text: rows for text, rows in found.items() if text})
    if len(texts) > 2 and all(map(NUMBER.fullmatch, texts)):
        return _range(texts)
    common = sorted(text for text, rows in texts.items() if rows >= FEWEST_EACH and text != OTHER)
    rare = found.total() - sum(found[text] for text in common)
    values = [*common, OTHER] if rare else common
    if not 2 <= len(values) <= MOST_VALUES or 2 * rare > found.total():
        return None
    return {"values": values, **({"other": OTHER} if rare else {})}


def _range(texts: Counter[str]) -> dict[str, Any] | None:
    """A range of whole numbers. Its ends leave out the lowest and the highest hundredth of the rows, or nine rows."""
    numbers = sorted(map(float, texts.elements()))
    rows = max(len(numbers) // 100, FEWEST_EACH - 1)
    if len(numbers) <= 2 * rows:
        return None  # the ends would be single rows
    low, high = numbers[rows], numbers[-1 - rows]
    steps = (part * 10**power for power in count() for part in (1, 2, 5))  # 1, 2, 5, 10, 20, 50, ...
    step = next(step for step in steps if (high - low) / step < MOST_STEPS - 1)
    first, last = (int(end // step) * step for end in (low, high))
    return {"range": {"first": first, "last": max(last, first + step) + step - 1, "step": step}}


def _name(column: str, taken: set[str]) -> str:
    """A column's name as surveys write names, each once."""
    plain = re.sub(r"[^a-z0-9]+", "_", column.lower()).strip("_")[:50]
    base = plain if plain[:1].isalpha() else f"a_{plain}".rstrip("_")
    name = next(name for number in count(1) if (name := base if number == 1 else f"{base}_{number}") not in taken)
    taken.add(name)
    return name
