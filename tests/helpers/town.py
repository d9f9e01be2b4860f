"""A scenario lived through by simulated devices: the counts a collector would hold, and who really came."""

import numpy as np

from analytics.mobility import ByGap, CountHistory
from lab.seeded_keyrings import seeded_keyring
from producers.scenarios import Presences, Scenario
from protocols.arrays import Devices, Whole
from protocols.respondent import Respondent
from protocols.scheme import Scheme


def live(scheme: Scheme, scenario: Scenario, seed: int = 1) -> CountHistory:
    """Counts of all periods of the scenario, through the devices' own code."""
    respondent, horizon = Respondent(scheme, seeded_keyring(seed)), scheme.survey.horizon
    names = {question.name: question.k for question in scheme.questions}
    reports = {name: np.zeros((scenario.periods, horizon), dtype=np.int64) for name in names}
    supports = {name: np.zeros((scenario.periods, horizon, k), dtype=np.int64) for name, k in names.items()}
    last = np.full(scenario.devices, -horizon)
    for period in range(scenario.periods):
        there = scenario.presences(period)
        gaps = np.minimum(period - last[there.devices], horizon)
        last[there.devices] = period
        for place, question in enumerate(scheme.questions):
            asked = np.ones(len(gaps), dtype=bool)
            if scheme.discloses:
                asked = respondent.sampled(there.devices) == place
            devices, values = there.devices[asked], question.places(there.values)[asked]
            answers = respondent.answers(question, devices, period, values)
            rows = gaps[asked] - 1
            reports[question.name][period] = np.bincount(rows, minlength=horizon)
            supports[question.name][period] = question.mechanism.encoding.count(answers, rows, horizon)
    gaps = np.arange(1, horizon + 1)
    return CountHistory(scheme, 0, reports, {name: [ByGap(gaps, one) for one in of] for name, of in supports.items()})


def true_histogram(presences: Presences, attribute: str, k: int) -> Whole:
    """The number of present devices with each of the attribute's k values."""
    return np.bincount(presences.values[attribute], minlength=k)


def unique_devices(scenario: Scenario, first: int, last: int) -> Devices:
    """The different devices present in at least one of the periods first..last, ascending."""
    return np.unique(np.concatenate([scenario.presences(period).devices for period in range(first, last + 1)]))


def unique_histogram(scenario: Scenario, attribute: str, first: int, last: int) -> Whole:
    """The unique devices of periods first..last by each one's first value in the window (PROTOCOLS 7)."""
    values: dict[int, int] = {}
    for period in range(first, last + 1):
        there = scenario.presences(period)
        for device, value in zip(there.devices.tolist(), there.values[attribute].tolist(), strict=True):
            values.setdefault(device, value)
    return np.bincount(list(values.values()), minlength=len(scenario.attributes[attribute]))
