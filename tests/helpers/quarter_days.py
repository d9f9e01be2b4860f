"""Quarters of days of 60 devices, from an evening on, in days of 1, 4 and 4, as the merge gets them."""

from collections.abc import Iterator

import numpy as np

from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import Frame
from stream_app.counting.counters import PeriodCounts
from stream_app.counting.partials import Part, Progress

DEVICES = 60
PERIODS = 9
DAYS = ((0, 0), (1, 4), (5, 8))
RULES = {
    "exact": "visitors: {units: [day, ever]}",
    "minimum": "minimum: 20, visitors: {units: [day, ever]}",
    "noise": "presence_epsilon: 1, visitors: {units: [day, ever]}",
    "gaps-minimum": "minimum: 20, horizon: 8",
    "gaps-noise": "presence_epsilon: 1, horizon: 8",
}


def quarter_days(rule: str) -> Scheme:
    """A survey with one of the rules; its id is the name of the rule."""
    terms = f"start: 2026-01-05T18:00:00Z, period: 6h, eps: 1, clock: source, {RULES[rule]}"
    return Scheme(parse_survey(f"{{id: {rule}, {terms}, attributes: [{{name: a, values: [x, y], mechanism: grr}}]}}"))


def came(period: int) -> set[int]:
    """Who came in a period: about half of the devices, and more of them from day to day."""
    return {device for device in range(DEVICES) if device <= 35 + 4 * period and (device * 7 + period * 3) % 5 < 3}


def visitors(first: int, last: int) -> set[int]:
    """The different devices of a window."""
    return set().union(*(came(period) for period in range(first, last + 1)))


def new(first: int, last: int) -> set[int]:
    """Those who never came before it."""
    before = visitors(0, first - 1) if first else set()
    return visitors(first, last) - before


def part(scheme: Scheme, period: int, offset: int, closed: bool = True, partition: int = 0, of: int = 1) -> Part:
    """What a partition of so many has counted of a period."""
    own = [device for device in sorted(came(period)) if device % of == partition]
    last = [max((t for t in range(period) if device in came(t)), default=-1) for device in own]
    counter = PeriodCounts(scheme)
    visits = scheme.survey.visits.of(np.array(last), period)
    tokens = np.arange(1, len(own) + 1, dtype=np.uint64)
    answers = {"a": (np.array(own) % 2).astype(np.uint8)}
    counter.count(Frame(scheme.survey.id, scheme.fingerprint, period, tokens, visits, answers))
    return Part(scheme.survey.id, period, partition, offset, closed, counter.snapshot())


def partials(scheme: Scheme, first: int, last: int, partitions: int = 1) -> Iterator[Part | Progress]:
    """Each period is counted in part, then to its end, and closed, by one partition after the other."""
    for period in range(first, last + 1):
        for partition in range(partitions):
            offset = 10 * period
            yield part(scheme, period, offset, False, partition, partitions)
            yield part(scheme, period, offset + 1, True, partition, partitions)
            yield Progress(scheme.survey.id, partition, offset + 2, period, {}, {})
