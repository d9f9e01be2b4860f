"""What became of mutants, and survivors that cannot be told from the original: tables with a tab between columns."""

from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutating import Mutant

KNOWN = Path(__file__).with_name("known.tsv")


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: killed by which test, or survived, or not done in time."""

    outcome: str
    seconds: float
    by: str = ""


class Results:
    """A file with a line for each mutant that was tried: outcome, seconds, which test noticed it, place, and change.

    A mutant that is tried again gets another line. The last one holds.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._outcomes: dict[str, str] = {}
        if file.exists():
            for outcome, _, _, _, name in _rows(file):
                self._outcomes[name] = outcome

    def outcome(self, mutant: Mutant) -> str | None:
        """None: it was not tried yet."""
        return self._outcomes.get(mutant.name)

    def add(self, mutant: Mutant, verdict: Verdict) -> None:
        self._outcomes[mutant.name] = verdict.outcome
        self._file.parent.mkdir(exist_ok=True)
        place = f"{mutant.file}:{mutant.line}"
        row = [verdict.outcome, f"{verdict.seconds:.0f}", verdict.by, place, mutant.name]
        with self._file.open("a") as lines:
            lines.write("\t".join(row) + "\n")


def known_equivalent(file: Path = KNOWN) -> dict[str, str]:
    """The reason why a survivor cannot be told from the original, by the mutant's name."""
    return dict(_rows(file))


def _rows(file: Path) -> list[list[str]]:
    return [line.split("\t") for line in file.read_text().splitlines()]
