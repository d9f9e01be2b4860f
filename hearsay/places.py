"""Where commands keep and look for state and results: in the directory of the survey, unless one is named."""

from __future__ import annotations

from pathlib import Path

from hearsay.running.data_directory import COLLECTOR
from protocols.errors import ResultsError

HOME = Path("hearsay-data")


def directory_of(survey: str, named: Path | None) -> Path:
    """The data directory of a survey: the one that was named, or the one with the survey's id."""
    return named or HOME / survey


def known_directory(survey: str | None) -> Path:
    """The data directory to read, where none was named: that of the survey, or the only one that there is."""
    known = sorted(path.parent for path in HOME.glob(f"*/{COLLECTOR}"))
    if survey is not None and HOME / survey in known:
        return HOME / survey
    listed = ", ".join(path.name for path in known) or "none"
    if survey is None and len(known) == 1:
        return known[0]
    if survey is None and known:
        raise ResultsError(f"{HOME} has results of {len(known)} surveys", f"give the id of one: {listed}")
    wanted = "" if survey is None else f" of survey {survey!r}"
    raise ResultsError(f"there are no results{wanted} in {HOME}", f"name their directory with --data; here: {listed}")
