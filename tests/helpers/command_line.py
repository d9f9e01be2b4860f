"""The command line: holding words against it without doing what they say, and programs that must end well."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import typer

from hearsay.cli import app
from tests.helpers.nursery import ROOT

WITHIN_SECONDS = 600


def resolve(arguments: list[str]) -> tuple[click.Command, list[str]]:
    """The command that is called, and its own arguments."""
    command: Any = typer.main.get_command(app)
    rest = [argument for argument in arguments if argument != "--debug"]
    while hasattr(command, "get_command") and rest and not rest[0].startswith("-"):
        _, command, rest = command.resolve_command(click.Context(command), rest)
    return command, rest


def parsed(words: Iterable[str]) -> dict[str, Any]:
    """What a command would be given. It does nothing; what it cannot be given is an error."""
    command, own = resolve(list(words))
    return command.make_context("hearsay", own).params


def done(*words: str | Path, directory: Path = ROOT, **environment: str) -> str:
    """What a program that ends well prints; otherwise all that it said."""
    ran = subprocess.run(
        list(map(str, words)),
        cwd=directory,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, f"{words}, exit code {ran.returncode}:\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout
