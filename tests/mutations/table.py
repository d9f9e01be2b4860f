"""The table of mutations in CONTRIBUTING.md: the promises, a test of each, and a line without which it must fail."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADER = "| promise | test | mutation |\n|---|---|---|\n"
CODE = r"`([^`|]+)`"
ROW = re.compile(rf"\| ([0-9]+)\. ([^|]+) \| {CODE} \| {CODE}: {CODE} becomes {CODE} \|")


@dataclass(frozen=True)
class Mutation:
    """A line of a file, what becomes of it, and the test of a promise that fails then."""

    promise: int
    about: str
    test: str
    file: str
    line: str
    replacement: str

    def __str__(self) -> str:
        return f"{self.promise}. {self.about}: {self.file}: {self.line} -> {self.replacement}"

    def applied(self, text: str) -> str:
        """The text of the file with the line replaced, at the same indentation. The line must be in it exactly once."""
        lines = text.splitlines(keepends=True)
        places = [place for place, line in enumerate(lines) if line.strip() == self.line]
        if len(places) != 1:
            raise ValueError(f"{self.file} has the line {self.line!r} {len(places)} times: the table needs another one")
        lines[places[0]] = lines[places[0]].replace(self.line, self.replacement)
        return "".join(lines)


def all_mutations() -> list[Mutation]:
    """The rows of the table."""
    page, found = (ROOT / "CONTRIBUTING.md").read_text(), []
    for row in page.partition(HEADER)[2].partition("\n\n")[0].splitlines():
        if (match := ROW.fullmatch(row)) is None:
            raise ValueError(f"no mutation: {row}")
        found.append(Mutation(int(match[1]), *match.groups()[1:]))
    return found
