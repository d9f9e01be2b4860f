"""Honest people who move, come and go: no period of theirs is contradicted, in any scenario that there is.

Whole lives of surveys: the people of a scenario, the real device code, counting and verdicts.
"""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hearsay.library.answering import Fleet
from producers.scenarios import SCENARIOS, scenario
from protocols.scheme import Scheme
from protocols.wire import CLOCK, FRAME, Clock, encode_clock
from tests.helpers.surveys import scheme_with
from views.local import collector
from views.reading import Results

KEY = b"the operator's key of honest lives"
LIVES = {"telemetry": 12, "virtual-humans": 7, "commuters": 30, "demand": 30}
"""Every scenario, and how many periods of it are collected: the festival's days, a day and more of commuters."""
MECHANISMS = ("l-osue", "l-grr")  # in turns, so that every check has something to look at


def alarms(name: str, devices: int, seed: int) -> Counter[str]:
    """In how many attributes and periods each check was an alarm, in a survey that asks for all that a scenario has."""
    people = scenario(name, devices=devices, periods=LIVES[name], seed=seed)
    scheme = _asking(people.attributes)
    fleet = Fleet(scheme.survey, devices, secret=seed.to_bytes(32, "big"))
    found: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as directory,
        collector(Path(directory), [scheme.survey], KEY, KEY) as app,
    ):
        for period in range(people.periods):
            present = people.presences(period)
            values = {a: np.array(people.attributes[a])[places] for a, places in present.values.items()}
            for frame in fleet.report(period, values, present.devices):
                app.send(0, FRAME, frame)
            app.send(0, CLOCK, encode_clock(Clock(scheme.survey.id, period), KEY))
            app.flush()
        finals = Results(app.store).histograms(scheme.survey.id)
    assert len(finals) == people.periods
    for final in finals:
        assert final.integrity is not None, "every period has a verdict"
        found.update(check for _, check in final.integrity.alarms)
    return found


def _asking(attributes: dict[str, tuple[str, ...]]) -> Scheme:
    asked = [
        {"name": name, "values": values, "mechanism": MECHANISMS[at % len(MECHANISMS)]}
        for at, (name, values) in enumerate(attributes.items())
    ]
    return scheme_with(*asked, id="honest", clock="source", horizon=3, eps_inf=4.0, eps_1=2.0)


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_period_of_honest_people_is_contradicted_in_the_life_of_a_survey(name: str) -> None:
    """Values change and people are absent, so a jump may be an alarm: it says "changed", not "contradicted".

    At most one life in a hundred may have another one. `make attacks` counts more of them.
    """
    assert set(LIVES) == set(SCENARIOS)
    for seed in range(2):
        assert set(alarms(name, 800, seed)) <= {"jump"}
