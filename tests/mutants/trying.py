"""Running the tests on a mutant, in a copy of the checkout, those first that are likely to fail soon."""

import re
import shutil
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutating import Mutant
from tests.mutations.running import Ran, run_tests

TESTS = ("tests/stream_app", "tests/views", "tests/test_structure.py")
"""What mirrors the rooms of the mutants. The last one runs the examples in docstrings."""
ALSO_SLOW = ("-m", "not long and not integration")
"""No broker: a mutant is killed by a test in its own process, or in the memory of the next one."""
PATIENCE = 4
"""A test run that takes so many times as long as that without a mutant does not end. Others use the machine, too."""
LEAST_SECONDS = 120.0
IMPORTERS_FIRST = 10
"""So many times as long may a test take that imports the module, to come before one that does not."""


@dataclass(frozen=True)
class TimedTests:
    """The tests that pass without a mutant, and how long each took."""

    seconds: dict[str, float]  # by the id of the test
    whole: float

    def ordered(self, module: str, checkout: Path) -> list[str]:
        """All of them, for a mutant of this module."""
        importers = {file for file in self._files() if _imports(checkout / file, module)}

        def rank(test: str) -> float:
            is_importer = test.partition("::")[0] in importers
            return self.seconds[test] / (IMPORTERS_FIRST if is_importer else 1)

        return sorted(self.seconds, key=rank)

    def _files(self) -> set[str]:
        return {test.partition("::")[0] for test in self.seconds}


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: killed by which test, or survived, or not done in time."""

    outcome: str
    seconds: float
    by: str = ""


def time_tests(copy: Path) -> tuple[TimedTests, Ran]:
    """Run all tests in an unchanged copy of the checkout, and find each of them again by its id."""
    times = copy / "tests.xml"
    began = time.monotonic()
    ran = run_tests([*TESTS, *ALSO_SLOW, f"--junit-xml={times}"], copy, 3600)
    seconds: dict[str, float] = {}
    for case in ET.parse(times).iter("testcase") if times.exists() else ():
        file = case.attrib["classname"].replace(".", "/")
        seconds[f"{file}.py::{case.attrib['name']}"] = float(case.attrib["time"])
    tests = TimedTests(seconds, time.monotonic() - began)
    if ran.outcome == "survived":  # an id that is not found would look like a test that fails, for every mutant
        ran = run_tests([*seconds, "--collect-only"], copy, 3600)
    return tests, ran


def try_mutant(mutant: Mutant, tests: TimedTests, unchanged: Path, copy: Path) -> Verdict:
    """Run the tests on a mutant until one fails, in a copy of its own."""
    module = mutant.file.removesuffix(".py").replace("/", ".")
    limit = max(LEAST_SECONDS, PATIENCE * tests.whole)
    shutil.copytree(unchanged, copy)
    began = time.monotonic()
    try:
        (copy / mutant.file).write_text(mutant.text)
        ran = run_tests(tests.ordered(module, unchanged), copy, limit)
    finally:
        shutil.rmtree(copy)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", ran.printed, re.MULTILINE)
    return Verdict(_outcome(ran), time.monotonic() - began, failed[1] if failed else "")


def _outcome(ran: Ran) -> str:
    """A mutant that cannot even be imported, or that runs for ever, is noticed, too."""
    if ran.outcome.startswith("not run"):
        return "killed"
    return "not done" if ran.outcome.startswith("not done") else ran.outcome


def _imports(file: Path, module: str) -> bool:
    return f"from {module} import" in file.read_text()
