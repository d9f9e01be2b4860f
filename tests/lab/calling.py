"""Commands as people and programs call them."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from hearsay.cli import app


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def figures_of(*arguments: object) -> dict[str, Any]:
    """What a command prints as JSON."""
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found
