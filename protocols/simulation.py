"""Seeded keyrings, for simulations and tests only.

No production module may import this one; the import contracts say so.
"""

from __future__ import annotations

import hashlib

from protocols.keystream import Keyring


def seeded_keyring(seed: int) -> Keyring:
    """A reproducible keyring. Anyone who knows the seed knows every draw: never use it for real devices."""
    return Keyring(hashlib.sha256(b"simulation" + str(seed).encode()).digest())
