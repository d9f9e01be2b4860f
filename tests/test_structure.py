"""The plan of the house: rooms reach into one another through faces, and no package grows beyond a dozen rooms."""

import ast
import doctest
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = (
    "protocols",
    "servers",
    "memo_store",
    "analytics",
    "producers",
    "stream_app",
    "views",
    "gateway",
    "pages",
    "hearsay",
    "lab",
)
MOST_ROOMS = 12
SOURCES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
# What a face would have to import for everybody, although few need it: numba.
APART = {"protocols.arrays.compiling"}


@cache
def imports(path: Path) -> list[ast.ImportFrom]:
    """Every import of one of our rooms, or of the tests, in a file, wherever it stands."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    return [node for node in nodes if (node.module or "").partition(".")[0] in (*ROOMS, "tests")]


def test_other_rooms_are_reached_through_the_faces_of_their_folders() -> None:
    wrong = [f"{path.relative_to(ROOT)}: {said}" for path in SOURCES for said in past_a_face(path)]
    assert not wrong, "\n".join(wrong)


def past_a_face(path: Path) -> Iterator[str]:
    room = path.relative_to(ROOT).parts[0]
    for node in imports(path):
        module = str(node.module)
        if module.partition(".")[0] in (room, "hearsay") or module in APART:  # only the lab imports from hearsay
            continue
        if module.count(".") != 1:
            yield f"line {node.lineno} reaches past the face of {module}"
            continue
        face = ROOT / module.replace(".", "/") / "__init__.py"
        if face.exists():
            offered = {alias.asname or alias.name for said in imports(face) for alias in said.names}
            missing = {alias.name for alias in node.names} - offered
            if missing:
                yield f"line {node.lineno}: {module} does not offer {', '.join(sorted(missing))}"


def test_a_room_has_nothing_in_its_own_init_but_its_description() -> None:
    for room in set(ROOMS) - {"hearsay"}:  # whose face is for people who import it
        body = ast.parse((ROOT / room / "__init__.py").read_text()).body
        assert len(body) == 1 and isinstance(body[0], ast.Expr), room


def test_no_package_has_more_than_a_dozen_rooms() -> None:
    for directory in {path.parent for path in SOURCES}:
        inside = [
            entry
            for entry in directory.iterdir()
            if (entry.suffix == ".py" and not entry.stem.startswith("__")) or (entry / "__init__.py").exists()
        ]
        assert len(inside) <= MOST_ROOMS, f"{directory.relative_to(ROOT)}: {sorted(entry.name for entry in inside)}"


def test_benchmarks_and_rooms_import_nothing_from_the_tests() -> None:
    for path in [*SOURCES, *(ROOT / "bench").rglob("*.py")]:
        assert not [node for node in imports(path) if str(node.module).startswith("tests")], path


def test_what_make_bench_runs_are_benchmarks() -> None:
    for path in (ROOT / "bench").glob("[!_]*.py"):
        functions = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
        assert "run" in functions, f"{path.name} has no run(): let its name begin with _"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("room", ROOMS)
def test_examples_compute_what_they_show(room: str) -> None:
    showing = [path for path in SOURCES if path.is_relative_to(ROOT / room) and ">>> " in path.read_text()]
    said: list[str] = []
    for path in showing:
        module = import_module(module_name(path))
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
        for examples in doctest.DocTestFinder(exclude_empty=True).find(module, module.__name__):
            runner.run(examples, out=said.append)
        assert runner.tries > 0, f"{path.relative_to(ROOT)} shows examples that are not found"
    assert not said, "".join(said)
