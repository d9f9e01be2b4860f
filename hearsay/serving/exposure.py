"""On which address a gateway listens, and who may send there. Nothing is exposed by accident."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import structlog

from gateway.door import Credential, Rate, read_credentials
from gateway.http import tls_context
from gateway.service import DEVICE_RATE, EDGE_RATE, Senders, TokenKeys
from protocols.errors import SettingsError
from servers.ports import is_loopback
from servers.private_files import read_limited

TOKENS_BYTES = 64 << 20
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Exposure:
    """Where to listen, and for whom."""

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Path | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    client_authority: Path | None = None
    edges: tuple[str, ...] = ()
    behind_proxy: bool = False
    origins: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """What clients may call a loopback address, besides the names of this machine: the names of a proxy."""
    device_rate: Rate = DEVICE_RATE
    edge_rate: Rate = EDGE_RATE
    web_host: str = "127.0.0.1"
    web_port: int | None = None
    """Where `/live`, `/ready` and `/metrics` are served besides; None: only where reports are taken."""

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def credentials(self) -> bool:
        return self.tokens is not None or self.client_authority is not None

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.tls_certificate is None else 'https'}://{host}"

    def check(self) -> None:
        """Refuse what would let everybody in, or let credentials travel in the clear."""
        if not self.loopback and not self.credentials:
            raise SettingsError(
                f"without credentials a gateway listens on the loopback address only, not on {self.host}",
                "make bearer tokens with `hearsay gateway token new` and give --tokens, or give --client-ca",
            )
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise SettingsError("TLS needs both a certificate and its key", "give --tls-certificate and --tls-key")
        if self.client_authority is not None and self.tls_certificate is None:
            raise SettingsError(
                "client certificates are verified by the gateway itself, which needs TLS",
                "give --tls-certificate and --tls-key; behind a proxy that ends TLS, use bearer tokens",
            )
        if not self.loopback and self.tls_certificate is None and not self.behind_proxy:
            raise SettingsError(
                f"bearer tokens would travel in the clear to {self.host}",
                "give --tls-certificate and --tls-key, or --behind-proxy if a proxy in front ends TLS",
            )

    def tls(self) -> ssl.SSLContext | None:
        if self.tls_certificate is None or self.tls_key is None:
            return None
        return tls_context(self.tls_certificate, self.tls_key, self.client_authority)

    def senders(self, keys: TokenKeys | None) -> Senders:
        return Senders(
            keys or (lambda header: None),
            None if self.tokens is None else TokenFile(self.tokens),
            self.client_authority is not None,
            frozenset(self.edges),
            self.device_rate,
            self.edge_rate,
        )


class TokenFile:
    """The credentials in a file, which may be changed at any time: it is read again when it was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at = self._changed_at()
        self._credentials = self._read()

    def __call__(self) -> dict[str, Credential]:
        changed_at = self._changed_at()
        if changed_at != self._read_at:
            self._read_at = changed_at
            try:
                self._credentials = self._read()
            except SettingsError as error:
                log.error("the tokens cannot be read; those known hold", error=error.message)
        return self._credentials

    def _changed_at(self) -> tuple[int, int]:
        try:
            status = self._path.stat()
        except OSError:
            return 0, 0
        return status.st_mtime_ns, status.st_size

    def _read(self) -> dict[str, Credential]:
        try:
            return read_credentials(read_limited(self._path, TOKENS_BYTES).decode(), str(self._path))
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise SettingsError(
                f"the tokens in {self._path} cannot be read: {why}", "make one with `hearsay gateway token new`"
            ) from None


def per_minute(requests: float) -> Rate:
    """So many requests a minute, the first of them at once.

    >>> per_minute(30)
    Rate(per_second=0.5, burst=30)
    """
    return Rate(requests / 60, max(1, int(requests)))
