"""Whom a gateway gives its keys of credentials, and from whom it takes them."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import structlog

from gateway.http import Limits, Listener, tls_context
from gateway.service import KeysForPeers, Metrics, PeerTls, Puller, SharedKeys, peer_address
from protocols.errors import SettingsError

ASKING = Limits(connections=100, held_bytes=1 << 20)
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class KeySharing:
    """What of it is wished: nothing, unless options say so."""

    host: str = "127.0.0.1"
    port: int | None = None
    """Where other gateways may ask for the keys of this one; None: nowhere."""
    peers: frozenset[str] = frozenset()
    url: str | None = None
    """From which gateway keys are pulled; None: they are imported by hand."""
    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None

    @property
    def wished(self) -> bool:
        return self.port is not None or self.url is not None

    def check(self) -> None:
        """Refuse what lacks something, before anything is served."""
        if not self.wished:
            return
        if self.port is not None and not self.peers:
            raise SettingsError(
                "keys are given to gateways that are named only", "give --peer NAME: the common name of a certificate"
            )
        if self.url is not None:
            peer_address(self.url)
        tls = self._tls()
        tls.client()
        tls_context(tls.certificate, tls.key, tls.authority)

    async def run(self, keys: SharedKeys, metrics: Metrics) -> None:
        """Give keys and pull them, until this is cancelled."""
        if not self.wished:
            return
        tls = self._tls()
        listener = None
        if self.port is not None:
            application = KeysForPeers(keys.file, self.peers)
            verified = tls_context(tls.certificate, tls.key, tls.authority)
            # A web page can reach no port that demands a client certificate: any name will do.
            listener = Listener(application, ASKING, verified, names=None)
            at = await listener.start(self.host, self.port, "--peer-port")
            log.info("keys are given to other gateways", port=at)
        try:
            if self.url is None:
                await asyncio.Event().wait()
            else:
                await Puller(self.url, tls.client(), keys, lambda outcome: _count(metrics, outcome)).run()
        finally:
            if listener is not None:
                await listener.stop()

    def _tls(self) -> PeerTls:
        if self.certificate is None or self.key is None or self.authority is None:
            raise SettingsError(
                "gateways show each other certificates before one gives keys",
                "give --peer-certificate, --peer-key and --peer-ca, which is their authority and not that of devices",
            )
        return PeerTls(self.certificate, self.key, self.authority)


def _count(metrics: Metrics, outcome: str) -> None:
    metrics.key_pulls.labels(outcome).inc()
