"""The size of the project as a reader pays for it: `make size`, or `python -m scripts.size`.

A row is a room, a column a figure. Tokens are printed, and have no limit. `--check` (part of
`make check`) fails if a figure of a room is above its limit in `scripts/size.json`. `--write`
lowers limits to what the rooms are now.

Columns: files; code lines; tokens; functions; functions of more than 150 tokens; tokens a code
line; per cent of functions above 150 tokens; per 1,000 code lines assignments of several values,
conditional expressions and nested comprehensions; per cent of code lines above 100 columns;
exceptions (`# dense: why`); `isinstance` of kinds of noise.
"""

import gc
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from scripts import density, ratchet
from scripts.density import Density, Spot
from scripts.ratchet import ALL, FIGURES, JAVASCRIPT, NOISE, Rooms, figures_of

ROOT = Path(__file__).parents[1]
LIMITS = ROOT / "scripts" / "size.json"
KEPT = ROOT / ".venv" / "density.json"
"""What was measured of files before."""
GIT_SECONDS = 60

PYTHON_ROOMS = {
    "protocols": "protocols",
    "analytics": "analytics",
    "stream_app": "stream_app",
    "producers": "producers",
    "memo_store": "memo_store",
    "servers": "servers",
    "views": "views",
    "pages": "pages",
    "gateway": "gateway",
    "hearsay": "hearsay",
    "hearsay_device": "clients/python/hearsay_device",
}
APART = {"lab": "lab", "tests": "tests"}
SCRIPT_ROOMS = {
    f"{JAVASCRIPT} of pages": ("pages", "hearsay"),
    f"{JAVASCRIPT} of the device": ("clients/javascript",),
}
NOT_OURS = {"vendor", "node_modules"}
OF_MECHANISMS = "protocols/mechanisms/"
"""Where kinds of noise may ask for one another."""

Source = tuple[str, str]
"""The name of a file below the root, and its text."""


def room_of(file: str) -> str | None:
    """The room that a file is counted in, if in any.

    >>> files = ("views/runner.py", "pages/assets/js/map.js", "pages/assets/vendor/d3.js")
    >>> [room_of(file) for file in files]
    ['views', 'JavaScript of pages', None]
    """
    if file.endswith(".py"):
        for room, folder in (PYTHON_ROOMS | APART).items():
            if file.startswith(f"{folder}/"):
                return room
    elif file.endswith((".js", ".mjs")) and NOT_OURS.isdisjoint(file.split("/")):
        for room, folders in SCRIPT_ROOMS.items():
            if file.startswith(tuple(f"{folder}/" for folder in folders)):
                return None if "/tests/" in file else room
    return None


def sources_here(root: Path) -> Iterator[Source]:
    """The files of a checkout. Links are left out: they lead to what is counted elsewhere."""
    tops = {folder.partition("/")[0] for folder in (PYTHON_ROOMS | APART).values()}
    for top in sorted(tops):
        for path in sorted((root / top).rglob("*.*")):
            file = path.relative_to(root).as_posix()
            if room_of(file) and path.is_file() and not path.is_symlink():
                yield file, path.read_text("utf-8")


def sources_of(root: Path, commit: str) -> Iterator[Source]:
    """The files of a commit."""
    command = ["git", "archive", "--format=tar", commit]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False, timeout=GIT_SECONDS)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        sys.exit(f"git has no commit {commit} to compare with: {said}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None and room_of(member.name):
                yield member.name, content.read().decode("utf-8")


class Measured:
    """Measures files, and keeps what it measured: parsing all of them takes seconds."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.before = self.read()
        self.now: dict[str, Any] = {}
        self.rules = Path(density.__file__).read_bytes() + Path(__file__).read_bytes()

    def read(self) -> dict[str, Any]:
        """What was kept. A file that cannot be read is as good as none."""
        try:
            kept: dict[str, Any] = json.loads(self.file.read_text())
        except (OSError, ValueError):
            return {}
        return kept

    def write(self) -> None:
        """Keep what was measured now. Others may read or write at the same time."""
        if self.now == self.before or not self.file.parent.is_dir():
            return
        beside = self.file.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(self.now))
        beside.replace(self.file)

    def of(self, file: str, text: str) -> Density:
        """Measure a file, unless the same text was measured by the same rules before."""
        key = hashlib.sha256(b"\0".join([self.rules, file.encode(), text.encode()])).hexdigest()
        kept = self.before.get(key)
        if kept is None:
            kept = vars(of_text(file, text))
        self.now[key] = kept
        return Density(**{name: restored(value) for name, value in self.now[key].items()})


def restored(value: Any) -> Any:
    """A count or a list of places, as it was before it became JSON."""
    if isinstance(value, list):
        return [Spot(*spot) for spot in value]
    return value


def of_text(file: str, text: str) -> Density:
    """Measure a file."""
    if not file.endswith(".py"):
        return density.of_javascript(text, file)
    found = density.of_python(text, file)
    if file.startswith((OF_MECHANISMS, "tests/")):
        found.noise = []
    return found


def measure(sources: Iterable[Source], measured: Measured) -> Rooms:
    """Measure each room, and the sums."""
    names = [*PYTHON_ROOMS, ratchet.ROOMS, "lab", ALL, "tests", *SCRIPT_ROOMS]
    rooms = {name: Density() for name in names}
    for file, text in sources:
        room = room_of(file)
        if room is None:
            continue
        found = measured.of(file, text)
        rooms[room].add(found)
        if room in PYTHON_ROOMS:
            rooms[ratchet.ROOMS].add(found)
        if room in PYTHON_ROOMS or room == "lab":
            rooms[ALL].add(found)
    return rooms


Row = dict[str, float]
CHANGE = "+"
"""The form of numbers that are changes."""


def row(room: str, found: Density) -> Row:
    """The figures of a room by their titles."""
    shown: Row = {"files": found.files, "code": found.code, "tokens": found.tokens}
    scripts = room.startswith(JAVASCRIPT)
    if not scripts:
        shown["functions"] = found.functions
        shown[">150"] = len(found.long_functions)
    for figure in figures_of(room) if scripts else (*FIGURES, NOISE):
        shown[figure.title] = round(figure.value(found), 2)
    return shown


def table(rows: dict[str, Row], form: str) -> str:
    """Rows under the heads of their columns.

    >>> views = {"code": 2_110.0, "tokens": 20_324.0}
    >>> print(table({"views": views, "JavaScript": {"tokens": 7.5}}, ""))
                                   code    tokens
    views                         2,110    20,324
    JavaScript                                7.5
    """
    titles = max(rows.values(), key=len)
    lines = [" " * 25 + "".join(f"{title:>10}" for title in titles)]
    for room, shown in rows.items():
        cells = [cell(shown.get(title), form) for title in titles]
        lines.append(f"{room:25}" + "".join(cells))
    return "\n".join(lines)


def cell(value: float | None, form: str) -> str:
    """A number, without `.0`; a dot for no change."""
    if value is None:
        return " " * 10
    rounded = round(value, 2)
    if form == CHANGE and rounded == 0:
        return f"{'.':>10}"
    plain = f"{rounded:{form},}".removesuffix(".0")
    return f"{plain:>10}"


def exceptions(rooms: Rooms) -> str:
    """Where the exceptions are."""
    lines = []
    for name, found in rooms.items():
        if name not in (ratchet.ROOMS, ALL):
            lines += [f"{spot.where}: {spot.what}\n" for spot in found.exceptions]
    return "".join(lines)


def changes(before: dict[str, Row], now: dict[str, Row]) -> dict[str, Row]:
    """What is more or less now.

    >>> changes({"views": {"code": 90}}, {"views": {"code": 100}})
    {'views': {'code': 10}}
    """
    found = {}
    for room, shown in now.items():
        found[room] = {title: value - before[room][title] for title, value in shown.items()}
    return found


WHAT_ELSE = """\
`make size COMPARE=HEAD` shows what your change did. If plain code was deleted or moved to another
room, write the new limit into scripts/size.json by hand, and say so in the commit."""


def check(rooms: Rooms, limits_file: Path) -> int:
    """Say what is above its limit."""
    said = list(ratchet.complaints(rooms, ratchet.read(limits_file)))
    if not said:
        return 0
    sys.stderr.write("\n".join([*said, WHAT_ELSE]) + "\n")
    return 1


def lower(rooms: Rooms, limits_file: Path) -> int:
    """Lower the limits, and say which are exceeded."""
    limits = ratchet.read(limits_file)
    ratchet.write(limits_file, ratchet.new_limits(rooms, limits))
    return check(rooms, limits_file)


def arguments() -> Namespace:
    """What is asked."""
    parser = ArgumentParser(prog="python -m scripts.size", description=__doc__.partition("\n")[0])
    wanted = parser.add_mutually_exclusive_group()
    wanted.add_argument("--json", action="store_true", help="the table as JSON")
    wanted.add_argument("--compare", metavar="COMMIT", help="what is more or less than in a commit")
    wanted.add_argument("--check", action="store_true", help="fail if a figure is above its limit")
    wanted.add_argument("--write", action="store_true", help="lower limits to what is there now")
    return parser.parse_args()


def rows_of(rooms: Rooms) -> dict[str, Row]:
    """The table."""
    return {room: row(room, found) for room, found in rooms.items()}


def with_keys(rows: dict[str, Row]) -> dict[str, Row]:
    """The table with the names that figures have in `scripts/size.json`.

    >>> with_keys({"views": {"code": 10, "tok/line": 7.5}})
    {'views': {'code': 10, 'tokens_per_line': 7.5}}
    """
    keys = {figure.title: figure.key for figure in (*FIGURES, NOISE)}
    keys[">150"] = "long_functions"
    named = {}
    for room, shown in rows.items():
        named[room] = {keys.get(title, title): value for title, value in shown.items()}
    return named


def main() -> int:
    """Print the table, or do what is asked."""
    given = arguments()
    gc.disable()  # trees of sources have no circles, and looking for some takes a third of the time
    measured = Measured(KEPT)
    rooms = measure(sources_here(ROOT), measured)
    before: Rooms = {}
    if given.compare:
        before = measure(sources_of(ROOT, given.compare), measured)
    measured.write()
    if given.check:
        return check(rooms, LIMITS)
    if given.write:
        return lower(rooms, LIMITS)
    print_rooms(rooms, before, given.json)
    return 0


def print_rooms(rooms: Rooms, before: Rooms, as_json: bool) -> None:
    """Print the table, or how it differs from the one before."""
    rows = rows_of(rooms)
    if as_json:
        printed = json.dumps(with_keys(rows), indent=1) + "\n"
    elif before:
        printed = table(changes(rows_of(before), rows), CHANGE) + "\n"
    else:
        printed = table(rows, "") + "\n" + exceptions(rooms)
    sys.stdout.write(printed)


if __name__ == "__main__":
    sys.exit(main())
