"""`/try`: a device in the browser, made of the JavaScript library, and the estimate that its reports move.

The page and what it shows are served where everybody may send: on the loopback address, and not through a proxy. Its
files are in `assets`; the library's own are those of clients/javascript. Browsers give it cryptography on https and on
loopback only.
"""

import json
from collections.abc import Mapping
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import structlog

from gateway.http import Response
from gateway.service import Page
from pages.static import style
from protocols.errors import SurveyError
from protocols.planning import told_apart
from protocols.scheme import Scheme, confined_to
from stream_app.local import LocalStore
from views.reading import Results

TYPES = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript; charset=utf-8"}
CONTENT_POLICY = "; ".join(
    ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'",
     "form-action 'none'", "frame-ancestors 'none'")
)  # fmt: skip
HEADERS = (
    ("cache-control", "no-cache"),
    ("content-security-policy", CONTENT_POLICY),
    ("referrer-policy", "no-referrer"),
)
LINKED = (2, 7)  # linked reports for which the page says what any two histories of answers reveal
NO_STORE = (("cache-control", "no-store"),)
log = structlog.get_logger(__name__)


def try_pages(schemes: Mapping[str, Scheme], results: Path) -> dict[str, Page]:
    """Every page under `/try`, by its path; `results` is the collector's directory."""
    store = LocalStore.existing(results)
    found = {f"/try/{file.name}": _constant(_asset(file)) for file in (files("hearsay.serving") / "assets").iterdir()}
    found["/try"] = found.pop("/try/try.html")
    found["/try/page.css"] = _constant(Response(200, style().encode(), TYPES["css"], HEADERS))
    found["/"] = _constant(Response(303, headers=(("location", "/try"),)))
    for survey, scheme in schemes.items():
        try:
            with confined_to(survey):
                found[f"/try/{survey}/about.json"] = _constant(_about(scheme))
        except SurveyError as error:
            log.error("a survey cannot be tried in a browser", survey=survey, error=error.message)
        found[f"/try/{survey}/live.json"] = partial(_live, store, survey)
    return found


def _about(scheme: Scheme) -> Response:
    """The values of a survey, and how well a guess gets from linked reports."""
    listed = {attribute.name: list(attribute.values) for attribute in scheme.survey.attributes}
    losses = {t: scheme.guarantees.any(t).whole for t in LINKED}
    chances = {t: 1.0 if loss is None else told_apart(loss) for t, loss in losses.items()}
    return Response(200, json.dumps({"values": listed, "any": chances}).encode())


def _constant(response: Response) -> Page:
    return lambda: response


def _live(store: LocalStore, survey: str) -> Response:
    live = Results(store).live(survey)
    return Response(200, b"{}" if live is None else live.model_dump_json().encode(), headers=NO_STORE)


def _asset(file: Traversable) -> Response:
    return Response(200, file.read_bytes(), TYPES[file.name.rpartition(".")[2]], HEADERS)
