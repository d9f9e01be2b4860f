"""Who may send, and how often. A file has a line for each bearer token: its SHA-256, its role, and a note for people.

    9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 device
    60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752 edge    the one in Lyon

A device may send one report in a period of a survey. Its report's token is replaced by a function of its credential
under the key of survey and period (`keys.py`), which all gateways compute: so the counter refuses a second report as a
repeat, and no gateway keeps a list. An edge sends many reports, with the tokens of its devices.

How often each has sent is kept in a bounded memory. The time is given; a restart forgets everything.
"""

import hashlib
import hmac
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

from protocols.errors import SettingsError

MOST_KEPT = 100_000
Role = Literal["device", "edge"]
_LINE = re.compile(r"([0-9a-f]{64})\s+(device|edge)(\s.*)?")


@dataclass(frozen=True)
class Credential:
    """Somebody who may send: `id` is a digest, never the secret itself."""

    id: str
    role: Role


def digest_of(token: str) -> str:
    """What the file has of a bearer token. Tokens are long and random, so a plain hash does not give them away."""
    return hashlib.sha256(token.encode()).hexdigest()


def credential_line(token: str, role: Role, note: str = "") -> str:
    """The line of a token.

    >>> credential_line("secret", "edge", "the one in Lyon")
    '2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b edge the one in Lyon\\n'
    """
    return f"{digest_of(token)} {role} {' '.join(note.split())}".rstrip() + "\n"


def read_credentials(text: str, where: str) -> dict[str, Credential]:
    """The credentials of a file, by digest. Empty lines, and lines that begin with #, are passed over."""
    found: dict[str, Credential] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise SettingsError(
                f"{where}: line {number} is not a digest and a role", "add lines with `hearsay gateway token new`"
            )
        found[match[1]] = Credential(match[1], "edge" if match[2] == "edge" else "device")
    return found


def credential_token(key: bytes, credential: Credential) -> bytes:
    """The token of a credential in the survey and period that a key is of."""
    token = hmac.digest(key, credential.id.encode(), "sha256")[:8]
    return token if any(token) else b"\1" * 8  # zero is no token


@dataclass(frozen=True)
class Rate:
    """So many requests at once, and from then on so many a second."""

    per_second: float
    burst: int


class RateLimit:
    """A bucket for each credential, which empties with every request and fills with time.

    >>> limit = RateLimit(Rate(per_second=1, burst=2))
    >>> [limit.wait("a", now) for now in (0.0, 0.0, 0.0, 1.0)], limit.wait("b", 0.0)
    ([0.0, 0.0, 1.0, 0.0], 0.0)
    """

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, as of a time

    def wait(self, credential: str, now: float) -> float:
        """Take one request: 0 if it may be made now, or after how many seconds it may."""
        left, at = self._left.pop(credential, (float(self._rate.burst), now))
        left = min(float(self._rate.burst), left + max(0.0, now - at) * self._rate.per_second)
        wait = 0.0 if left >= 1 else (1 - left) / self._rate.per_second
        self._left[credential] = left - (wait == 0), now
        if len(self._left) > MOST_KEPT:
            self._left.popitem(last=False)  # the one that was silent for the longest time, whose bucket is fullest
        return wait

    def forget(self, credential: str) -> None:
        """Give back everything that was taken."""
        self._left.pop(credential, None)
