"""What Redis stores in place of devices and values: names by the survey's id, everything else by its terms."""

from __future__ import annotations

import numpy as np
import pytest

from lab.seeded_keyrings import seeded_keyring
from memo_store.sealing import Sealer
from protocols.errors import StoreError
from tests.memo_store.surveys import devices, respondent

EVERYONE = devices(20_000)
CELLS = np.arange(20_000) % 10


def sealer(terms: str = "", id: str = "visits") -> Sealer:
    return Sealer(seeded_keyring(1), id, respondent(terms=terms, id=id).scheme.fingerprint)


def test_other_terms_under_an_id_have_the_names_of_the_id() -> None:
    one, other, stranger = sealer(), sealer("minimum: 5,"), sealer(id="visits-2")
    assert one.table("memos", "area") == other.table("memos", "area") != stranger.table("memos", "area")
    assert (one.pseudonyms(EVERYONE) == other.pseudonyms(EVERYONE)).all()
    assert not (one.pseudonyms(EVERYONE) == stranger.pseudonyms(EVERYONE)).all(axis=1).any()


@pytest.mark.parametrize("terms", ["minimum: 5,", "memo_cap: 3,", "grace: 1h,", "calibration: published,"])
def test_under_other_terms_all_tags_and_pads_are_independent(terms: str) -> None:
    one, other = sealer(), sealer(terms)
    tags = [each.tags("area", EVERYONE, CELLS) for each in (one, other)]
    pads = [each.pads("area", EVERYONE, tags[0], 8) for each in (one, other)]
    committed = [each.commit_pads("area", EVERYONE, 3) for each in (one, other)]
    for mine, theirs in (tags, pads, committed):
        assert not (mine == theirs).reshape(len(EVERYONE), -1).all(axis=1).any()
        differing = np.unpackbits(np.ascontiguousarray(mine ^ theirs).view(np.uint8)).mean()
        assert abs(differing - 0.5) < 0.003  # half of all bits, as between random numbers


def test_what_was_sealed_under_other_terms_cannot_be_unsealed() -> None:
    sealed = sealer().seal("base", b"content")
    assert sealer().unseal("base", sealed) == b"content"
    with pytest.raises(StoreError, match="cannot be unsealed"):
        sealer("minimum: 5,").unseal("base", sealed)
