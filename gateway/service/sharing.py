"""How several gateways come to the same keys: one gives them to those that it knows, over mutual TLS, and they pull.

This is at a port of its own with an authority of its own, so that nobody who may send reports can ask there.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog

from gateway.http.messages import Answer, Application, Request, Response, refusal
from gateway.service.token_keys import STATE_BYTES, SharedKeys, StateFile, read_state
from protocols.errors import HearsayError, ServerError, SettingsError

KEYS_PATH = "/v1/keys"
PULL_SECONDS = 3600.0
"""The keeper draws a link an hour."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 5.0, 300.0
ANSWER_SECONDS = 5.0
"""A gateway that is asked to stop waits for a pull that is under way."""
NOTHING_ELSE = refusal(404, "not-found", f"there is {KEYS_PATH}")
ONLY_READ = refusal(405, "method-not-allowed", "keys are only read", ("allow", "GET"))
NO_PEER = refusal(403, "forbidden", "keys are given to gateways that --peer names")
NO_KEYS = refusal(503, "unavailable", "this gateway has no links itself", ("retry-after", "60"))
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class PeerTls:
    """The certificate that a gateway has among gateways, its key, and the authority that signs those of all."""

    certificate: Path
    key: Path
    authority: Path

    def client(self) -> ssl.SSLContext:
        """For asking another gateway, whose certificate must have the name in its URL."""
        try:
            context = ssl.create_default_context(cafile=self.authority)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.load_cert_chain(self.certificate, self.key)
        except OSError as error:
            raise SettingsError(
                f"the TLS files of gateways cannot be used: {error}",
                "check --peer-certificate, --peer-key and --peer-ca",
            ) from None
        return context


class KeysForPeers(Application):
    """Gives the keys of this gateway to the gateways whose certificates have one of these common names."""

    def __init__(self, file: StateFile, peers: frozenset[str], now: Callable[[], float] = time.time) -> None:
        self._file = file
        self._peers = peers
        self._now = now

    def admit(self, request: Request) -> Response | int:
        if request.path != KEYS_PATH:
            return NOTHING_ELSE
        if request.method != "GET":
            return ONLY_READ
        return 0 if common_names(request.certificate) & self._peers else NO_PEER

    def handle(self, request: Request, answer: Answer) -> None:
        state = self._file.erase(self._now())
        if not state.links:
            answer(NO_KEYS)
            return
        exported = state.exported().model_dump_json().encode()
        answer(Response(200, exported, headers=(("cache-control", "no-store"),)))


def common_names(certificate: dict[str, Any] | None) -> set[str]:
    """The common names in a verified certificate."""
    subject = (certificate or {}).get("subject", ())
    return {value for part in subject for name, value in part if name == "commonName"}


def pull(url: str, tls: ssl.SSLContext, file: StateFile, now: Callable[[], float] = time.time) -> None:
    """Take over the keys of another gateway. Raises HearsayError if they cannot be read, or are of another pool."""
    host, port = peer_address(url)
    try:
        with closing(HTTPSConnection(host, port, timeout=ANSWER_SECONDS, context=tls)) as connection:
            connection.request("GET", KEYS_PATH)
            answer = connection.getresponse()
            text = answer.read(STATE_BYTES)
    except (OSError, HTTPException) as error:
        raise ServerError(
            f"the keys at {url} cannot be read: {error or type(error).__name__}",
            "see that this gateway runs there with --peer-port, and that both certificates are of the same --peer-ca",
        ) from None
    if answer.status != 200:
        raise ServerError(
            f"the gateway at {url} gives no keys: it answered {answer.status}",
            "403: name this gateway's certificate there with --peer; 503: it has no links itself",
        )
    file.erase(now(), read_state(text, url, now()))


def peer_address(url: str) -> tuple[str, int]:
    """Host and port of a gateway that keys are pulled from.

    >>> peer_address("https://keeper:8443"), peer_address("https://[::1]:8443/")
    (('keeper', 8443), ('::1', 8443))
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        raise _no_address(url) from None
    has_more = parts.path not in ("", "/") or parts.query or parts.fragment or parts.username
    if parts.scheme != "https" or not host or port is None or has_more:
        raise _no_address(url)
    return host, port


def _no_address(url: str) -> SettingsError:
    return SettingsError(
        f"{url!r} is no address of a gateway's keys", "give https://HOST:PORT with the --peer-port that it has"
    )


@dataclass
class Puller:
    """Pulls keys each hour, and again after a growing pause when that has failed. The keeper does not pull."""

    url: str
    tls: ssl.SSLContext
    keys: SharedKeys
    note: Callable[[str], None]
    """Called with what became of each pull: `pulled` or `failed`."""

    async def run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            if self.keys.keeper or await self._pulled():
                pause = FIRST_PAUSE_SECONDS
                await asyncio.sleep(PULL_SECONDS)
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _pulled(self) -> bool:
        try:
            await asyncio.to_thread(pull, self.url, self.tls, self.keys.file, self.keys.clock)
        except HearsayError as error:
            log.error("keys cannot be pulled; tried again later", error=error.message, hint=error.hint)
            self.note("failed")
            return False
        self.note("pulled")
        return True
