"""Holding words against the command line without doing what they say."""

from __future__ import annotations

from typing import Any

import click
import typer

from hearsay.cli import app


def resolve(arguments: list[str]) -> tuple[click.Command, list[str]]:
    """The command that is called, and its own arguments."""
    command: Any = typer.main.get_command(app)
    rest = [argument for argument in arguments if argument != "--debug"]
    while hasattr(command, "get_command") and rest and not rest[0].startswith("-"):
        name, *rest = rest
        command = command.get_command(click.Context(command), name)
        assert command is not None, f"there is no command {name!r}"
    return command, rest
