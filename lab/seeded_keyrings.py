"""Seeded keyrings, for simulations and tests only.

They are in this room because no other room may import from it: the secrets of real devices are never seeded.
"""

import hashlib

from protocols.randomness import Keyring


def seeded_keyring(seed: int) -> Keyring:
    """A reproducible keyring. Anyone who knows the seed knows every draw: never use it for real devices."""
    return Keyring(hashlib.sha256(b"simulation" + str(seed).encode()).digest())
