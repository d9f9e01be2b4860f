"""The pages people read, taken apart: blocks of code, commands, links, headings.

    ```sh       run as shown, in order, in one shell per page
    ```output   what the block before printed; a line of `...` stands for anything
    ```python   doctests, in one namespace per page

A block of commands that cannot be run says why, on the line above it: `<!-- not run: the reason -->`. Its commands are
still held against the command line. Other languages are for looking at. A page that needs a program which not everybody
has says so in its first line: `<!-- needs: node -->`; a block of commands that needs one, on the line above it. A page
whose commands take minutes is run by `make drills`, and says so in its first line: `<!-- drill: takes minutes -->`.
"""

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNBOOKS = ROOT / "docs" / "runbooks"
"""Pages whose commands are run on one cluster that is there already (tests/docs/test_runbooks.py)."""
LANGUAGES = {"sh", "output", "python", "py", "yaml", "json", "js", "html", "sql", "text", "lua", ""}
"""`python` are examples, run by tests/docs/test_links.py; `py` is a program, run by tests/clients/test_crashes.py."""
NOT_RUN = re.compile(r"<!-- not run: (.+) -->")
DRILL = re.compile(r"<!-- drill: (.+) -->")
NEEDS = re.compile(r"<!-- needs: (\w+) -->")
FENCE = re.compile(r"```(\S*)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
IMAGE = re.compile(r'(?:src|srcset)="([^"]+)"')
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    """A fenced block: the line its text begins on, why it is not run if it is not, and a program that it needs."""

    language: str
    line: int
    text: str
    not_run: str | None
    needs: str | None


@dataclass(frozen=True)
class Page:
    """One page of Markdown."""

    path: Path

    def __str__(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def blocks(self) -> list[Block]:
        return list(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        lines = self.text.splitlines()
        opened: tuple[str, int] | None = None
        for number, line in enumerate(lines):
            fence = FENCE.match(line.strip())
            if opened is None and fence:
                opened = fence[1], number + 1
            elif opened is not None and line.strip() == "```":
                language, start = opened
                above = lines[start - 2] if start >= 2 else ""
                reason, needs = NOT_RUN.fullmatch(above), NEEDS.fullmatch(above)
                text = "\n".join(lines[start:number])
                yield Block(language, start + 1, text, reason[1] if reason else None, needs[1] if needs else None)
                opened = None
        assert opened is None, f"{self}: the block of line {opened} is never closed"

    def run(self) -> list[Block]:
        """The blocks of commands that are run here."""
        shown = [block for block in self.blocks if block.language == "sh" and block.not_run is None]
        return [block for block in shown if block.needs is None or shutil.which(block.needs) is not None]

    @property
    def needs(self) -> str | None:
        """A program that its commands need."""
        found = NEEDS.match(self.text)
        return found[1] if found else None

    @property
    def is_drill(self) -> bool:
        """Whether its commands are run by `make drills`, and not by the tests."""
        return DRILL.match(self.text) is not None

    @cached_property
    def prose(self) -> str:
        """What is not in a fenced block."""
        return re.sub(r"^```.*?^```$", "", self.text, flags=re.MULTILINE | re.DOTALL)

    @property
    def links(self) -> list[str]:
        """Where it leads to within the project."""
        found = LINK.findall(self.prose) + IMAGE.findall(self.prose)
        return [link for link in found if not re.match(r"[a-z]+:", link)]

    @property
    def anchors(self) -> set[str]:
        """Its headings as a link names them."""
        headings = re.findall(r"^#+ (.+)$", self.prose, flags=re.MULTILINE)
        kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
        return {heading.strip().replace(" ", "-") for heading in kept}


def pages() -> list[Page]:
    places = [ROOT.glob("*.md"), *((ROOT / room).rglob("*.md") for room in ("docs", "examples", "deploy", "clients"))]
    return [Page(path) for found in places for path in sorted(found) if "node_modules" not in path.parts]


def commands(script: str, program: str) -> Iterator[list[str]]:
    """The arguments of every call of a program in a script, as the shell would split them."""
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        call: list[str] = []
        for word in [*_words(lexer), ";"]:
            if set(word) <= set("();<>|&"):
                if call and call[0] == program:
                    yield call[1:]
                call = []
            elif call or not re.fullmatch(r"\w+=.*", word):
                call.append(word)


def _words(lexer: shlex.shlex) -> Iterator[str]:
    try:
        yield from lexer
    except ValueError:  # a quotation that goes on in the next line: no call of ours
        return
