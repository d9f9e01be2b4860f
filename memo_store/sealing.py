"""What Redis stores in place of devices, values and memos.

    table      a name for (survey, attribute), or for (question, attribute)
    pseudonym  a name for (survey, device), or for (question, device)
    tag        a name for (question, attribute, device, cell): shows only that two cells of one device differ
    pad        what a memo is sealed with; it follows from the tag alone, so any entry of a record can be unsealed

Memos belong to a question, whichever surveys ask it; presence and commits belong to a survey. A survey is named by its
id; its terms by the id and the fingerprint (PROTOCOLS 8). Tables and pseudonyms follow from the id, so that other terms
under a used id are recognised. What is sealed follows from the terms: no pad seals twice, whatever changes.

All are derived from the keyring and useless without it: the same value has another tag and another sealed memo on
every device. Memos are sealed because with a large budget the memo nearly always equals the true value. A pad seals one
thing for ever; content that is rewritten is sealed under a new nonce each time (`seal`).
"""

import secrets

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memo_store.connection.layout import PSEUDONYM
from protocols.arrays import Bytes, Devices, Values, Words
from protocols.errors import StoreError
from protocols.randomness import BLOCK, Draws, Keyring

NONCE = 12
"""Bytes; drawn anew for every `seal`, as AES-GCM requires."""


class Sealer:
    """Names, pads and sealed content of one survey, or of one question, for the devices of one keyring."""

    def __init__(self, keyring: Keyring, survey_id: str, fingerprint: str) -> None:
        self._keyring = keyring
        self._survey = survey_id
        self._fingerprint = fingerprint

    def of_question(self, question: str) -> "Sealer":
        """Of a question, by its id. No survey's id has a space."""
        return Sealer(self._keyring, f"question {question}", question)

    def of_period(self, keyring: Keyring) -> "Sealer":
        """Of the same survey, under the key of a period that will be forgotten."""
        return Sealer(keyring, self._survey, self._fingerprint)

    def table(self, kind: str, attribute: str = "") -> str:
        return self._key_of_id("table", kind, attribute)[:8].hex()

    def pseudonyms(self, devices: Devices) -> Bytes:
        return _draws(self._key_of_id("pseudonym"), devices).blocks(1)[:, :PSEUDONYM]

    def tags(self, attribute: str, devices: Devices, cells: Values) -> Words:
        return _draws(self._key_of_terms("tag", attribute), devices, cells).blocks(1).view("<u8")[:, 0]

    def pads(self, attribute: str, devices: Devices, tags: Words, width: int) -> Bytes:
        tweaks = tags & np.uint64(0xFFFFFFFF)
        return _draws(self._key_of_terms("pad", attribute), devices, tweaks).blocks(-(-width // BLOCK))[:, :width]

    def commit_pads(self, attribute: str, devices: Devices, period: int) -> Words:
        """What each device's commit of this period is sealed with."""
        return _draws(self._key_of_terms("committed", attribute), devices, period).blocks(1).view("<u8")[:, 0]

    def seal(self, place: str, content: bytes) -> bytes:
        """Content that only this keyring can unseal, and only in this place; different bytes every time."""
        nonce = secrets.token_bytes(NONCE)
        return nonce + AESGCM(self._key_of_terms("sealed")).encrypt(nonce, content, place.encode())

    def unseal(self, place: str, sealed: bytes) -> bytes:
        try:
            return AESGCM(self._key_of_terms("sealed")).decrypt(sealed[:NONCE], sealed[NONCE:], place.encode())
        except (InvalidTag, ValueError):
            raise StoreError(
                f"the field {place!r} of survey {self._survey!r} in the store cannot be unsealed",
                "restore the store from a copy: the field is damaged, or was not written by this fleet",
            ) from None

    def _key_of_id(self, *purpose: str) -> bytes:
        return self._keyring.key(("store", self._survey, *purpose))

    def _key_of_terms(self, *purpose: str) -> bytes:
        return self._keyring.key(("store", self._survey, self._fingerprint, *purpose))


def _draws(key: bytes, devices: Devices, tweak: int | Values = 0) -> Draws:
    tweaks = np.broadcast_to(np.asarray(tweak, dtype=np.uint32), devices.shape)
    return Draws(key, np.ascontiguousarray(devices, dtype=np.uint64), tweaks)
