"""Who may look: everybody who reaches the address, or whoever has the token.

A browser cannot send a token with a stream of events, so it exchanges it once for a cookie. The cookie is a moment and
a signature of it under the token: nothing is kept, and it is valid after a restart, until that moment or a new token.
"""

import hmac
import time
from collections.abc import Callable
from hashlib import sha256
from urllib.parse import parse_qsl

from gateway.door import Rate, RateLimit
from gateway.http import Request, Response
from pages.dashboard.shell import TEXT, token_page

COOKIE = "hearsay"
DAYS = 30
WRONG = Rate(per_second=0.2, burst=10)
"""How many wrong tokens may come from one address."""
MISSING = Response(401, b"the token is missing or wrong\n", TEXT)


class Access:
    """Decides about requests. Without a token, everybody is let in."""

    def __init__(self, token: str | None, now: Callable[[], float] = time.time) -> None:
        self._token = None if token is None else token.encode()
        self._now = now
        self._wrong = RateLimit(WRONG)

    def refusal(self, request: Request) -> Response | None:
        """None if a request has the cookie, or the token itself as `Authorization: Bearer`; otherwise why not."""
        if self._token is None or self._is_signed(_cookie(request)):
            return None
        scheme, _, given = request.header(b"authorization").partition(" ")
        if scheme.lower() != "bearer":
            return MISSING
        return self._try(given.strip().encode("latin-1"), request.address, MISSING)

    def exchange(self, request: Request) -> Response:
        """Answer a form with the token: with a cookie, or with the form again. Where there is none, all are let in."""
        if self._token is None:
            return Response(303, headers=(("location", "./"),))
        given = dict(parse_qsl(request.body.decode("latin-1"), errors="replace")).get("token", "").strip().encode()
        refused = self._try(given, request.address, token_page("This is not the token.", 403))
        if refused is not None:
            return refused
        until, seconds = str(int(self._now()) + DAYS * 24 * 3600), DAYS * 24 * 3600
        cookie = f"{COOKIE}={until}.{self._signature(until)}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict"
        return Response(303, headers=(("location", "./"), ("set-cookie", cookie)))

    def _try(self, given: bytes, address: str, wrong: Response) -> Response | None:
        """None if this is the token. Whoever guesses too often is not told whether it is."""
        wait = self._wrong.wait(address, self._now())
        if wait:
            headers = (("retry-after", str(int(wait) + 1)),)
            return Response(429, b"too many wrong tokens came from this address\n", TEXT, headers)
        if self._token is not None and not hmac.compare_digest(given, self._token):
            return wrong
        self._wrong.forget(address)
        return None

    def _is_signed(self, cookie: str) -> bool:
        until, _, signature = cookie.partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(until).encode()):
            return False
        return int(until) > self._now()

    def _signature(self, until: str) -> str:
        assert self._token is not None
        return hmac.new(self._token, b"hearsay dashboard cookie " + until.encode(), sha256).hexdigest()


def _cookie(request: Request) -> str:
    parts = (part.strip().partition("=") for part in request.header(b"cookie").split(";"))
    return next((value for name, _, value in parts if name == COOKIE), "")
