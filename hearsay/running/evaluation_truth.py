"""The truth that `evaluate` measures methods against: from a scenario, or from a table of the user.

`scenario_truth` is about the truth beside the report of a simulated collection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from analytics.evaluation import Moment, Place, Snapshot, Truth, crossing, everybody_once
from hearsay.terminal.console import Step
from producers.replay import UNKNOWN, cells, places
from producers.scenarios import Scenario
from protocols.errors import ScenarioError
from protocols.survey import TIMES, Survey

MOST_VALUES = 10_000  # a column with more different values is an identifier or a number, not an answer


def from_scenario(scenario: Scenario, attributes: Sequence[str], once: bool, step: Step) -> Truth:
    """The periods of a scenario, or with `once` everybody as a single period; of the named attributes, or of all."""
    chosen = chosen_columns(attributes, list(scenario.attributes), f"scenario {scenario.name}")
    moments: list[Moment] = []
    for period in range(scenario.periods):
        step(period, scenario.periods, f"simulating period {period + 1}")
        moments.append(scenario.presences(period))
    return Truth(
        {name: len(scenario.attributes[name]) for name in chosen}, [everybody_once(moments)] if once else moments
    )


def from_csv(path: Path, columns: Sequence[str], step: Step) -> Truth:
    """One period from a table with one row per person and the names of the columns in its first line."""
    step(0, 1, f"reading {path}")
    table = read_table(path)
    chosen = chosen_columns(columns, table.column_names, str(path))
    sizes, values = {}, {}
    for name in chosen:
        column = table[name].combine_chunks().dictionary_encode()
        sizes[name], values[name] = len(column.dictionary), column.indices.to_numpy().astype(np.int64)
        if not 2 <= sizes[name] <= MOST_VALUES:
            raise ScenarioError(
                f"{path}: column {name!r} has {sizes[name]:,} different value(s)",
                f"choose columns with 2 to {MOST_VALUES:,} values with --attributes",
            )
    return Truth(sizes, [Snapshot(0, np.arange(len(table), dtype=np.uint64), values)])


def from_positions(
    path: Path, survey: Survey, columns: Mapping[str, tuple[str, str]], metres: bool, step: Step
) -> Truth:
    """One period of a survey's places, from a table with one row per person.

    `columns` has the two columns of an attribute's position; without them a column has the names of cells.
    """
    step(0, 1, f"reading {path}")
    table = read_table(path)
    values = {}
    for attribute in survey.attributes:
        pair = columns.get(attribute.name, (attribute.name,))
        chosen_columns(pair, table.column_names, str(path))
        read = [table[column].combine_chunks() for column in pair]
        found = cells(read[0], read[1], attribute, metres) if len(pair) == 2 else places(read[0], attribute)
        unknown = int((found == UNKNOWN).sum())
        if unknown:
            raise ScenarioError(
                f"{path}: {unknown:,} of {len(table):,} rows have no place on the grid of {attribute.name!r}",
                "leave them out, or make the grid larger",
            )
        values[attribute.name] = found.astype(np.int64)
    everybody = Snapshot(0, np.arange(len(table), dtype=np.uint64), values)
    return Truth({attribute.name: len(attribute.values) for attribute in survey.attributes}, [everybody])


def on_grids(truth: Truth, survey: Survey) -> Truth:
    """The same truth, of attributes that are places of a survey."""
    for attribute in survey.attributes:
        if truth.sizes[attribute.name] != len(attribute.values):
            raise ScenarioError(f"the cells of {attribute.name!r} are not those of the survey", "choose commuters")
    return replace(truth, places={attribute.name: Place.of(attribute) for attribute in survey.attributes})


def only_places(survey: Survey, wanted: Sequence[str]) -> Survey:
    """The survey with its places alone, or with those that are wanted of them."""
    there = [attribute.name for attribute in survey.attributes if attribute.placed]
    if not there:
        raise ScenarioError(
            f"survey {survey.id!r} has no places", "give a survey with an attribute that has a grid and geo"
        )
    chosen = chosen_columns(wanted, there, f"survey {survey.id}")
    kept = tuple(attribute for attribute in survey.attributes if attribute.name in chosen)
    return survey.model_copy(update={"attributes": kept, "crosses": (), "eps": None, "eps_inf": None, "eps_1": None})


def with_crosses(truth: Truth, names: Sequence[str]) -> Truth:
    """The truth of pairs of attributes, too: each cross is named like age*area."""
    pairs = []
    for name in names:
        first, times, second = (part.strip() for part in name.partition(TIMES))
        if not times or first == second or not {first, second} <= set(truth.sizes):
            raise ScenarioError(
                f"{name!r} is not a cross of two of the attributes {', '.join(truth.sizes)}", "write it like age*area"
            )
        pairs.append((first, second))
    return crossing(truth, pairs)


def read_table(path: Path) -> pa.Table:
    """The table with all columns as text: 01 and 1 are different values."""
    try:
        # Only with one thread are faulty rows numbered.
        one_thread = pa.csv.ReadOptions(use_threads=False, skip_rows=_lines_about(path))
        with pa.csv.open_csv(path, one_thread) as reader:
            names = reader.schema.names
        text = pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        table = pa.csv.read_csv(path, one_thread, convert_options=text)
    except (OSError, pa.ArrowInvalid) as error:
        raise ScenarioError(
            f"{path} cannot be read as CSV{_fault(error)}",
            "give a comma-separated table in UTF-8 with the names of the columns in its first line",
        ) from None
    twice = {name for name in names if names.count(name) > 1}
    if twice or len(table) == 0:
        what = f"has the column {min(twice)!r} twice" if twice else "has no rows"
        raise ScenarioError(f"{path} {what}", "give one row per person, and each column a name of its own")
    return table


def _lines_about(path: Path) -> int:
    """How many lines of a file of synthetic records say what it is, above the table."""
    with path.open("rb") as file:
        lines = list(takewhile(lambda line: line.startswith(b"# "), file))
    return len(lines) if lines and b" synthetic records of survey " in lines[0] else 0


def _fault(error: Exception) -> str:
    """What is wrong with a file, without what the CSV reader quotes from it: a row is about a person."""
    if isinstance(error, FileNotFoundError):
        return ": it does not exist"
    ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
    return f": row {ragged[1]} has {ragged[3]} columns, not {ragged[2]}" if ragged else ""


def chosen_columns(wanted: Sequence[str], there: Sequence[str], where: str) -> Sequence[str]:
    """The wanted attributes or columns, each once; all if none is wanted."""
    for name in wanted:
        if name not in there:
            shown = set(wanted) & set(there)  # otherwise the first line of a table may be a row, which names a person
            hint = f"known attributes: {', '.join(there)}" if shown else "the first line must name the columns"
            raise ScenarioError(f"{where} has no attribute {name!r}", hint)
    return list(dict.fromkeys(wanted)) or there
