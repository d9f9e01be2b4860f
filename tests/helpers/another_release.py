"""A release that chooses another mechanism for the same survey file."""

import pytest

from protocols.mechanisms import MechanismRecord, Use, fitting


def never_choose(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """From now on, surveys are compiled as if this mechanism did not exist."""

    def others(use: Use, placed: bool = False) -> list[MechanismRecord]:
        return [record for record in fitting(use, placed) if record.name != name]

    monkeypatch.setattr("protocols.scheme.choosing.fitting", others)
