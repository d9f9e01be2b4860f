"""Change one token at a time, at random, and list the changes that no test notices: `python -m tests.mutants`.

Each mutant is tried in a copy of the checkout, by the tests that mirror the rooms. The results file gets a line for
each, so a run that was interrupted goes on where it stopped. The order of the mutants follows from the seed and from
their own lines: it stays when other lines change.

A survivor needs a test. If it cannot be told from the original, it gets a line in `known.tsv`, with the reason.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from math import inf
from pathlib import Path

from tests.mutants.loop import OPTIONS, Job
from tests.mutants.mutating import Mutant, mutants_of
from tests.mutants.results import Results, known_equivalent
from tests.mutations.running import copy_checkout
from tests.mutations.table import ROOT

ROOMS = ("stream_app/counting", "stream_app/merging", "stream_app/log", "stream_app/finals", "views")
COMPILED = "stream_app/counting/tables"
"""Compiled loops: what calls them would find them in numba's cache, unchanged."""
TESTS = ("tests/stream_app", "tests/views", "tests/test_structure.py", "-m", "not long and not integration")
"""What mirrors the rooms; the last file has the examples in docstrings. No broker is needed to notice a wrong count."""
IGNORED = (
    "stream_app/faust_app",
    "stream_app/test_decompression.py",
    "stream_app/test_versions.py",
    "views/test_one_line.py",
)
"""They test other rooms, or start processes that take seconds before they do anything."""
RESULTS = ROOT / ".mutants" / "results.tsv"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="which mutants come first")
    parser.add_argument("--count", type=int, default=100, help="how many mutants in all, with those that are done")
    parser.add_argument("--only", default="", metavar="WORD", help="only mutants whose file or lines have this word")
    parser.add_argument("--slowest", type=float, default=0.5, help="leave out tests that take more CPU seconds")
    parser.add_argument("--again", action="store_true", help="try survivors again, with all tests, in new processes")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file with a line for each mutant")
    given = parser.parse_args()
    chosen = choose(given.seed, given.count, given.only)
    results = Results(given.results)
    kinds = {"survived"} if given.again else set[str]()
    waiting = [mutant for mutant in chosen if results.outcome(mutant) in (None, *kinds)]
    print(f"{len(chosen)} mutants, {len(waiting)} to try", flush=True)
    times = given.results.with_name(f"times-{state_of_checkout()}.json").resolve()
    slowest = inf if given.again else given.slowest
    job = Job(waiting, str(given.results.resolve()), str(times), slowest, anew=given.again)
    if waiting and not try_all(job):
        return 1
    return summarize(chosen, Results(given.results))


def choose(seed: int, count: int, only: str = "") -> list[Mutant]:
    """Some mutants of the rooms, in an order that looks random."""
    files = [file.relative_to(ROOT).as_posix() for room in ROOMS for file in (ROOT / room).rglob("*.py")]
    mutants = [
        mutant
        for file in files
        if not file.startswith(COMPILED)
        for mutant in mutants_of(file, (ROOT / file).read_text())
        if only in mutant.name
    ]
    mutants.sort(key=lambda mutant: sha256(f"{seed} {mutant.name}".encode()).digest())
    return list(_first_usable(mutants, count))


def _first_usable(mutants: list[Mutant], count: int) -> Iterator[Mutant]:
    for mutant in mutants:
        if count == 0:
            return
        if mutant.computes_otherwise_than((ROOT / mutant.file).read_text()):
            count -= 1
            yield mutant


def state_of_checkout() -> str:
    """A name for what the tests depend on: the tests of a state need to pass without a mutant only once."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py", "*.toml", "*.txt"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    files = [ROOT / name for name in sorted(set(names)) if name and not name.startswith("tests/mutants/")]
    contents = [f"{file} {sha256(file.read_bytes()).hexdigest()}" for file in files if file.is_file()]
    return sha256("".join(contents).encode()).hexdigest()[:12]


def try_all(job: Job) -> bool:
    """Try the mutants one after another, in a copy of the checkout; False if the tests fail without any."""
    with tempfile.TemporaryDirectory(prefix="hearsay-mutants-") as name:
        copy, file = Path(name) / "checkout", Path(name) / "job.json"
        copy_checkout(ROOT, copy)
        Path(job.results).parent.mkdir(exist_ok=True)
        job.write(file)
        command = [sys.executable, "-m", "pytest", *OPTIONS, "-p", "tests.mutants.loop", "--mutants", str(file)]
        environment = {
            **os.environ,
            "PYTHONPATH": f"{copy}:{copy}/clients/python",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",  # or the code of a mutant would be found again
        }
        ignored = [f"--ignore=tests/{place}" for place in IGNORED]
        ran = subprocess.run([*command, *TESTS, *ignored], cwd=copy, env=environment, check=False)
        return ran.returncode == 0


def summarize(chosen: list[Mutant], results: Results) -> int:
    """Print how many were killed, and every survivor. The exit code is 1 if one of them has no reason."""
    reasons = known_equivalent()
    survivors = [mutant for mutant in chosen if results.outcome(mutant) == "survived"]
    counted = Counter(results.outcome(mutant) for mutant in chosen)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counted.items(), key=str)))
    for mutant in survivors:
        reason = reasons.get(mutant.name, "NO TEST NOTICES IT")
        print(f"{mutant.file}:{mutant.line}\n    {mutant.before}\n    {mutant.after}\n    {reason}")
    unknown = [mutant for mutant in survivors if mutant.name not in reasons]
    print(f"{len(survivors)} survived, {len(survivors) - len(unknown)} of them cannot be told from the original")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
