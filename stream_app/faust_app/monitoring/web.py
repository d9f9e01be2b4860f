"""The pages of a worker: liveness, readiness and metrics."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest


def add_pages(site: web.Application, ready: Callable[[], bool], registry: CollectorRegistry) -> None:
    """`/live`, `/ready` (only once recovery is done) and `/metrics`."""

    async def live(request: web.Request) -> web.Response:
        return web.json_response({"live": True})

    async def is_ready(request: web.Request) -> web.Response:
        yes = ready()
        return web.json_response({"ready": yes}, status=200 if yes else 503)

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    site.router.add_get("/live", live)
    site.router.add_get("/ready", is_ready)
    site.router.add_get("/metrics", metrics)
