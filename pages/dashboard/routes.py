"""What the dashboard answers: pages, the stream of events, files and downloads."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

import structlog

from gateway.http import Answer, Application, Request, Response
from pages.dashboard.access import Access
from pages.dashboard.shell import HEADERS, HTML, TEXT, assets, survey_page, token_page
from pages.dashboard.source import Source
from pages.dashboard.streaming import stream
from protocols.errors import HearsayError

FORM_BYTES = 16 << 10
NO_CACHE = ("cache-control", "no-cache")
MOST_DOWNLOADS = 2
"""How many downloads are made at a time: each reads all results of a survey."""
FORMATS = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
}


_DOWNLOAD = re.compile(r"/download/([^/]+)/([^/]+)\.([^/.]+)")
_NO_PAGE = Response(404, b"there is no such page\n", TEXT)
_ONLY_READ = Response(405, b"this is only read\n", TEXT, (("allow", "GET, HEAD"),))
_ONLY_POST = Response(405, b"the token is posted\n", TEXT, (("allow", "POST"),))
log = structlog.get_logger(__name__)


class Wanted(NamedTuple):
    """What a download is to contain: a table of a survey, of one attribute or of all, in one of the formats."""

    survey: str
    table: str
    attribute: str | None
    format: str


Download = Callable[[Wanted], bytes]
"""Makes a download. Raises HearsayError if there is no such thing."""


class Dashboard(Application):
    """The application. With a `token`, whoever has it may look.

    The source starts with the first request, if it was not started before: it reads all that was ever published.
    """

    def __init__(self, source: Source, *, download: Download | None = None, token: str | None = None) -> None:
        assets()  # before anybody waits for them
        self.source = source
        self._download = download
        self._access = Access(token)
        self._downloading = asyncio.Semaphore(MOST_DOWNLOADS)
        self._tasks: set[asyncio.Task[None]] = set()

    def admit(self, request: Request) -> Response | int:
        if request.path == "/access":
            return FORM_BYTES if request.method == "POST" else _ONLY_POST
        return 0 if request.method in ("GET", "HEAD") else _ONLY_READ

    def handle(self, request: Request, answer: Answer) -> None:
        def reply(response: Response) -> None:
            answer(response.with_headers(*HEADERS))

        self.source.start()
        path = unquote(request.path)
        download = _DOWNLOAD.fullmatch(path)
        if path == "/access":
            reply(self._access.exchange(request))
        elif path == "/ready":
            reply(self._ready())
        elif path.startswith("/assets/"):
            reply(_asset(request))
        elif path not in ("/", "/events") and download is None:
            reply(_NO_PAGE)
        elif (refused := self._access.refusal(request)) is not None:
            reply(token_page(status=refused.status) if path == "/" else refused)
        elif download is not None:
            wanted = Wanted(download[1], download[2], _asked(request).get("attribute"), download[3])
            task = asyncio.ensure_future(self._make(wanted, reply))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            reply(self._page(request) if path == "/" else stream(request, _asked(request), self.source.feed))

    def _page(self, request: Request) -> Response:
        survey = _asked(request).get("survey")
        if survey is not None and not self.source.feed.knows(survey):
            return Response(404, b"no survey of this name is published here\n", TEXT)
        return Response(200, survey_page(survey).encode(), HTML, (NO_CACHE,))

    def _ready(self) -> Response:
        """Whether all that was published before the start has been read."""
        is_ready = self.source.feed.caught_up
        return Response(200 if is_ready else 503, json.dumps({"ready": is_ready}).encode() + b"\n")

    async def _make(self, wanted: Wanted, reply: Answer) -> None:
        """Answer with a download."""
        response = _NO_PAGE
        if self._download is not None and wanted.format in FORMATS:
            name = _plain("-".join(part for part in (wanted.survey, wanted.table, wanted.attribute) if part))
            disposition = "content-disposition", f'attachment; filename="{name}.{wanted.format}"'
            try:
                async with self._downloading:
                    body = await asyncio.to_thread(self._download, wanted)
                response = Response(200, body, FORMATS[wanted.format], (disposition, ("cache-control", "no-store")))
            except HearsayError as error:
                response = Response(404, f"{error.message}\n".encode(), TEXT)
            except Exception:  # whoever asks again may get an answer
                log.exception("a download could not be made", table=wanted.table)
                response = Response(500, b"this download cannot be made now\n", TEXT)
        reply(response)


def _asked(request: Request) -> dict[str, str]:
    """The query."""
    return dict(parse_qsl(request.query.decode("latin-1"), keep_blank_values=True))


def _asset(request: Request) -> Response:
    found = assets().get(request.path.removeprefix("/assets/"))
    if found is None:
        return Response(404, b"no such file\n", TEXT)
    headers = (("etag", found.tag), NO_CACHE, ("vary", "accept-encoding"))
    if request.header(b"if-none-match") == found.tag:
        return Response(304, headers=headers)
    if "gzip" in request.header(b"accept-encoding"):
        return Response(200, found.compressed, found.content_type, (*headers, ("content-encoding", "gzip")))
    return Response(200, found.body, found.content_type, headers)


def _plain(name: str) -> str:
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in name)
