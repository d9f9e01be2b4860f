"""A real device: one key file, index 0."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from memo_store import SurveyMemos
from memo_store.key_file import keyring_in
from protocols.errors import SettingsError
from protocols.respondent import Respondent
from tests.memo_store.surveys import devices, respondent


def test_a_device_keeps_its_memo_as_long_as_it_keeps_its_key_file(
    tmp_path: Path, open_memos: Callable[[Respondent], SurveyMemos]
) -> None:
    scheme, itself = respondent(k=100).scheme, devices(1)
    question, value = scheme.questions[0], np.array([42])

    def memo(file: str, period: int) -> list[int]:
        memos = open_memos(Respondent(scheme, keyring_in(tmp_path / file)))
        answer: list[int] = memos.lookup(question, itself, value, period)[0].tolist()
        return answer

    assert memo("mine.key", 0) == memo("mine.key", 1)
    assert memo("mine.key", 2) != memo("another.key", 2)


def test_a_key_file_is_its_owners_alone_and_never_replaced(tmp_path: Path) -> None:
    keyring_in(tmp_path / "device.key")
    assert (tmp_path / "device.key").stat().st_mode & 0o777 == 0o600
    (tmp_path / "device.key").write_text("damaged")
    with pytest.raises(SettingsError, match=r"device\.key does not hold a key"):
        keyring_in(tmp_path / "device.key")
