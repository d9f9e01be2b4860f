"""Help texts are part of the product: each is kept as a file, so that a change is seen by whoever reviews it.

To accept a change: UPDATE_HELP=1 make test (or the same variable for pytest), and look at the difference.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from hearsay.cli import COMMANDS, app
from tests.docs.pages import commands as called
from tests.helpers.command_line import parsed, resolve

SNAPSHOTS = Path(__file__).parent / "help"


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command and group, as the words to type."""
    yield path
    names = command.list_commands(None) if hasattr(command, "list_commands") else []
    for name in names:
        yield from commands(command.resolve_command(None, [name])[1], (*path, name))


EVERY = list(commands(typer.main.get_command(app)))


def help_of(path: tuple[str, ...]) -> str:
    result = CliRunner().invoke(
        app, [*path, "--help"], prog_name="hearsay", env={"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    )
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines()) + "\n"


@pytest.mark.parametrize("path", EVERY, ids=lambda path: "-".join(path) or "hearsay")
def test_the_help_text_is_the_one_we_looked_at(path: tuple[str, ...]) -> None:
    kept = SNAPSHOTS / f"{'-'.join(path) or 'hearsay'}.txt"
    shown = help_of(path)
    if os.environ.get("UPDATE_HELP"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(shown)
    assert kept.exists(), f"{kept.name} is missing: run with UPDATE_HELP=1 and look at it"
    assert shown == kept.read_text()
    assert "…" not in shown, "something is cut off"
    without = [parameter.name for parameter in resolve(list(path))[0].params if not parameter.help]
    assert not without, f"write a text into hearsay/commands/options.json for {without}"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_lists_a_command_by_the_first_paragraph_of_its_help(name: str) -> None:
    command, _ = resolve([name])
    assert " ".join((command.help or "").split("\n\n")[0].split()) == COMMANDS[name][1]


def test_a_mistyped_command_is_answered_with_the_one_that_was_meant() -> None:
    result = CliRunner().invoke(app, ["reprot"])
    assert result.exit_code == 2
    assert "Did you mean 'report'" in result.output
    assert CliRunner().invoke(app, ["-h"]).output == CliRunner().invoke(app, ["--help"]).output
    assert CliRunner().invoke(app, ["--version"]).exit_code == 0


def test_no_snapshot_is_left_over() -> None:
    assert {file.stem for file in SNAPSHOTS.glob("*.txt")} == {"-".join(path) or "hearsay" for path in EVERY}


@pytest.mark.parametrize("path", EVERY, ids=lambda path: "-".join(path) or "hearsay")
def test_every_command_shows_an_example_that_is_a_command(path: tuple[str, ...]) -> None:
    examples = re.findall(r"^ *Example: (.*?)(?:^ *$|^╭)", help_of(path), flags=re.MULTILINE | re.DOTALL)
    assert examples or any(other[: len(path)] == path and other != path for other in EVERY), "it is no group"
    for example in examples:
        for arguments in called(" ".join(example.split()), "hearsay"):
            parsed(arguments)
