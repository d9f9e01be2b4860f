"""A page as one file: scripts, style and events are inside it, and it needs no network."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from html import escape

from pages.bundle import VENDORED, read, script, style
from pages.events import Event


def static_page(title: str, events: Iterable[Event]) -> str:
    """The page that shows these events.

    Its content security policy forbids network access, and all scripts but its own.
    """
    scripts = [*map(read, VENDORED), script()]
    sources = " ".join(f"'sha256-{_digest(text)}'" for text in scripts)
    policy = f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data: blob:"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style()}</style>'
    return shell(title, head, embedded(events), "\n".join(f"<script>{text}</script>" for text in scripts))


def shell(title: str, head: str, events: str, scripts: str) -> str:
    """The frame of every page: `head` has the elements with its policy and its style, `scripts` those with its scripts.

    `events` are what it shows first (`embedded`); a live page may leave them empty.
    """
    parts = {"title": escape(title), "head": head, "events": events, "scripts": scripts}
    before, *rest = read("page.html").split("{{ ")
    return before + "".join(parts[name] + text for name, _, text in (part.partition(" }}") for part in rest))


def embedded(events: Iterable[Event]) -> str:
    """Events as JSON that can stand inside an element of a page.

    >>> embedded([{"kind": "survey", "survey": "s", "key": "survey/s", "record": {"title": "</script>"}}])
    '[{"kind":"survey","survey":"s","key":"survey/s","record":{"title":"\\\\u003c/script>"}}]'
    """
    return json.dumps(list(events), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()
