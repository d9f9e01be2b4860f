"""This tree beside another commit, in CPU seconds of whole commands: `python -m bench.against COMMIT [ROW...]`.

    run       `hearsay run` of two million reports: what it takes to start is less than half of it
    worker    `hearsay worker`, from when it is ready, counts reports that wait on a broker, until their period is final
              (bench/_backlog.py)
    replay    `hearsay replay` of a million events
    evaluate  `hearsay evaluate`: next to nothing but draws and counting

The commit is checked out for as long as it is measured. Each tree imports its own modules, `bench.stream` among them;
both use the packages of this environment. They take turns, after one that does not count, in which they compile.

Decides whether code that is longer for the sake of speed stays: it does if a whole command is slower without it.
"""

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median

from bench.__main__ import show
from bench._measuring import Goes, Table, broker, in_turns
from bench._runs import ROOT, Run, command_seconds, data_seconds, python_output, write_events

TURNS = 7
REPORTING = Run(devices=500_000, periods=4, attributes=2, values=100)
EVENTS, EVENTS_A_DAY = 1_000_000, 20
Cost = Callable[[Path], float]
"""CPU seconds of a piece of work, as a tree does it."""


@contextmanager
def reports() -> Iterator[Cost]:
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-") as name:
        survey = Path(name) / "survey.yaml"
        survey.write_text(REPORTING.survey())
        sizes = "--devices", str(REPORTING.devices), "--periods", str(REPORTING.periods)
        yield lambda tree: data_seconds("run", str(survey), *sizes, tree=tree)


@contextmanager
def backlog() -> Iterator[Cost]:
    program, numbers = Path(__file__).with_name("_backlog.py").read_text(), count()
    with broker() as (kafka, directory):

        def cost(tree: Path) -> float:
            place = kafka.bootstrap, f"turn-{next(numbers)}", str(directory)
            return float(python_output("-c", program, *place, tree=tree))

        yield cost


@contextmanager
def events() -> Iterator[Cost]:
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-") as name:
        survey, file = Path(name) / "survey.yaml", Path(name) / "events.csv"
        survey.write_text(Run().survey())
        write_events(file, EVENTS, EVENTS_A_DAY)
        yield lambda tree: data_seconds("replay", str(file), "--survey", str(survey), tree=tree)


@contextmanager
def draws() -> Iterator[Cost]:
    yield lambda tree: command_seconds("evaluate", "--once", "--eps", "1", "--runs", "5", tree=tree)


ROWS: dict[str, Callable[[], AbstractContextManager[Cost]]] = {
    "run": reports,
    "worker": backlog,
    "replay": events,
    "evaluate": draws,
}


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """The tree of a commit, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-") as name:
        tree = Path(name) / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*words: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *words], check=True, timeout=60)


def measure(commit: str, rows: Sequence[str], turns: int) -> dict[str, Goes]:
    """CPU seconds of each row: the commit's, then this tree's."""
    found = {}
    with checked_out(commit) as old:
        for row in rows:
            with ROWS[row]() as cost:
                works = partial(cost, old), partial(cost, ROOT)
                in_turns(1, *works)
                found[row] = in_turns(turns, *works)
    return found


def table(commit: str, found: dict[str, Goes]) -> Table:
    shown = Table(f"CPU seconds, medians over turns: {commit} and this tree", ("", "old", "new", "new/old"))
    for row, goes in found.items():
        shown.row(row, *(f"{median(seconds):.2f}" for seconds in zip(*goes.turns, strict=True)), str(goes.times(0, 1)))
    return shown


def run() -> Table:
    """What is not committed yet; of a tree without changes, how far the same work differs from itself."""
    return table("HEAD", measure("HEAD", list(ROWS), turns=3))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.against", description="This tree beside another commit.")
    parser.add_argument("commit")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{', '.join(ROWS)}; all, if left out")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--json", action="store_true", help="print the seconds of every turn, and the ratios")
    given = parser.parse_args()
    if unknown := set(given.rows) - set(ROWS):
        parser.error(f"no row {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    found = measure(given.commit, given.rows or list(ROWS), given.turns)
    if given.json:
        print(json.dumps({row: {"turns": goes.turns, **goes.times(0, 1)._asdict()} for row, goes in found.items()}))
    else:
        show(table(given.commit, found))


if __name__ == "__main__":
    main()
