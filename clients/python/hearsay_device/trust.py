"""Whether terms are those that an app means: by their pin, or by the signature of their author."""

from __future__ import annotations

from base64 import b64decode

from hearsay_device.errors import refuse
from hearsay_device.terms import Terms


def require_pin(terms: Terms, pin: str) -> None:
    """Refuse terms that are not the pinned ones.

    In version 3 a pin is the whole hash: whoever writes surveys could find two whose first 32 digits
    are the same, and pin one of them in the app.
    """
    if pin == terms.hash or (terms.version < 3 and pin == terms.fingerprint):
        return
    if pin == terms.fingerprint:
        refuse(
            "pin",
            f"survey {terms.id!r}: its pin has 32 digits, and terms of version 3 have a pin of 64",
            f"give pin={terms.pin!r}",
        )
    refuse("pin", f"survey {terms.id!r}: its terms are not those that were pinned", "do not answer it")


def require_signature(terms: Terms, author: str, signature: str | None) -> None:
    """Refuse terms that the author has not signed: Ed25519, key and signature in base64."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(b64decode(author, validate=True))
    except ValueError:
        refuse("settings", "`author` is no public key", "give what `hearsay survey sign` prints")
    try:
        key.verify(b64decode(signature or "", validate=True), signed(terms))
    except (ValueError, InvalidSignature):
        refuse("signature", f"survey {terms.id!r}: its terms are not signed by the author", "do not answer it")


def signed(terms: Terms) -> bytes:
    """What an author signs. Version 3 says what it is and of which survey, so no other text of the author fits."""
    if terms.version < 3:
        return terms.fingerprint.encode()
    return f"hearsay survey terms 3\n{terms.id}\n{terms.hash}".encode()
