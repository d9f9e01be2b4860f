"""Who may look: everybody who reaches the address, or whoever has the token.

A browser cannot send a token with a stream of events, so it exchanges it once for a cookie. The cookie is a moment and
a signature of it under the token: nothing is kept, and it is valid after a restart, until that moment or a new token.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Callable
from hashlib import sha256

from aiohttp import web

from pages.dashboard.shell import token_page

COOKIE = "hearsay"
DAYS = 30
LONGEST_TOKEN = 1024
WRONG_SECONDS = 1.0
"""How long the answer to a wrong token takes."""


class Access:
    """Decides about requests. Without a token, everybody is let in."""

    def __init__(self, token: str | None, now: Callable[[], float] = time.time) -> None:
        self._token = token
        self._now = now

    def allows(self, request: web.Request) -> bool:
        """Whether a request has the cookie, or the token itself as `Authorization: Bearer`."""
        if self._token is None:
            return True
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(given.strip()):
            return True
        return self._is_signed(request.cookies.get(COOKIE, ""))

    async def exchange(self, request: web.Request) -> web.StreamResponse:
        """Answer a form with the token: with a cookie, or with the form again."""
        found = (await request.post()).get("token")
        if not isinstance(found, str) or not self._is_token(found.strip()):
            await asyncio.sleep(WRONG_SECONDS)
            return token_page("This is not the token.", 403)
        until = str(int(self._now()) + DAYS * 24 * 3600)
        answer = web.Response(status=303, headers={"Location": "./"})
        answer.set_cookie(
            COOKIE,
            f"{until}.{self._signature(until)}",
            max_age=DAYS * 24 * 3600,
            httponly=True,
            samesite="Strict",
            secure=request.secure,
            path=request.path.removesuffix("access"),
        )
        return answer

    def _is_token(self, given: str) -> bool:
        if self._token is None or len(given) > LONGEST_TOKEN:
            return False
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _is_signed(self, cookie: str) -> bool:
        until, _, signature = cookie.partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(until).encode()):
            return False
        return int(until) > self._now()

    def _signature(self, until: str) -> str:
        assert self._token is not None
        return hmac.new(self._token.encode(), b"hearsay dashboard cookie " + until.encode(), sha256).hexdigest()
