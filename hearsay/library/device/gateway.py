"""HTTP to a gateway that may be anybody: bounded in time and size, no redirects."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
from contextlib import suppress
from threading import Timer
from typing import Literal
from urllib.parse import quote, urlsplit

from protocols.errors import DeviceError
from protocols.wire import MAX_TERMS_BYTES, REPORT

MAX_ANSWER_BYTES = 64 << 10
RETRY = "try again later: the same report will be sent"

Outcome = Literal["counted", "late"]


class Gateway:
    """A gateway at an address such as `https://collect.example`."""

    def __init__(self, address: str, timeout: float, bearer: str | None = None) -> None:
        self._at = urlsplit(address.rstrip("/"))
        if self._at.scheme not in ("http", "https") or not self._at.hostname:
            raise DeviceError("gateway", f"{address!r} is no address of a gateway", "write it like https://host:port")
        self._timeout = timeout
        self._headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}

    def terms(self, survey: str) -> bytes:
        """The terms of a survey, as the gateway has them; nothing about them is believed yet."""
        status, body = self._request("GET", f"/v1/surveys/{quote(survey, safe='')}", None, MAX_TERMS_BYTES)
        if status != 200:
            raise DeviceError("gateway", f"the gateway has no terms of survey {survey!r} (status {status})")
        return body

    def post(self, report: bytes) -> Outcome:
        """Whether the report is in the collector's hands or its period closed; anything else is an error."""
        status, body = self._request("POST", "/v1/reports", report, MAX_ANSWER_BYTES)
        if status in (200, 201, 202):
            return "counted"
        reason = _reason(body) if 400 <= status < 500 else ""
        if reason == "repeat":
            return "counted"
        if reason == "late":
            return "late"
        raise DeviceError("gateway", f"the report was not taken (status {status}{reason and ', ' + reason})", RETRY)

    def _request(self, method: str, path: str, body: bytes | None, most: int) -> tuple[int, bytes]:
        connection = self._connection()
        sockets: list[socket.socket] = []
        # A time-out of a socket starts again with every byte: this one does not.
        alarm = Timer(self._timeout, _cut, [connection, sockets])
        alarm.daemon = True
        alarm.start()
        headers = self._headers if body is None else {**self._headers, "Content-Type": REPORT}
        try:
            connection.connect()
            sockets.append(connection.sock)
            connection.request(method, self._at.path + path, body, headers)
            answer = connection.getresponse()
            content = answer.read(most + 1)
        except (OSError, http.client.HTTPException, ValueError):
            raise DeviceError("gateway", "the gateway did not answer properly, or not in time", RETRY) from None
        finally:
            alarm.cancel()
            connection.close()
        if len(content) > most:
            raise DeviceError("gateway", f"the gateway sent more than {most} bytes", RETRY)
        return answer.status, content

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._at.hostname, self._at.port
        assert host is not None
        if self._at.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=self._timeout)


def _cut(connection: http.client.HTTPConnection, sockets: list[socket.socket]) -> None:
    """End whatever is waited for: a connection forgets its socket while its answer is read."""
    for each in (*sockets, connection.sock):
        with suppress(OSError, AttributeError):
            each.shutdown(socket.SHUT_RDWR)


def _reason(body: bytes) -> str:
    found = re.search(rb'"reason"\s*:\s*"([a-z-]{1,40})"', body)
    return found[1].decode() if found else ""
