"""Commands as people and programs call them."""

from __future__ import annotations

import json
import shlex
from typing import Any

from typer.testing import CliRunner, Result

from hearsay.cli import app


def call(words: str, *more: object) -> Result:
    """`hearsay` with these words, as a shell would split them, and with more arguments."""
    return CliRunner().invoke(app, [*shlex.split(words), *map(str, more)])


def figures_of(words: str, *more: object) -> dict[str, Any]:
    """What a command prints as JSON."""
    result = call(words, *more, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found
