"""Signed terms (docs/device-protocol.md, "Pins and signatures"): Ed25519 over the fingerprint, all in base64."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error

from hearsay_device.errors import refuse
from hearsay_device.terms import Terms


def require_signature(terms: Terms, author: str, signature: str | None) -> None:
    """Refuse terms that the author has not signed."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(b64decode(author, validate=True))
    except (Error, ValueError):
        refuse("settings", "`author` is no public key", "give what `hearsay survey sign` prints")
    try:
        key.verify(b64decode(signature or "", validate=True), terms.fingerprint.encode())
    except (Error, ValueError, InvalidSignature):
        refuse("signature", f"survey {terms.id!r}: its terms are not signed by the author", "do not answer it")
