"""Honest people who move, come and go: no period of theirs is contradicted, in any scenario that there is."""

from __future__ import annotations

import pytest

from producers.scenarios.catalogue import SCENARIOS
from tests.audit.lives import LIVES, alarms

DEVICES = 800


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_period_of_honest_people_is_contradicted_in_the_life_of_a_survey(name: str) -> None:
    """Values change and people are absent, so a jump may be an alarm: it says "changed", not "contradicted".

    At most one life in a hundred may have another one. `make attacks` counts more of them.
    """
    assert set(LIVES) == set(SCENARIOS)
    for seed in range(2):
        assert set(alarms(name, DEVICES, seed)) <= {"jump"}
