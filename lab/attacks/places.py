"""The averaging attack on places, carried out: the mean of a device's reports, and how far it is from its place."""

from collections.abc import Iterator

import numpy as np

from lab.attacks.observed import Observed
from lab.audit.closed.places import averaged, blind
from lab.audit.report import Figure, plain
from protocols.mechanisms import PlanarRound

INSIDE = 4.0  # root mean squares from the border: nearer, reports are moved inwards and the closed form does not hold


def place_figures(observed: Observed) -> Iterator[Figure]:
    """Of each attribute of places: after one report, and after as many as there are."""
    memoised = observed.scheme.survey.longitudinal
    for question in observed.scheme.questions:
        for periods in map(range, sorted({1, observed.periods}) if question.attribute.placed else ()):
            grid = question.attribute.grid
            assert grid is not None
            answered = observed.answered[periods.start : periods.stop].all(axis=0) & observed.answering(question.name)
            rows = np.flatnonzero(answered & observed.kept(question.name, periods))
            positions = grid.area.positions
            true = positions[observed.values[question.name][0][rows]]
            if isinstance(question.mechanism.first, PlanarRound):
                most = np.array([grid.rows, grid.columns]) - 1
                margin = min(INSIDE * averaged(question, 1, memoised) / grid.cell, most.min() / 2)
                inside = ((true >= margin) & (true <= most - margin)).all(axis=1)
                rows, true = rows[inside], true[inside]
            if not len(rows):
                continue
            cells = observed.answers[question.name][periods.start : periods.stop, rows]
            off = np.hypot(*(positions[cells].mean(axis=0) - true).T) * grid.cell
            measured = float(np.sqrt((off**2).mean()))
            spread = float((off**2).std()) / np.sqrt(len(off)) / (2 * max(measured, 1e-9))
            best, knows = averaged(question, len(periods), memoised), "averages linked reports, away from the border"
            ends = {"low": measured - 1.96 * spread, "high": measured + 1.96 * spread, "trials": len(rows)}
            facts = {"luck": blind(question), "histogram": None, "exact": False, "limited": False}
            yield plain("place", question.name, knows, len(periods), best, measured=measured, **ends, **facts)
