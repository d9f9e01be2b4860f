"""Who may send: everybody on this machine, or those with a bearer token or a client certificate."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gateway.door.credentials import Credential, Rate, RateLimit, digest_of
from gateway.http.messages import Request, Response, refusal
from protocols.wire import ReportHeader

DEVICE_RATE, EDGE_RATE = Rate(0.5, 20), Rate(50, 200)
WHO = refusal(
    401,
    "unauthorized",
    "send a credential: Authorization: Bearer TOKEN",
    ("www-authenticate", "Bearer"),
)
ONLY_HERE = refusal(403, "forbidden", "without credentials this gateway takes reports of this machine only")
ONE_REPORT = refusal(403, "forbidden", "a device sends one report a request; for more, use the credential of an edge")


@dataclass
class Senders:
    """The credentials of a gateway, and how often each may send.

    `tokens` gives the credentials of bearer tokens by digest, as they are now. `keys` gives the key of an open period,
    or None where this gateway has none. Without both `tokens` and `certificates`, senders must be on this machine.
    """

    keys: Callable[[ReportHeader], bytes | None] = lambda header: None
    tokens: Callable[[], dict[str, Credential]] | None = None
    certificates: bool = False
    edges: frozenset[str] = frozenset()  # common names of certificates that are edges
    device_rate: Rate = DEVICE_RATE
    edge_rate: Rate = EDGE_RATE
    _limits: dict[str, RateLimit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._limits = {"device": RateLimit(self.device_rate), "edge": RateLimit(self.edge_rate)}

    def admit(self, request: Request, now: float) -> Credential | Response | None:
        """The sender's credential, None where none is needed, or why it is refused."""
        if self.tokens is None and not self.certificates:  # nobody needs a credential
            # A proxy may send on behalf of somebody else. Names of other machines do not come this far.
            return None if request.is_direct else ONLY_HERE
        credential = self._credential(request)
        if credential is None:
            return WHO
        wait = self._limits[credential.role].wait(credential.id, now)
        if wait:
            seconds = str(int(wait) + 1)
            return refusal(429, "too-many-requests", "this credential sends too often", ("retry-after", seconds))
        return credential

    def _credential(self, request: Request) -> Credential | None:
        if self.tokens is not None:
            kind, _, token = request.header(b"authorization").partition(" ")
            if kind.lower() == "bearer" and token:
                return self.tokens().get(digest_of(token.strip()))
        if self.certificates and request.certificate:
            return _named_in(request.certificate, self.edges)
        return None


def _named_in(certificate: dict[str, Any], edges: frozenset[str]) -> Credential | None:
    """The credential of a verified certificate: its subject, so that a renewed certificate is the same sender."""
    subject = certificate.get("subject", ())
    if not subject:
        return None
    names = {value for part in subject for name, value in part if name == "commonName"}
    return Credential(hashlib.sha256(repr(subject).encode()).hexdigest(), "edge" if names & edges else "device")
