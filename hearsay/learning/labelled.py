"""A table of people with a label, and what a classifier of the label learns from it under each budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analytics.learning import Learnt, People, compare, split
from hearsay.running.evaluation_truth import MOST_VALUES, chosen_columns, read_table
from hearsay.running.seeded_keyrings import seeded_keyring
from hearsay.terminal.console import Step
from protocols.errors import ScenarioError
from protocols.mechanisms import MAX_VALUES

MOST_LABELS = 100
FEWEST_EACH = 10  # people per value on average: a column with fewer is a name, unless it is asked for
UNKNOWN = ("", "?", "NA", "NaN", "nan")  # what stands for no number in a column of numbers

Places = NDArray[np.int64]


@dataclass(frozen=True)
class LearningEvaluation:
    """What to learn, from whom, and under which budgets. `alpha` None: one report, without a memo."""

    label: str
    sensitive: str | None
    eps: Sequence[float]
    alpha: float | None
    bins: int
    test: float
    runs: int
    seed: int

    def run(self, path: Path, columns: Sequence[str], step: Step) -> tuple[dict[str, Any], list[Learnt]]:
        """Facts about the measurement, and every way to learn at every budget."""
        step(0, 1, f"reading {path}")
        people, facts = self._people(path, columns)
        learnt = compare(people, self.eps, seeded_keyring(self.seed), alpha=self.alpha, runs=self.runs, progress=step)
        return facts, learnt

    def _people(self, path: Path, columns: Sequence[str]) -> tuple[People, dict[str, Any]]:
        table = read_table(path)
        needed = [self.label, *([self.sensitive] if self.sensitive else [])]
        chosen = chosen_columns([*columns, *needed], table.column_names, str(path)) if columns else table.column_names
        chosen_columns(needed, table.column_names, str(path))
        sizes: dict[str, int] = {}
        values: dict[str, Places] = {}
        binned, left_out = [], []
        for name in chosen:
            places, k = _places(table[name])
            if name not in needed and k > self.bins and (cut := _cut(table[name], self.bins)) is not None:
                places, k = cut
                binned.append(name)
            if not 2 <= k <= min(MOST_VALUES, len(table) / FEWEST_EACH) and name not in {*needed, *columns}:
                left_out.append(name)
            else:
                sizes[name], values[name] = k, places
        self._check(path, sizes)
        train, test = split(len(table), self.test, self.seed)
        if len(train) == 0 or len(test) == 0:
            raise ScenarioError(f"{path} has {len(table)} rows", "give more people: some answer, others are tried on")
        people = People(
            sizes,
            self.label,
            {name: column[train] for name, column in values.items()},
            {name: column[test] for name, column in values.items()},
            self.sensitive,
        )
        facts = {
            "source": str(path),
            "label": self.label,
            "sensitive": self.sensitive,
            "attributes": {name: sizes[name] for name in people.features},
            "labels": sizes[self.label],
            "binned": binned,
            "left_out": left_out,
            "people": len(train),
            "tried_on": len(test),
            "alpha": self.alpha,
            "runs": self.runs,
            "seed": self.seed,
        }
        return people, facts

    def _check(self, path: Path, sizes: dict[str, int]) -> None:
        labels = sizes[self.label]
        if not 2 <= labels <= MOST_LABELS:
            raise ScenarioError(
                f"{path}: label {self.label!r} has {labels:,} different value(s)",
                f"choose a column with 2 to {MOST_LABELS} values",
            )
        if len(sizes) < 2:
            raise ScenarioError(f"{path} has no column to learn {self.label!r} from", "give further columns")
        for name, k in sizes.items():
            if name != self.label and (k < 2 or k * labels > MAX_VALUES):
                raise ScenarioError(
                    f"{path}: column {name!r} has {k:,} different value(s), with the label {k * labels:,} pairs",
                    f"leave it out: 2 values and up to {MAX_VALUES:,} pairs can be asked",
                )


def _places(column: pa.ChunkedArray) -> tuple[Places, int]:
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _cut(column: pa.ChunkedArray, bins: int) -> tuple[Places, int] | None:
    """Numbers cut at quantiles into so many values, and one more for what is unknown; None if they are no numbers."""
    encoded = column.combine_chunks().dictionary_encode()
    words = [str(word).strip() for word in encoded.dictionary.to_pylist()]
    try:
        numbers = np.array([np.nan if word in UNKNOWN else float(word) for word in words])
    except ValueError:
        return None
    if not all(isfinite(number) or word in UNKNOWN for number, word in zip(numbers, words, strict=True)):
        return None
    each = numbers[encoded.indices.to_numpy()]
    known = np.isfinite(each)
    if not known.any():
        return None
    ends = np.unique(np.quantile(each[known], np.arange(1, bins) / bins))
    places = np.where(known, np.searchsorted(ends, np.nan_to_num(each), side="left"), len(ends) + 1)
    _, dense = np.unique(places, return_inverse=True)
    return dense.astype(np.int64), int(dense.max()) + 1
