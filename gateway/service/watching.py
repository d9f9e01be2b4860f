"""`/live`, `/ready` and `/metrics`: the pages for those who watch a gateway, at a port of their own if one is given."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from gateway.http.messages import Answer, Request, Response, refusal
from gateway.service.metrics import Metrics

NOT_FOUND = refusal(404, "not-found", "there are /live, /ready and /metrics")
ONLY_READ = refusal(405, "method-not-allowed", "this is only read", ("allow", "GET, HEAD"))

Page = Callable[[], Response]


def health_pages(live: Callable[[], bool], ready: Callable[[], bool]) -> dict[str, Page]:
    return {"/live": lambda: _state("live", live()), "/ready": lambda: _state("ready", ready())}


def metrics_page(metrics: Metrics) -> dict[str, Page]:
    return {"/metrics": lambda: Response(200, metrics.page(), metrics.CONTENT_TYPE)}


class Watching:
    """An application that has nothing but such pages."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = pages

    def admit(self, request: Request) -> Response | int:
        return 0 if request.method in ("GET", "HEAD") else ONLY_READ

    def handle(self, request: Request, answer: Answer) -> None:
        page = self._pages.get(request.path)
        answer(NOT_FOUND if page is None else page())

    def refused(self, response: Response) -> None:
        """Who watches is not counted."""


def _state(name: str, value: bool) -> Response:
    return Response(200 if value else 503, json.dumps({name: value}).encode(), headers=(("cache-control", "no-store"),))
