"""People whose truth is known: from a scenario, or from a table of the user.

A table has one row per person, and the names of the columns in its first line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa

from hearsay.terminal.console import Step
from hearsay.terminal.dates import when
from lab.evaluation.truth import Truth, crossing, everybody_once, one_period
from lab.learning.comparing import People
from producers.files import TableSource, cells, places, read_table, table_name
from producers.scenarios import Scenario
from protocols.arrays import Values
from protocols.errors import ScenarioError
from protocols.mechanisms import MAX_VALUES
from protocols.respondent import UNKNOWN
from protocols.survey import TIMES, Survey

MOST_VALUES = 10_000  # a column with more different values is an identifier or a number, not an answer
MOST_LABELS = 100
FEWEST_EACH = 10  # people per value on average: a column with fewer is a name, unless it is asked for
NO_NUMBER = ("", "?", "NA", "NaN", "nan")  # what stands for an unknown number in a column of numbers


def of_scenario(
    scenario: Scenario, attributes: Sequence[str], as_one: bool, step: Step, places: Survey | None = None
) -> Truth:
    """The periods of a scenario, or everybody as one period; of the named attributes, of places, or of all."""
    chosen = chosen_columns(attributes, list(scenario.attributes), f"scenario {scenario.name}")
    moments = []
    for period in range(scenario.periods):
        named = f"period {period + 1}" if places is None else when(places.calendar, period)
        step(period, scenario.periods, f"simulating {named}")
        moments.append(scenario.presences(period))
    sizes = {name: len(scenario.attributes[name]) for name in chosen}
    asked = {} if places is None else {attribute.name: attribute for attribute in places.attributes}
    return Truth(sizes, [everybody_once(moments)] if as_one else moments, places=asked)


def of_table(
    source: TableSource,
    columns: Sequence[str],
    places: Survey | None = None,
    positions: Mapping[str, tuple[str, str]] | None = None,
    metres: bool = False,
) -> Truth:
    """One period from a table with one row per person: of these columns, or of the places of a survey."""
    if places is not None:
        found = survey_values(source, places, positions, metres)
        asked = {attribute.name: attribute for attribute in places.attributes}
        return replace(one_period({name: place.k for name, place in asked.items()}, found), places=asked)
    table, path = read_table(source), table_name(source)
    sizes, values = {}, {}
    for name in chosen_columns(columns, table.column_names, path):
        named, values[name] = encoded(table[name])
        sizes[name] = len(named)
        _check(path, f"column {name!r}", sizes[name], MOST_VALUES)
    return one_period(sizes, values)


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


def labelled(
    source: TableSource, columns: Sequence[str], label: str, sensitive: str | None, bins: int, test: float, seed: int
) -> tuple[People, dict[str, Any]]:
    """People of a table with a label, of whom the share `test` does not answer; and facts about them."""
    table, path = read_table(source), table_name(source)
    needed = [label, *([sensitive] if sensitive else [])]
    chosen = chosen_columns([*columns, *needed] if columns else (), table.column_names, path)
    chosen_columns(needed, table.column_names, path)
    sizes, values, binned, left_out = dict[str, int](), {}, [], []
    for name in chosen:
        named, places = encoded(table[name])
        k = len(named)
        if name not in needed and k > bins and (cut := _cut(named, places, bins)) is not None:
            places, k = cut, int(cut.max()) + 1
            binned.append(name)
        if not 2 <= k <= min(MOST_VALUES, len(table) / FEWEST_EACH) and name not in {*needed, *columns}:
            left_out.append(name)
        else:
            sizes[name], values[name] = k, places
    _check(path, f"label {label!r}", sizes[label], MOST_LABELS)
    if len(sizes) < 2:
        raise ScenarioError(f"{path} has no column to learn {label!r} from", "give further columns")
    for name, k in sizes.items():
        if name != label:  # it is asked in pairs with the label
            _check(path, f"column {name!r}", k, MAX_VALUES // sizes[label])
    order, aside = np.random.default_rng(seed).permutation(len(table)), round(len(table) * test)
    answer, tried = np.sort(order[aside:]), np.sort(order[:aside])
    if len(answer) == 0 or len(tried) == 0:
        raise ScenarioError(f"{path} has {len(table)} rows", "give more people: some answer, others are tried on")
    train, held_out = ({name: column[rows] for name, column in values.items()} for rows in (answer, tried))
    people = People(sizes, label, train, held_out, sensitive)
    return people, {
        "source": path,
        "label": label,
        "sensitive": sensitive,
        "attributes": {name: sizes[name] for name in people.features},
        "labels": sizes[label],
        "binned": binned,
        "left_out": left_out,
        "people": len(answer),
        "tried_on": len(tried),
    }


def _check(path: str, column: str, k: int, most: int) -> None:
    """Refuse a column with one value, or with more than can be asked."""
    if not 2 <= k <= most:
        raise ScenarioError(
            f"{path}: {column} has {k:,} different value(s)",
            f"choose columns with 2 to {most:,} values (--attributes, --label)",
        )


def _cut(named: list[str], places: Values, bins: int) -> Values | None:
    """Numbers cut at quantiles into so many values, and one more for what is unknown; None if they are no numbers."""
    words = [word.strip() for word in named]
    try:
        numbers = np.array([np.nan if word in NO_NUMBER else float(word) for word in words])
    except ValueError:
        return None
    each = numbers[places]
    known = np.isfinite(each)
    if not known.any() or any(word not in NO_NUMBER and not isfinite(float(word)) for word in words):
        return None
    ends = np.unique(np.quantile(each[known], np.arange(1, bins) / bins))
    cells = np.where(known, np.searchsorted(ends, np.nan_to_num(each), side="left"), len(ends) + 1)
    return np.unique(cells, return_inverse=True)[1].astype(np.int64)


def chosen_columns(wanted: Sequence[str], there: Sequence[str], where: str) -> Sequence[str]:
    """The wanted attributes or columns, each once; all if none is wanted."""
    for name in wanted:
        if name not in there:
            shown = set(wanted) & set(there)  # otherwise the first line of a table may be a row, which names a person
            hint = f"known attributes: {', '.join(there)}" if shown else "the first line must name the columns"
            raise ScenarioError(f"{where} has no attribute {name!r}", hint)
    return list(dict.fromkeys(wanted)) or there


def encoded(column: pa.ChunkedArray) -> tuple[list[str], Values]:
    """The different values of a column, and for each row the place of its value among them."""
    found = column.combine_chunks().dictionary_encode()
    return found.dictionary.to_pylist(), found.indices.to_numpy().astype(np.int64)


def survey_values(
    source: TableSource, survey: Survey, positions: Mapping[str, tuple[str, str]] | None = None, metres: bool = False
) -> dict[str, Values]:
    """The values of a survey's attributes, by their places in it.

    `positions` has the two columns of an attribute's position; without them a column has the names of values.
    """
    table, path, values = read_table(source), table_name(source), dict[str, Values]()
    for attribute in survey.attributes:
        pair = (positions or {}).get(attribute.name, (attribute.name,))
        chosen_columns(pair, table.column_names, path)
        first, *second = (table[column].combine_chunks() for column in pair)
        found = cells(first, second[0], attribute, metres) if second else places(first, attribute)
        unknown = int((found == UNKNOWN).sum())
        if unknown:
            raise ScenarioError(
                f"{path}: {unknown:,} of {len(table):,} rows have no value of {attribute.name!r} that the survey lists",
                "leave them out, list all values in the survey, or make its grid larger",
            )
        values[attribute.name] = found.astype(np.int64)
    return values
