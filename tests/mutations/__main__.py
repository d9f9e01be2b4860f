"""Break one line at a time and see that the test of its promise fails: `python -m tests.mutations`. Minutes.

The table is in CONTRIBUTING.md. First all its tests are run on an unchanged copy of the checkout, and must pass. Then
each line is replaced in a copy of its own, and its test must fail. The exit code is 1 if a test did anything else.
"""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.mutations.running import LIMIT_SECONDS, copy_checkout, run_mutated, run_tests
from tests.mutations.table import ROOT, Mutation, all_mutations

AT_ONCE = 2


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("--only", metavar="WORD", default="", help="only mutations whose row has this word")
    word = parser.parse_args().only
    chosen = [mutation for mutation in all_mutations() if word in f"{mutation} {mutation.test}"]
    if not chosen:
        parser.error(f"no mutation has the word {word!r}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hearsay-mutations-") as name:
        place = Path(name)
        if not passes_unchanged(chosen, place / "unchanged"):
            return 1
        failures = sum(not killed for killed in try_all(chosen, place))
    print(f"{len(chosen) - failures} of {len(chosen)} killed, {time.monotonic() - began:.0f} s")
    return 1 if failures else 0


def passes_unchanged(chosen: list[Mutation], copy: Path) -> bool:
    """Whether the tests pass without any mutation. What they compile stays in the copy."""
    tests = list(dict.fromkeys(mutation.test for mutation in chosen))
    print(f"{len(tests)} tests without a mutation ...", flush=True)
    copy_checkout(ROOT, copy)
    began = time.monotonic()
    ran = run_tests(tests, copy, LIMIT_SECONDS * len(tests))
    passed = ran.outcome == "survived"
    print(f"{'passed' if passed else f'{ran.outcome}: not all pass'}, {time.monotonic() - began:.0f} s", flush=True)
    if not passed:
        print(ran.printed)
    return passed


def try_all(chosen: list[Mutation], place: Path) -> list[bool]:
    """Whether each was killed."""
    found = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {
            pool.submit(run_mutated, mutation, place / "unchanged", place / str(number)): mutation
            for number, mutation in enumerate(chosen)
        }
        for number, run in enumerate(as_completed(runs), 1):
            ran = run.result()
            found.append(ran.outcome == "killed")
            print(f"{number:3} of {len(chosen)}  {ran.outcome:9} {runs[run]}", flush=True)
            if not found[-1]:
                print(f"    {runs[run].test}\n{ran.printed}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
