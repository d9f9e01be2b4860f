"""Sets in files: a column of values that are separated by semicolons, or a row for each value."""

import csv
from pathlib import Path

import numpy as np
import pytest

from hearsay import read_results
from hearsay.running.replaying import replay_events
from producers.events import Options, Rule
from producers.files import ColumnMapping
from producers.replay import Summary
from protocols.errors import ReplayError
from protocols.survey_text import parse_survey

NAMES = tuple(f"integration {i}" for i in range(1, 31))
SURVEY = f"""
{{id: integrations, start: 2026-01-01T00:00:00Z, period: 1d, clock: source, eps: 4,
 attributes: [{{name: integration, several: 8, values: [{", ".join(NAMES)}]}}]}}"""


def written(path: Path, sets: list[list[str]], one_by_one: bool) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "time", "integration"])
        for person, held in enumerate(sets):
            for cell in (held or [""]) if one_by_one else [";".join(held)]:
                writer.writerow([f"p{person}", "2026-01-01T12:00:00Z", cell])
    return path


def replayed(path: Path, **rules: Rule) -> Summary:
    options = Options(ColumnMapping("person", "time"), rules=rules)
    there = {"speed": None, "kafka": None, "capture": None, "partitions": 1}
    return replay_events([path], parse_survey(SURVEY), options, path.parent / "data", **there)  # type: ignore[arg-type]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_shares_and_sizes_of_a_replayed_file_are_those_of_its_people(tmp_path: Path, one_by_one: bool) -> None:
    random, n = np.random.default_rng(3), 20_000
    have = random.random((n, 30)) < np.minimum(0.6, 1.2 / np.arange(1, 31))
    have[np.cumsum(have, axis=1) > 8] = False
    sets = [[NAMES[i] for i in random.permutation(np.flatnonzero(row))] for row in have]
    assert replayed(written(tmp_path / "events.csv", sets, one_by_one)).reports == n
    found = read_results(tmp_path / "data").everything
    truth = {"values": have.mean(axis=0), "sizes": np.bincount(have.sum(axis=1), minlength=9) / n}
    for name, shares in truth.items():
        share, error = (found[name][column].to_numpy() for column in ("share", "share_error"))
        assert (np.abs(share - shares) < 5 * error).all()
    mean, error = (found["sizes"][column][0].as_py() for column in ("mean_size", "mean_size_error"))
    assert abs(mean - have.sum(axis=1).mean()) < 5 * error
    assert found["sizes"]["size"].to_pylist() == [*map(str, range(8)), "8 or more"]


def test_a_value_that_is_not_listed_is_a_fault_of_its_row_and_the_others_count(tmp_path: Path) -> None:
    path = written(tmp_path / "events.csv", [[NAMES[0], "smoke"], []], one_by_one=False)
    summary = replayed(path)
    assert summary.reports == 2
    assert {fault.name: found.count for fault, found in summary.faults.items() if found.count} == {"UNKNOWN_VALUE": 1}


def test_one_of_several_values_is_not_chosen_of_sets(tmp_path: Path) -> None:
    path = written(tmp_path / "events.csv", [[NAMES[0]]], one_by_one=False)
    with pytest.raises(ReplayError, match="for sets"):
        replayed(path, integration=Rule.LAST)
