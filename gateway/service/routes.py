"""The routes of a gateway: what is asked, by whom, from which page, and how large it may be.

`/live`, `/ready` and `/metrics` are for those who watch it, at a port of their own if one is given.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from gateway.door.judging import Door
from gateway.http.messages import Answer, Application, Request, Response, refusal
from gateway.service.reports import NDJSON, Reports
from gateway.service.senders import Senders
from gateway.service.writing import Writer
from protocols.scheme import Scheme
from protocols.wire import FRAME, MAX_RECORD_BYTES, REPORT, TERMS

MAX_REPORT_BYTES, MAX_REPORTS_BYTES = 256 << 10, 4 << 20
TYPES = {"/v1/reports": {"application/json", REPORT} | NDJSON, "/v1/frames": {FRAME}}
SIGNATURE = "hearsay-signature"
CACHED = ("cache-control", "public, max-age=3600")
NOT_FOUND = refusal(404, "not-found", "there is no such page; /v1/openapi.json lists what there is")
NO_SURVEY = refusal(404, "unknown-survey", "no survey of this id is published")
OTHER_SITE = refusal(403, "forbidden", "pages of this origin may not send here")
NOTHING_ELSE = refusal(404, "not-found", "there are /live, /ready and /metrics")
ONLY_READ = refusal(405, "method-not-allowed", "this is only read", ("allow", "GET, HEAD"))
ENCODED = refusal(415, "unsupported-media-type", "compressed requests are not taken")

Page = Callable[[], Response]


@dataclass
class Gateway(Application):
    """The application. `surveys` are those that are published, by id, as they are now.

    `origins` are the origins whose pages may ask (CORS). `pages` are further paths that are only read, and made anew
    for every request; they are for who asks from this machine, and so are metrics. `shows_metrics` says whether these
    are served here, too. `refused_surveys` are those that cannot be collected here, with the reason.
    """

    surveys: Mapping[str, Scheme]
    writer: Writer
    senders: Senders
    ready: Callable[[], bool]
    origins: frozenset[str] = frozenset()
    shows_metrics: bool = True
    pages: Mapping[str, Page] = field(default_factory=dict)
    refused_surveys: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        door = Door(self.surveys.get, self.writer.log.times)
        self._reports = Reports(door, self.writer, self.senders.keys)
        described = json.loads((files(__package__) / "openapi.json").read_bytes())
        api = Response(200, json.dumps(described).encode(), headers=(CACHED,))
        self.health = health_pages(lambda: self.writer.failed is None, self.ready, lambda: self.refused_surveys)
        self._own: dict[str, Page] = {"/v1/surveys": self._survey_list, "/v1/openapi.json": lambda: api, **self.health}
        self._here = {**self.pages, **(metrics_page(self.writer.metrics.registry) if self.shows_metrics else {})}

    # --- by its head

    def admit(self, request: Request) -> Response | int:
        admitted = self._admit(request)
        return self._allow(request, admitted) if isinstance(admitted, Response) else admitted

    def refused(self, response: Response) -> None:
        if response.status == 503 and any(scheme.presence is not None for scheme in self.surveys.values()):
            return  # while nothing can be written, these are as many as there are reports
        self.writer.metrics.refused.labels(json.loads(response.body)["reason"]).inc()

    def _admit(self, request: Request) -> Response | int:
        if request.method in ("GET", "HEAD", "OPTIONS"):
            return 0
        kind = self._judge(request)
        if isinstance(kind, Response):
            return kind
        request.state = kind
        sender = self.senders.admit(request, self.writer.now())
        if isinstance(sender, Response):
            return sender
        request.certificate = sender  # from here on its credential
        if kind == FRAME:
            return MAX_RECORD_BYTES
        return MAX_REPORT_BYTES if sender is not None and sender.role == "device" else MAX_REPORTS_BYTES

    def _judge(self, request: Request) -> Response | str:
        """The type of what is posted, or why it is not taken."""
        types = TYPES.get(request.path)
        if types is None:
            return NOT_FOUND if self._page(request) is None else ONLY_READ
        if request.method != "POST":
            return refusal(405, "method-not-allowed", "reports are posted", ("allow", "POST, OPTIONS"))
        site, own = request.header(b"origin"), request.header(b"host")
        if site and site not in {*self.origins, f"http://{own}", f"https://{own}"}:  # a page of another site
            return OTHER_SITE
        if request.header(b"content-encoding") not in ("", "identity"):
            return ENCODED
        named = request.header(b"content-type").partition(";")[0].strip().lower()
        return named if named in types else refusal(415, "unsupported-media-type", f"send {', '.join(sorted(types))}")

    def _allow(self, request: Request, response: Response) -> Response:
        """Let a page of a named origin read the response."""
        origin = request.header(b"origin")
        if not self.origins:
            return response
        if origin not in self.origins:
            return response.with_headers(("vary", "origin"))
        return response.with_headers(("access-control-allow-origin", origin), ("vary", "origin"))

    # --- as a whole

    def handle(self, request: Request, answer: Answer) -> None:
        def allowed(response: Response) -> None:
            answer(self._allow(request, response))

        if request.method == "POST":
            take = self._reports.take if request.path == "/v1/reports" else self._reports.take_frame
            take(request, request.certificate, allowed)
        elif request.method == "OPTIONS":
            allowed(self._preflight(request))
        else:
            page = self._page(request)
            allowed(NOT_FOUND if page is None else _unless_known(request, page()))

    def _preflight(self, request: Request) -> Response:
        if request.header(b"origin") not in self.origins:
            return OTHER_SITE
        return Response(
            204,
            headers=(
                ("access-control-allow-methods", "GET, POST"),
                ("access-control-allow-headers", "authorization, content-type"),
                ("access-control-max-age", "3600"),
            ),
        )

    def _page(self, request: Request) -> Page | None:
        path = request.path
        if path.startswith("/v1/surveys/"):
            return lambda: self._terms(path.removeprefix("/v1/surveys/"))
        return self._own.get(path) or (self._here.get(path) if request.is_direct else None)

    def _survey_list(self) -> Response:
        listed = [
            {"id": scheme.survey.id, "title": scheme.survey.title, **scheme.names} for scheme in self.surveys.values()
        ]
        return Response(200, json.dumps({"surveys": listed}).encode(), headers=(("cache-control", "no-cache"),))

    def _terms(self, survey: str) -> Response:
        scheme = self.surveys.get(survey)
        if scheme is None:
            return NO_SURVEY
        headers = [CACHED, ("etag", f'"{scheme.fingerprint}"')]
        if scheme.survey.signature is not None:
            headers += [(SIGNATURE, scheme.survey.signature), ("access-control-expose-headers", SIGNATURE)]
        return Response(200, scheme.terms, TERMS, tuple(headers))


def _unless_known(request: Request, response: Response) -> Response:
    """304 if the client has the same already."""
    tag = dict(response.headers).get("etag")
    if tag is None or tag not in request.header(b"if-none-match"):
        return response
    return Response(304, headers=response.headers)


def health_pages(
    live: Callable[[], bool], ready: Callable[[], bool], refused: Callable[[], Mapping[str, str]]
) -> dict[str, Page]:
    """`/live` and `/ready`. The latter lists the surveys that are refused; the process is ready for all others."""
    return {"/live": lambda: _state("live", live()), "/ready": lambda: _ready(ready(), refused())}


def metrics_page(registry: CollectorRegistry) -> dict[str, Page]:
    return {"/metrics": lambda: Response(200, generate_latest(registry), CONTENT_TYPE_LATEST)}


class Watching(Application):
    """An application that has nothing but such pages."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = pages

    def admit(self, request: Request) -> Response | int:
        return 0 if request.method in ("GET", "HEAD") else ONLY_READ

    def handle(self, request: Request, answer: Answer) -> None:
        page = self._pages.get(request.path)
        answer(NOTHING_ELSE if page is None else page())


def _ready(ready: bool, refused: Mapping[str, str]) -> Response:
    listed = {"refused_surveys": dict(refused)} if refused else {}
    return _state("ready", ready, **listed)


def _state(name: str, value: bool, **more: Any) -> Response:
    body = json.dumps({name: value, **more}).encode()
    return Response(200 if value else 503, body, headers=(("cache-control", "no-store"),))
