"""The page's own scripts as one: modules in the order of their imports, without the words that make them modules.

A page that is opened from a file cannot load modules, so its scripts are one text. All modules share one scope there:
no two may declare the same name, and imports have the form `import { name, other } from "./file.js";`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from posixpath import dirname, join, normpath

ENTRY = "js/page.js"
STYLES = ("page.css", "charts.css")
VENDORED = ("vendor/d3.min.js", "vendor/plot.umd.min.js")
_IMPORT = re.compile(r'^import \{[^}]*\} from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|let|class)", re.MULTILINE)


def assets() -> Traversable:
    """The folder of all files that pages are made of."""
    return files(__package__) / "assets"


def read(name: str) -> str:
    """The text of one of the files."""
    return (assets() / name).read_text("utf-8")


@cache
def script(entry: str = ENTRY) -> str:
    """The page's own scripts as one, ready for a browser: a module and all that it imports."""
    parts = [_EXPORT.sub("", _IMPORT.sub("", read(name))) for name in modules(entry)]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


@cache
def style() -> str:
    """The page's style."""
    return "".join(map(read, STYLES))


def modules(entry: str) -> list[str]:
    """A module and all that it imports, directly or not: each after those that it imports.

    >>> modules(ENTRY)[-1]
    'js/page.js'
    """
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        if name not in found:
            for imported in _IMPORT.findall(read(name)):
                visit(normpath(join(dirname(name), imported)))
            found[name] = None

    visit(entry)
    return list(found)
