"""Mutants differ from the original in one place, runs can be resumed, and reasons are of lines that are there."""

import ast
import importlib
from pathlib import Path

import pytest

from tests.mutants.__main__ import COMPILED, ROOMS, choose
from tests.mutants.loop import _replace_code
from tests.mutants.mutating import mutants_of
from tests.mutants.results import KNOWN, Results, Verdict, known_equivalent
from tests.mutations.table import ROOT

SMALL = '''
@decorated(1)
def f(a: "x < y" = 3, *, ß: int = 0) -> int:
    """1 < 2"""
    total.add(a)  # 5 < 6
    if "ß" < a is not None and not ß:
        raise ValueError
    return min(a + 1, key=ß)
'''


def test_each_mutant_of_a_small_module_is_there() -> None:
    found = {
        (mutant.line, mutant.after) for mutant in mutants_of("m.py", SMALL) if mutant.computes_otherwise_than(SMALL)
    }
    condition = 'if "ß" < a is not None and not ß:'
    assert found == {
        (3, 'def f(a: "x < y" = 4, *, ß: int = 0) -> int:'),
        (3, 'def f(a: "x < y" = 2, *, ß: int = 0) -> int:'),
        (3, 'def f(a: "x < y" = 3, *, ß: int = 1) -> int:'),
        (5, "pass # 5 < 6"),
        (6, condition.replace("<", "<=")),
        (6, condition.replace("is not", "is")),
        (6, condition.replace("and", "or")),
        (6, condition.replace("not ß", "ß")),
        (7, "pass"),
        (8, "return None"),
        (8, "return max(a + 1, key=ß)"),
        (8, "return min(a - 1, key=ß)"),
        (8, "return min(a + 2, key=ß)"),
        (8, "return min(a + 0, key=ß)"),
        (8, "return min(a + 1)"),
    }


def test_chosen_mutants_are_python_and_of_the_rooms_and_the_same_seed_chooses_the_same() -> None:
    chosen = choose(seed=1, count=30)
    assert len({mutant.name for mutant in chosen}) == 30
    for mutant in chosen:
        ast.parse(mutant.text)
        assert mutant.text != (ROOT / mutant.file).read_text()
        assert mutant.file.startswith(ROOMS) and not mutant.file.startswith(COMPILED)
    assert choose(seed=1, count=30) == chosen
    assert choose(seed=2, count=30) != chosen


def test_results_are_found_again_and_the_last_line_of_a_mutant_holds(tmp_path: Path) -> None:
    first, second, third = choose(seed=1, count=3)
    file = tmp_path / "results" / "of.tsv"
    results = Results(file)
    results.add(first, Verdict("survived", 2.0))
    results.add(second, Verdict("killed", 1.0, "tests/a.py::test_b[c d]"))
    results.add(first, Verdict("killed", 3.0))
    again = Results(file)
    assert [again.outcome(mutant) for mutant in (first, second, third)] == ["killed", "killed", None]
    assert len(file.read_text().splitlines()) == 3


MODULE = """
from functools import cache

class Counter:
    @property
    def most(self):
        return max(1, 2)

@cache
def count(rows):
    return sum(row + 1 for row in rows)
"""


def test_functions_get_their_new_code_wherever_they_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "module_of_a_mutant.py"
    file.write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("module_of_a_mutant")
    counter, count = module.Counter(), module.count
    _replace_code(str(file), MODULE.replace("max", "min").replace("row + 1", "row - 1"))
    assert counter.most == 1
    assert count((5, 5)) == 8


@pytest.mark.parametrize("name", known_equivalent())
def test_a_survivor_with_a_reason_is_still_a_mutant(name: str) -> None:
    file = name.partition(": ")[0]
    names = {mutant.name for mutant in mutants_of(file, (ROOT / file).read_text())}
    assert name in names, f"{KNOWN.name}: the line is another one now: is the reason still true?"
