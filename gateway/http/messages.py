"""Requests and responses, and what an application is: it admits a request by its head, then answers it."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol

JSON = "application/json"
ALWAYS = b"x-content-type-options: nosniff\r\n"


Write = Callable[[bytes], Awaitable[None]]
Stream = Callable[[Write], Awaitable[None]]
"""Writes the body of a response for as long as it likes; each write waits until the client reads."""


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
        return header_text(self.headers.get(name))


def header_text(value: bytes | None) -> str:
    """The value of a header as text; empty if there is none."""
    return "" if value is None else value.decode("latin-1").strip()


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


class Application(Protocol):
    """What answers requests. Both methods are called in the event loop's thread, and must not wait."""

    def admit(self, request: Request) -> Response | int:
        """Judge a request by its head: a response that refuses it, or how many bytes its body may have."""
        ...

    def handle(self, request: Request, answer: Answer) -> None:
        """Answer an admitted request, now or later, exactly once."""
        ...

    def refused(self, response: Response) -> None:
        """Note that a request was refused before it was handled, or is to be sent again."""
        ...
