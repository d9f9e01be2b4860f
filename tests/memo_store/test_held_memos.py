"""Memos that a process holds. Failure would look like: a device gets a memo of another device, or of another value."""

import numpy as np

from memo_store.tables.memos import DEVICE, TAG, HeldMemos

MEMO = 3


def test_what_is_found_is_what_was_added_however_many_there_are_and_whichever_tags_they_have() -> None:
    random = np.random.default_rng(5)
    held = HeldMemos(MEMO, 3000 * (TAG + DEVICE + MEMO))
    kept = {}
    for turn in range(40):
        devices = random.integers(0, 400, 150).astype(np.uint64)
        tags = devices % 7 << np.uint64(40) | random.integers(0, 5, 150).astype(np.uint64)  # many alike, and some are 0
        if turn % 2:
            tags = random.integers(0, 1 << 64, 150, dtype=np.uint64)
        memos = random.integers(0, 256, (150, MEMO)).astype(np.uint8)
        for row, key in enumerate(zip(devices.tolist(), tags.tolist(), strict=True)):
            memos[row] = kept.setdefault(key, memos[row])
        held.add(devices, tags, memos)
        devices, tags = (np.array(column, dtype=np.uint64) for column in zip(*kept, strict=True))
        known, found = held.find(devices, tags)
        assert known.any() and (found[known] == np.array(list(kept.values()))[known]).all()
        assert not held.find(devices + np.uint64(1000), tags)[0].any()


def test_nearly_all_are_held_where_there_is_room() -> None:
    random = np.random.default_rng(6)
    held = HeldMemos(MEMO, 1 << 20)
    devices, tags = np.arange(10_000, dtype=np.uint64), random.integers(0, 1 << 64, 10_000, dtype=np.uint64)
    for rows in np.array_split(random.permutation(10_000), 5):
        held.add(devices[rows], tags[rows], np.zeros((len(rows), MEMO), dtype=np.uint8))
    assert held.find(devices, tags)[0].mean() > 0.9
