"""What Redis sees instead of devices, values and memos.

    table      a name for (survey, attribute)
    pseudonym  a name for (survey, device); the same in all tables of the survey, so that a device's spending adds up
    tag        a name for (survey, attribute, device, cell): says that two cells differ, and only within one device
    pad        what a memo is sealed with; the tag alone says which, so any entry of a record can be opened

All are derived from the keyring and useless without it: the same value has another tag and another sealed memo on
every device. The memo is sealed because with a generous budget it *is* the true value, nearly always. A pad seals one
thing for ever; what is written again and again is sealed under a nonce instead (`seal`).
"""

from __future__ import annotations

import secrets

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memo_store.connection.layout import PSEUDONYM, Bytes, Words
from protocols.errors import StoreError
from protocols.mechanisms import Values
from protocols.randomness import BLOCK, Devices, Draws, Keyring

NONCE = 12
"""Bytes; drawn for every sealing, as AES-GCM wants it."""


class Veil:
    """Names and pads for one survey's tables, for the devices of one keyring."""

    def __init__(self, keyring: Keyring, survey_id: str) -> None:
        self._keyring = keyring
        self._survey = survey_id

    def table(self, kind: str, attribute: str = "") -> str:
        return self._key("table", kind, attribute)[:8].hex()

    def pseudonyms(self, devices: Devices) -> Bytes:
        return _draws(self._key("pseudonym"), devices).blocks(1)[:, :PSEUDONYM]

    def tags(self, attribute: str, devices: Devices, cells: Values) -> Words:
        return _draws(self._key("tag", attribute), devices, cells).blocks(1).view("<u8")[:, 0]

    def pads(self, attribute: str, devices: Devices, tags: Words, width: int) -> Bytes:
        tweaks = tags & np.uint64(0xFFFFFFFF)
        return _draws(self._key("pad", attribute), devices, tweaks).blocks(-(-width // BLOCK))[:, :width]

    def settling_pads(self, attribute: str, devices: Devices, period: int) -> Words:
        """What each device's settled cell of this period is sealed with."""
        return _draws(self._key("settled", attribute), devices, period).blocks(1).view("<u8")[:, 0]

    def seal(self, place: str, content: bytes) -> bytes:
        """Content that only this keyring opens, and only in this place; other bytes every time."""
        nonce = secrets.token_bytes(NONCE)
        return nonce + AESGCM(self._key("sealed")).encrypt(nonce, content, place.encode())

    def unseal(self, place: str, sealed: bytes) -> bytes:
        try:
            return AESGCM(self._key("sealed")).decrypt(sealed[:NONCE], sealed[NONCE:], place.encode())
        except (InvalidTag, ValueError):
            raise StoreError(
                f"what the store holds as {place!r} of survey {self._survey!r} is not what was put there",
                "restore the store from a copy: somebody else has written to it, or it is damaged",
            ) from None

    def _key(self, *purpose: str) -> bytes:
        return self._keyring.key(("store", self._survey, *purpose))


def _draws(key: bytes, devices: Devices, tweak: int | Values = 0) -> Draws:
    tweaks = np.broadcast_to(np.asarray(tweak, dtype=np.uint32), devices.shape)
    return Draws(key, np.ascontiguousarray(devices, dtype=np.uint64), tweaks)
