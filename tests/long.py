"""The tests that take long by nature, in parts: `python -m tests.long [PART ...]`, or those that a change touches.

A test is in a part by its mark, `@pytest.mark.long(part="pages")`. `make test-long` runs all parts. When they pass, it
writes the commit to `tests/long.passed`. `--touched` runs the parts whose folders were changed since that commit, so
that nothing rots, however many commits a change has.
"""

import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MUTATIONS = "mutations"
PYTEST = ("-n", "4", "--dist", "loadgroup", "--durations", "25")
PASSED = ROOT / "tests" / "long.passed"
COLLECTING = (
    "protocols",
    "servers",
    "memo_store",
    "producers",
    "stream_app",
    "views",
    "gateway",
    "hearsay",
    "integration",
)
PARTS = {
    "kills": COLLECTING,
    "cluster": (*COLLECTING, "analytics", "pages"),
    "pages": (*COLLECTING, "analytics", "pages", "lab", "docs", "examples", "README.md", "CONTRIBUTING.md"),
    "memory": COLLECTING,
    "browser": ("pages", "views", "analytics/mobility", "hearsay/reports"),
    "statistics": (
        "protocols",
        "analytics",
        "lab",
        "stream_app/counting",
        "views/forecasts",
        "views/results",
        "producers/scenarios",
        "examples",
    ),
    "install": (*COLLECTING, "pages", "lab", "clients", "install", "Makefile", "docs/dependencies.md"),
    "clients": ("clients", "protocols", "gateway", "lab"),
    MUTATIONS: (*COLLECTING, "analytics", "CONTRIBUTING.md"),
}
"""Each part, and the files and folders whose change it belongs to: those, and folders of tests with their names."""


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.long", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument(
        "--touched", action="store_true", help="only parts whose folders were changed since they passed"
    )
    given = parser.parse_args()
    parts = given.parts or (touched() if given.touched else list(PARTS))
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    print(f"long tests: {', '.join(parts) or 'none is touched'}", flush=True)
    begin, codes = time.monotonic(), [run(*command) for command in commands(parts)]
    print(f"long tests: {time.monotonic() - begin:.0f} s, exit codes {codes}", flush=True)
    if set(parts) == set(PARTS) and not any(codes):
        PASSED.write_text(f"{git('rev-parse', 'HEAD').strip()}\n")
    return max(codes, default=0)


def commands(parts: list[str]) -> Iterator[list[str]]:
    """What runs them: all tests of pytest at once, so that what they share is made once."""
    marked = [f"long(part={part!r})" for part in parts if part != MUTATIONS]
    if marked:
        yield ["pytest", *PYTEST, "-m", " or ".join(marked)]
    if MUTATIONS in parts:
        yield ["tests.mutations"]


def run(*words: str) -> int:
    return subprocess.run([sys.executable, "-m", *words], cwd=ROOT, check=False).returncode


def touched() -> list[str]:
    """The parts that something belongs to which changed since all of them passed; all, if that commit is not known."""
    commit = PASSED.read_text().strip() if PASSED.exists() else ""
    try:
        changed = git("diff", "--name-only", commit, "HEAD").splitlines() if commit else None
    except subprocess.CalledProcessError:  # another history, or a clone without it
        changed = None
    return [part for part, places in PARTS.items() if changed is None or concerns(places, changed)]


def concerns(places: tuple[str, ...], changed: list[str]) -> bool:
    """Whether one of the changed files is in one of the places, or tests or helps to test one of them."""
    everybodys = ("tests/helpers", "tests/conftest.py", "tests/long.py", "constraints.txt", "pyproject.toml")
    inside = (*places, *(f"tests/{place}" for place in places), *everybodys)
    return any(path == place or path.startswith(f"{place}/") for path in changed for place in inside)


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
