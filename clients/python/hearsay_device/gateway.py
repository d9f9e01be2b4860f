"""HTTP to a gateway that may be anybody: bounded in time and size, no redirects, nothing in the clear."""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from threading import Timer
from urllib.parse import quote, urlsplit

from hearsay_device.errors import refuse
from hearsay_device.terms import MAX_TERMS_BYTES

MAX_ANSWER_BYTES = 64 << 10
REPORT = "application/vnd.hearsay.report+json"
LATER = "the same report will be sent again"


class Gateway:
    """A gateway at an address such as `https://collect.example`."""

    def __init__(self, address: str, timeout: float, bearer: str | None = None) -> None:
        self._at, self._timeout = urlsplit(address.rstrip("/")), timeout
        try:
            self._host, self._port = self._at.hostname, self._at.port
        except ValueError:
            self._host = None
        if self._at.scheme not in ("http", "https") or not self._host:
            refuse("address", f"{address!r} is no address of a gateway", "write it like https://collect.example")
        self.address = f"{self._at.scheme}://{self._at.netloc.rpartition('@')[2]}{self._at.path}"
        if self._at.scheme == "http" and not self.loopback:
            refuse(
                "address", f"{self.address} would carry answers in the clear", "write https; http is for this machine"
            )
        self._headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine."""
        if self._host == "localhost":
            return True
        try:
            return ip_address(self._host or "").is_loopback
        except ValueError:
            return False

    def terms(self, survey: str) -> tuple[bytes, str | None]:
        """The terms of a survey, and their signature, if there is one; nothing about them is believed yet."""
        status, body, signature = self._request("GET", f"/v1/surveys/{quote(survey, safe='')}", None, MAX_TERMS_BYTES)
        if status == 404:
            refuse("gateway", f"{self.address} has no survey {survey!r}", "look at its id, and at the address")
        if status != 200:
            self._refuse(status, "the terms were not given")
        return body, signature

    def post(self, report: bytes) -> str:
        """`counted`, `repeat`, `late` or `too-far-ahead`; anything else is an error."""
        status, body, _ = self._request("POST", "/v1/reports", report, MAX_ANSWER_BYTES)
        if status in (200, 201, 202):
            return "counted"
        found = re.search(rb'"reason"\s*:\s*"([a-z-]{1,40})"', body) if 400 <= status < 500 else None
        reason = found[1].decode() if found else ""
        if reason in ("repeat", "late", "too-far-ahead"):
            return reason
        return self._refuse(status, f"the report was not taken{reason and ': ' + reason}")

    def _refuse(self, status: int, what: str) -> str:
        if status in (401, 403):
            refuse(
                "credential", f"{self.address}: credential refused (status {status})",
                "give the `bearer` that the collector has given this device",
            )  # fmt: skip
        refuse("gateway", f"{self.address}: {what} (status {status})", LATER)

    def _request(self, method: str, path: str, body: bytes | None, most: int) -> tuple[int, bytes, str | None]:
        assert self._host is not None
        if self._at.scheme == "https":
            context = ssl.create_default_context()
            connection: HTTPConnection = HTTPSConnection(self._host, self._port, timeout=self._timeout, context=context)
        else:
            connection = HTTPConnection(self._host, self._port, timeout=self._timeout)
        sockets: list[socket.socket] = []
        over: list[bool] = []
        # A time-out of a socket starts again with every byte: this one does not.
        alarm = Timer(self._timeout, _cut, [connection, sockets, over])
        alarm.daemon = True
        alarm.start()
        headers = self._headers if body is None else {**self._headers, "Content-Type": REPORT}
        try:
            connection.connect()
            sockets.append(connection.sock)
            connection.request(method, self._at.path + path, body, headers)
            answer = connection.getresponse()
            content = answer.read(most + 1)
            if over or (answer.length and len(content) <= most):
                raise HTTPException("cut")
        except ssl.SSLCertVerificationError as error:
            refuse(
                "certificate", f"{self.address}: its certificate is not trusted: {error.verify_message}",
                "name the authority's file in SSL_CERT_FILE, or correct the address",
            )  # fmt: skip
        except (OSError, HTTPException, ValueError) as error:
            if over or isinstance(error, socket.timeout):
                refuse("timeout", f"{self.address} took longer than {self._timeout:g} s", LATER)
            if isinstance(error, ConnectionRefusedError):
                refuse("unreachable", f"{self.address}: connection refused", f"is it running there? {LATER}")
            if isinstance(error, socket.gaierror):
                refuse(
                    "unreachable", f"{self.address}: no such host", f"look at the address, and at the network; {LATER}"
                )
            refuse("gateway", f"{self.address} did not answer properly ({type(error).__name__})", LATER)
        finally:
            alarm.cancel()
            connection.close()
        if len(content) > most:
            refuse("gateway", f"{self.address} sent more than {most} bytes", LATER)
        return answer.status, content, answer.getheader("hearsay-signature")


def _cut(connection: HTTPConnection, sockets: list[socket.socket], over: list[bool]) -> None:
    """End whatever is waited for: a connection forgets its socket while its answer is read."""
    over.append(True)
    for each in (*sockets, connection.sock):
        with suppress(OSError, AttributeError):
            each.shutdown(socket.SHUT_RDWR)
