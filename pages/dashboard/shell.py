"""The pages that the dashboard serves, and the files that they are made of. A page has no script of its own inside."""

import gzip
from functools import cache
from hashlib import sha256
from html import escape
from typing import NamedTuple

from gateway.http import Response
from pages.static import VENDORED, filled, read, script, shell, style

POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = (
    ("content-security-policy", POLICY),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
)
HTML, TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
OVERVIEW = "Surveys"
_SCRIPTS = {"page.js": "js/page.js", "survey.js": "live/survey.js", "overview.js": "live/overview.js"}
_STYLE = "live/live.css"
_LINK = '<link rel="stylesheet" href="assets/page.css"><link rel="icon" href="data:,">'


class Asset(NamedTuple):
    """A file, also compressed, and a tag that changes with it."""

    content_type: str
    body: bytes
    compressed: bytes
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """All files, by name."""
    scripts = {name: script(entry) for name, entry in _SCRIPTS.items()}
    scripts |= {name.rpartition("/")[2]: read(name) for name in VENDORED}
    texts = {name: ("text/javascript; charset=utf-8", text) for name, text in scripts.items()}
    texts["page.css"] = "text/css; charset=utf-8", style() + read(_STYLE)
    found = {}
    for name, (content_type, text) in texts.items():
        body = text.encode()
        tag = f'"{sha256(body).hexdigest()[:16]}"'
        found[name] = Asset(content_type, body, gzip.compress(body, 9, mtime=0), tag)
    return found


def survey_page(survey: str | None) -> str:
    """The page of one survey; None: of all."""
    scripts = ["overview.js"]
    if survey is not None:
        scripts = [*(name.rpartition("/")[2] for name in VENDORED), "page.js", "survey.js"]
    tags = "\n".join(f'<script src="assets/{name}"></script>' for name in scripts)
    return shell(OVERVIEW if survey is None else survey, _LINK, "", tags)


def token_page(said: str = "", status: int = 401) -> Response:
    """The page that asks for the token, as an answer."""
    page = filled("live/token.html", {"link": _LINK, "said": escape(said)})
    return Response(status, page.encode(), HTML)
