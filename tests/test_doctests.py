"""The examples in docstrings compute what they show."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

from tests.test_structure import ROOMS, ROOT, SOURCES


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("room", ROOMS)
def test_examples_compute_what_they_show(room: str) -> None:
    showing = [path for path in SOURCES if path.is_relative_to(ROOT / room) and ">>> " in path.read_text()]
    said: list[str] = []
    for path in showing:
        module = import_module(module_name(path))
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
        for examples in doctest.DocTestFinder(exclude_empty=True).find(module, module.__name__):
            runner.run(examples, out=said.append)
        assert runner.tries > 0, f"{path.relative_to(ROOT)} shows examples that are not found"
    assert not said, "".join(said)
