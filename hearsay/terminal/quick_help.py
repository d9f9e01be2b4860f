"""Typer's help, imported without what a list of commands does not need.

typer imports rich's Markdown and its tracebacks for every help, with a parser and with hundreds of lexers: more than
half of the time of `hearsay --help`, which shows neither.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

SELDOM_MADE = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}
"""By module, the class that typer takes from it."""


def import_help() -> None:
    """Import typer's help with stand-ins for the classes that are seldom made."""
    absent = SELDOM_MADE.keys() - sys.modules.keys()
    for module in absent:
        sys.modules[module] = _stand_in(module, SELDOM_MADE[module])
    try:
        import_module("typer.rich_utils")
    finally:
        for module in absent:
            del sys.modules[module]


def _stand_in(module: str, name: str) -> ModuleType:
    """A module with one class. Whoever calls that gets an object of the real class, which is imported then."""

    def real(_: type, *given: Any, **named: Any) -> Any:
        return getattr(import_module(module), name)(*given, **named)

    standing = ModuleType(module)
    setattr(standing, name, type(name, (), {"__new__": real}))
    return standing
