"""Requests and responses, and what an application is: it admits a request by its head, then answers it.

A head is read as RFC 9112 says, and refused where readers could differ.
"""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any

JSON = "application/json"
ALWAYS = b"x-content-type-options: nosniff\r\n"
FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via"})
"""What proxies add: somebody else asks, perhaps on another machine."""


Write = Callable[[bytes], Awaitable[None]]
Stream = Callable[[Write], Awaitable[None]]
"""Writes the body of a response for as long as it likes; each write waits until the client reads."""
_ABSOLUTE = re.compile(rb"https?://([^/?#@]+)([/?].*)?", re.IGNORECASE | re.DOTALL)


@dataclass(slots=True)
class Request:
    """A request. `state` is for the application; `certificate` is the client's, if it showed one that was verified.

    `address` is whose it is, where a listener is told to know that.
    """

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]
    keep_alive: bool
    certificate: Any
    address: str = ""
    body: bytes = b""
    state: Any = None

    def header(self, name: bytes) -> str:
        """The value of a header, by its name in lower case; empty if there is none."""
        return self.headers.get(name, b"").decode("latin-1").strip()

    @property
    def is_direct(self) -> bool:
        """Whether no proxy says that somebody else asks."""
        return self.headers.keys().isdisjoint(FORWARDED)


@dataclass(slots=True)
class Response:
    """A response. With a `stream`, the connection ends after it."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    stream: Stream | None = None

    def with_headers(self, *headers: tuple[str, str]) -> "Response":
        return Response(self.status, self.body, self.content_type, (*self.headers, *headers), self.stream)

    def encoded(self, closing: bool, head_only: bool = False) -> bytes:
        """As it is sent; `closing` says that the connection ends with it."""
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}"]
        if self.status != HTTPStatus.NOT_MODIFIED and self.stream is None:
            lines.append(f"content-length: {len(self.body)}")
        if self.body or self.stream is not None:
            lines.append(f"content-type: {self.content_type}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        if closing:
            lines.append("connection: close")
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n" + ALWAYS + b"\r\n"
        return head if head_only else head + self.body


def refusal(status: int, reason: str, detail: str, *headers: tuple[str, str]) -> Response:
    """A response that says why not, for programs and for people."""
    return Response(status, json.dumps({"reason": reason, "detail": detail}).encode(), JSON, headers)


Answer = Callable[[Response], None]


class Application:
    """What answers requests. Both methods are called in the event loop's thread, and must not wait."""

    def admit(self, request: Request) -> Response | int:
        """Judge a request by its head: a response that refuses it, or how many bytes its body may have."""
        raise NotImplementedError

    def handle(self, request: Request, answer: Answer) -> None:
        """Answer an admitted request, now or later, exactly once."""
        raise NotImplementedError

    def refused(self, response: Response) -> None:
        """Note that a request was refused before it was handled, or is to be sent again: by default not at all."""


def is_sound(version: str, headers: dict[bytes, bytes]) -> bool:
    """Whether everybody between here and the client finds the same end of the request.

    >>> is_sound("1.1", {b"host": b"h", b"transfer-encoding": b"Chunked"}), is_sound("1.1", {}), is_sound("1.0", {})
    (True, False, True)
    """
    coding = headers.get(b"transfer-encoding")
    if version == "1.1":
        return b"host" in headers and (coding is None or coding.strip().lower() == b"chunked")
    return version == "1.0" and coding is None


def origin_form(url: bytes, headers: dict[bytes, bytes]) -> bytes | None:
    """The path and query that are asked for; None if it is no target of ours. A host in the target replaces `Host`.

    >>> headers = {b"host": b"elsewhere"}
    >>> origin_form(b"http://here:80?q", headers), headers, origin_form(b"here:80", headers)
    (b'/?q', {b'host': b'here:80'}, None)
    """
    if url.startswith(b"/") or url == b"*":
        return url
    absolute = _ABSOLUTE.fullmatch(url)
    if absolute is None:
        return None
    headers[b"host"] = absolute[1]
    rest = absolute[2] or b"/"
    return rest if rest.startswith(b"/") else b"/" + rest


def name_in(host: bytes) -> str:
    """The name in a `Host` header, without the port.

    >>> name_in(b"127.0.0.1:8050"), name_in(b"[::1]:8050"), name_in(b"LocalHost")
    ('127.0.0.1', '::1', 'localhost')
    """
    text = host.decode("latin-1").strip().lower()
    return text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]


def address_of(transport: Any) -> str:
    """Whose connection it is: the address, or of IPv6 the network, which one client has to itself."""
    address = ip_address(str(transport.get_extra_info("peername")[0]).partition("%")[0])
    return address.packed[:8].hex() if address.version == 6 else str(address)
