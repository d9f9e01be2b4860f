"""Pages: their scripts and style as texts, and a page as one file that has all of it inside and needs no network.

A page that is opened from a file cannot load modules, so its scripts are one text: modules in the order of their
imports, without the words that make them modules. All modules share one scope there: no two may declare the same name,
and imports have the form `import { name, other } from "./file.js";`.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from posixpath import dirname, join, normpath

from pages.events import Event

ENTRY = "js/page.js"
STYLES = ("page.css", "charts.css")
VENDORED = ("vendor/d3.min.js", "vendor/plot.umd.min.js")
_IMPORT = re.compile(r'^import \{[^}]*\} from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|let|class)", re.MULTILINE)


def static_page(title: str, events: Iterable[Event]) -> str:
    """The page that shows these events.

    Its content security policy forbids network access, and all scripts but its own.
    """
    scripts = [*map(read, VENDORED), script()]
    digests = [b64encode(sha256(text.encode()).digest()).decode() for text in scripts]
    sources = " ".join(f"'sha256-{digest}'" for digest in digests)
    policy = f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data: blob:"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style()}</style>'
    return shell(title, head, embedded(events), "\n".join(f"<script>{text}</script>" for text in scripts))


def shell(title: str, head: str, events: str, scripts: str) -> str:
    """The frame of every page: `head` has the elements with its policy and its style, `scripts` those with its scripts.

    `events` are what it shows first (`embedded`); a live page may leave them empty.
    """
    return filled("page.html", {"title": escape(title), "head": head, "events": events, "scripts": scripts})


def filled(name: str, parts: Mapping[str, str]) -> str:
    """One of the files, with parts in the places that it names."""
    before, *rest = read(name).split("{{ ")
    return before + "".join(parts[name] + text for name, _, text in (part.partition(" }}") for part in rest))


def embedded(events: Iterable[Event]) -> str:
    """Events as JSON that can stand inside an element of a page.

    >>> embedded([{"kind": "survey", "survey": "s", "key": "survey/s", "record": {"title": "</script>"}}])
    '[{"kind":"survey","survey":"s","key":"survey/s","record":{"title":"\\\\u003c/script>"}}]'
    """
    return json.dumps(list(events), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


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
