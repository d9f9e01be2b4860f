"""Who may send. A file has a line for each bearer token: its SHA-256, its role, and a note for people.

    9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 device
    60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752 edge    the one in Lyon

A device may send one report in a period of a survey. Its report's token is replaced by a function of its credential
under the key of survey and period (`keys.py`), which all gateways compute: so the counter refuses a second report as a
repeat, and no gateway keeps a list. An edge sends many reports, with the tokens of its devices.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Literal, get_args

from protocols.errors import SettingsError

Role = Literal["device", "edge"]
_LINE = re.compile(r"([0-9a-f]{64})\s+(\S+)(\s.*)?")


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
        role = match[2] if match else None
        if match is None or role not in get_args(Role):
            raise SettingsError(
                f"{where}: line {number} is not a digest and a role", "add lines with `hearsay gateway token new`"
            )
        found[match[1]] = Credential(match[1], "edge" if role == "edge" else "device")
    return found


def credential_token(key: bytes, credential: Credential) -> bytes:
    """The token of a credential in the survey and period that a key is of."""
    token = hmac.digest(key, credential.id.encode(), "sha256")[:8]
    return token if any(token) else b"\1" * 8  # zero is no token
