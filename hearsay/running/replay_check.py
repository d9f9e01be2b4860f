"""Event files before they are replayed: which they are, and whether too much of them would be lost."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.table import Table

from hearsay.terminal import console
from producers.replay import Fault, Inspection, Located, Options, expand, inspect
from protocols.errors import ReplayError
from protocols.survey import Survey

STANDARD_INPUT = Path("-")

Faults = Mapping[Fault, Located]


@contextmanager
def event_paths(sources: Sequence[Path]) -> Iterator[list[Path]]:
    """The files to read. Standard input becomes a private temporary file, as CSV: it is read more than once."""
    if STANDARD_INPUT not in sources:
        yield expand(sources)
        return
    if len(sources) > 1:
        raise ReplayError("standard input (-) cannot be combined with files", "replay one of them at a time")
    with tempfile.TemporaryDirectory(prefix="hearsay-events-") as directory:
        path = Path(directory) / "standard-input.csv"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [path]


def check_events(sources: Sequence[Path], survey: Survey, options: Options) -> Inspection:
    """Read all rows, and find out what is wrong with them."""
    with event_paths(sources) as paths, console.progress("checking") as step:
        return inspect(survey, paths, options, None, lambda share: step(round(100 * share), 100, "read"))


def refuse_faulty(survey: Survey, paths: Sequence[Path], options: Options) -> None:
    """Look at the beginning of each file, and refuse to replay if too many rows have one fault."""
    found = inspect(survey, paths, options)
    fault, share = found.worst
    if share > options.most_faults:
        path, line = found.faults[fault].places[0]
        advice = [*found.advice, "see everything with --check; permit more with --most-faults"]
        raise ReplayError(
            f"of the first {found.rows:,} rows {share:.1%} have one fault: {fault}, first in line {line} of "
            f"{path.name}; nothing was sent",
            "; ".join(advice),
        )


def show_inspection(found: Inspection) -> None:
    """Show what would be reported, what would be lost, and the options that help."""
    table = Table("", "count", "details", box=None, pad_edge=False)
    table.add_row("files", f"{found.files:,}")
    table.add_row("rows", f"{found.rows:,}")
    periods = f"{min(found.people)} to {max(found.people)}" if found.people else ""
    table.add_row("periods", f"{len(found.people):,}", periods)
    if found.people:
        counts = sorted(found.people.values())
        middle = f"{counts[len(counts) // 2]:,}"
        table.add_row("people per period", middle, f"the median; from {counts[0]:,} to {counts[-1]:,}")
        table.add_row("suppressed periods", f"{found.suppressed:,}")
    for row in fault_rows(found.faults):
        table.add_row(*row)
    console.out.print(table)
    console.out.print()
    for sentence in found.advice or ["Nothing is wrong with these files."]:
        console.out.print(f"- {sentence}", markup=False)


def inspection_json(found: Inspection) -> dict[str, object]:
    """The same as JSON."""
    fault, share = found.worst
    return {**vars(found), "faults": faults_json(found.faults), "worst": {"fault": fault.name.lower(), "share": share}}


def fault_rows(faults: Faults) -> Iterator[tuple[str, str, str]]:
    """Each fault, how often it was found, and where first."""
    for fault, found in faults.items():
        several = len({path for path, _ in found.places}) > 1
        lines = [f"{path.name} {line}" if several else str(line) for path, line in found.places]
        more = ", ..." if found.count > len(lines) else ""
        yield fault.value, f"{found.count:,}", f"lines {', '.join(lines)}{more}" if lines else ""


def faults_json(faults: Faults) -> dict[str, object]:
    return {
        fault.name.lower(): {
            "count": found.count,
            "first": [{"file": path.name, "line": line} for path, line in found.places],
        }
        for fault, found in faults.items()
    }
