"""What the dashboard answers: pages, the stream of events, files and downloads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple

from aiohttp import web

from pages.dashboard.access import Access
from pages.dashboard.shell import HEADERS, assets, overview_page, survey_page, token_page
from pages.dashboard.source import Source
from pages.dashboard.streaming import stream
from protocols.errors import HearsayError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
MOST_DOWNLOADS = 2
"""How many downloads are made at a time: each reads all results of a survey."""
FORMATS = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
}


class Wanted(NamedTuple):
    """What a download is to contain: a table of a survey, of one attribute or of all, in one of the formats."""

    survey: str
    table: str
    attribute: str | None
    format: str


Download = Callable[[Wanted], bytes]
"""Makes a download. Raises HearsayError if there is no such thing."""


def add_routes(
    app: web.Application,
    source: Source,
    *,
    download: Download | None = None,
    token: str | None = None,
    hosts: Collection[str] | None = None,
    prefix: str = "",
    at_once: bool = True,
) -> None:
    """Add the dashboard to an application, below a path. The source ends with the application, and starts with it.

    If not `at_once`, it starts with the first request: it reads all that was ever published.

    With a `token`, whoever has it may look. `hosts` are the names by which the dashboard may be called, without ports:
    a page of somebody else, whose name leads to this machine, is refused. None: any name.
    """
    dashboard = _Dashboard(source, Access(token), download, hosts)
    app.router.add_get(f"{prefix}/", dashboard.open(dashboard.page))
    if prefix:
        app.router.add_get(prefix, dashboard.open(dashboard.to_page))
    app.router.add_post(f"{prefix}/access", dashboard.open(dashboard.access.exchange))
    app.router.add_get(f"{prefix}/assets/{{name}}", dashboard.open(dashboard.asset))
    app.router.add_get(f"{prefix}/ready", dashboard.open(dashboard.ready))
    app.router.add_get(f"{prefix}/events", dashboard.guarded(dashboard.events), allow_head=False)
    app.router.add_get(f"{prefix}/download/{{survey}}/{{table}}.{{format}}", dashboard.guarded(dashboard.download))
    if at_once:
        app.on_startup.append(dashboard.start)
    app.on_shutdown.append(dashboard.end_streams)
    app.on_cleanup.append(dashboard.stop)


class _Dashboard:
    def __init__(
        self, source: Source, access: Access, download: Download | None, hosts: Collection[str] | None
    ) -> None:
        self.access = access
        self._source = source
        self._download = download
        self._hosts = hosts
        self._downloading = asyncio.Semaphore(MOST_DOWNLOADS)

    async def start(self, app: web.Application) -> None:
        self._source.start()

    async def end_streams(self, app: web.Application) -> None:
        self._source.stop()

    async def stop(self, app: web.Application) -> None:
        await asyncio.to_thread(self._source.join)

    def open(self, handler: Handler) -> Handler:
        """A handler that everybody may call, with the headers of every answer."""

        async def answer(request: web.Request) -> web.StreamResponse:
            if self._hosts is not None and _name(request.host) not in self._hosts:
                return web.Response(text="this address is not served under this name\n", status=421, headers=HEADERS)
            self._source.start()
            try:
                found = await handler(request)
            except web.HTTPException as refused:
                refused.headers.update(HEADERS)
                raise
            if not found.prepared:
                found.headers.update(HEADERS)
            return found

        return answer

    def guarded(self, handler: Handler) -> Handler:
        """A handler for those who may look."""

        async def answer(request: web.Request) -> web.StreamResponse:
            if not self.access.allows(request):
                return web.Response(text="the token is missing or wrong\n", status=401)
            return await handler(request)

        return self.open(answer)

    async def page(self, request: web.Request) -> web.StreamResponse:
        if not self.access.allows(request):
            return token_page()
        survey = request.query.get("survey")
        if survey is not None and not self._source.feed.knows(survey):
            raise web.HTTPNotFound(text="no survey of this name is published here\n")
        text = overview_page() if survey is None else survey_page(survey)
        answer = web.Response(text=text, content_type="text/html", headers={"Cache-Control": "no-cache"})
        answer.enable_compression()
        return answer

    async def to_page(self, request: web.Request) -> web.StreamResponse:
        """Addresses on pages are relative to the path with its slash."""
        return web.Response(status=308, headers={"Location": f"{request.path.rpartition('/')[2]}/"})

    async def asset(self, request: web.Request) -> web.StreamResponse:
        found = assets().get(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound(text="no such file\n")
        headers = {"ETag": found.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("If-None-Match") == found.tag:
            return web.Response(status=304, headers=headers)
        body = found.body
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            body, headers["Content-Encoding"] = found.compressed, "gzip"
        return web.Response(body=body, content_type=found.content_type, charset="utf-8", headers=headers)

    async def ready(self, request: web.Request) -> web.StreamResponse:
        """Whether all that was published before the start has been read."""
        is_ready = self._source.feed.caught_up
        text = json.dumps({"ready": is_ready}) + "\n"
        return web.Response(text=text, content_type="application/json", status=200 if is_ready else 503)

    async def events(self, request: web.Request) -> web.StreamResponse:
        return await stream(request, self._source.feed, HEADERS)

    async def download(self, request: web.Request) -> web.StreamResponse:
        wanted = Wanted(
            request.match_info["survey"],
            request.match_info["table"],
            request.query.get("attribute"),
            request.match_info["format"],
        )
        if self._download is None or wanted.format not in FORMATS:
            raise web.HTTPNotFound(text="no such download\n")
        try:
            async with self._downloading:
                body = await asyncio.to_thread(self._download, wanted)
        except HearsayError as error:
            raise web.HTTPNotFound(text=f"{error.message}\n") from None
        name = "-".join(part for part in (wanted.survey, wanted.table, wanted.attribute) if part)
        return web.Response(
            body=body,
            content_type=FORMATS[wanted.format],
            headers={
                "Content-Disposition": f'attachment; filename="{_plain(name)}.{wanted.format}"',
                "Cache-Control": "no-store",
            },
        )


def _name(host: str) -> str:
    """The name in a Host header.

    >>> _name("127.0.0.1:8050"), _name("[::1]:8050"), _name("localhost")
    ('127.0.0.1', '::1', 'localhost')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _plain(name: str) -> str:
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in name)
