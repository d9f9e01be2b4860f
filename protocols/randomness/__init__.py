"""Derived randomness: the keystream, and exact sampling from it."""

from protocols.randomness.keystream import BLOCK, MIN_SECRET, Draws, Keyring, later_key
