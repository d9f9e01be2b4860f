"""HTTP to a gateway that may be anybody: bounded in time and size, no redirects, nothing in the clear."""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from threading import Timer
from typing import NoReturn
from urllib.parse import quote, urlsplit

from hearsay_device.errors import refuse
from hearsay_device.terms import MAX_TERMS_BYTES

MAX_ANSWER_BYTES = 64 << 10
REPORT = "application/vnd.hearsay.report+json"
LATER = "the same report will be sent again"


class Gateway:
    """A gateway at an address such as `https://collect.example`; `loopback`: it is on this machine."""

    def __init__(self, address: str, timeout: float, bearer: str | None = None) -> None:
        at, self._timeout, host, self.loopback = urlsplit(address.rstrip("/")), timeout, None, False
        with suppress(ValueError):
            host, self._port = at.hostname, at.port
        if at.scheme not in ("http", "https") or not host:
            refuse("address", f"{address!r} is no address of a gateway", "write it like https://collect.example")
        with suppress(ValueError):
            self.loopback = host == "localhost" or ip_address(host).is_loopback
        self._host, self._path, self._secure = host, at.path, at.scheme == "https"
        self.address = f"{at.scheme}://{at.netloc.rpartition('@')[2]}{at.path}"
        if not self._secure and not self.loopback:
            refuse("address", f"{self.address} carries answers in the clear", "write https; http is for this machine")
        self._headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}

    def terms(self, survey: str) -> tuple[bytes, str | None]:
        """The terms of a survey, and their signature, if there is one; nothing about them is believed yet."""
        status, body, signature = self._request("GET", f"/v1/surveys/{quote(survey, safe='')}", None, MAX_TERMS_BYTES)
        if status == 404:
            refuse("gateway", f"{self.address} has no survey {survey!r}", "look at its id, and at the address")
        if status != 200:
            self._refuse(status, "the terms were not given")
        return body, signature

    def post(self, report: bytes, what: str) -> bool:
        """Whether the gateway says that its period has begun: then it has taken the report, or this is an error.

        `what` is for messages.
        """
        status, body, _ = self._request("POST", "/v1/reports", report, MAX_ANSWER_BYTES)
        found = re.search(rb'"reason"\s*:\s*"([a-z-]{1,40})"', body) if 400 <= status < 500 else None
        reason = found[1].decode() if found else ""
        if reason == "too-far-ahead":
            return False
        if reason == "late":
            refuse("late", f"{self.address}: {what} is closed there, but not by this clock", f"look at it; {LATER}")
        if status not in (200, 201, 202) and reason != "repeat":
            self._refuse(status, f"the report was not taken{reason and ': ' + reason}")
        return True

    def _refuse(self, status: int, what: str) -> NoReturn:
        if status in (401, 403):
            refuse("credential", f"{self.address}: credential refused ({status})", "give the `bearer` of this device")
        refuse("gateway", f"{self.address}: {what} (status {status})", LATER)

    def _request(self, method: str, path: str, body: bytes | None, most: int) -> tuple[int, bytes, str | None]:
        connection = HTTPConnection(self._host, self._port, timeout=self._timeout)
        if self._secure:
            context = ssl.create_default_context()
            connection = HTTPSConnection(self._host, self._port, timeout=self._timeout, context=context)
        sockets: list[socket.socket] = []
        over: list[bool] = []

        def cut() -> None:
            """End whatever is waited for: a connection forgets its socket while its answer is read."""
            over.append(True)
            for each in (*sockets, connection.sock):
                with suppress(OSError, AttributeError):
                    each.shutdown(socket.SHUT_RDWR)

        alarm = Timer(self._timeout, cut)  # a time-out of a socket starts again with every byte
        alarm.daemon = True
        alarm.start()
        try:
            connection.connect()
            sockets.append(connection.sock)
            headers = self._headers if body is None else {**self._headers, "Content-Type": REPORT}
            connection.request(method, self._path + path, body, headers)
            answer = connection.getresponse()
            content = answer.read(most + 1)
            if over or (answer.length and len(content) <= most):
                raise HTTPException("cut")
        except (OSError, HTTPException, ValueError) as error:
            if isinstance(error, ssl.SSLCertVerificationError):
                refuse("certificate", f"{self.address}: {error.verify_message}", "name its authority in SSL_CERT_FILE")
            if over or isinstance(error, socket.timeout):
                refuse("timeout", f"{self.address} took longer than {self._timeout:g} s", LATER)
            if isinstance(error, (ConnectionRefusedError, socket.gaierror)):
                refuse("unreachable", f"{self.address}: {error.strerror}", f"is the address right? {LATER}")
            refuse("gateway", f"{self.address} did not answer properly ({type(error).__name__})", LATER)
        finally:
            alarm.cancel()
            connection.close()
        if len(content) > most:
            refuse("gateway", f"{self.address} sent more than {most} bytes", LATER)
        return answer.status, content, answer.getheader("hearsay-signature")
