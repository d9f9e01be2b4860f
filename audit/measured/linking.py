"""Finding a device's earlier report by its answers, carried out (docs/audit.md, section 7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from audit.intervals import Trials
from audit.likelihoods.pairs import pair_scores
from audit.measured.observed import Observed
from protocols.arrays import Places
from protocols.question import Question

CELLS = 1 << 22
SAME = 1e-9


def link_trials(
    observed: Observed, questions: Sequence[Question], earlier: int, later: int, targets: int, crowd: int
) -> tuple[Trials, int]:
    """For some reports of a period: is the best guess of the device's report of an earlier period right?

    Targets have answered in both periods, whether their value has changed or not; all reports of the earlier period
    are candidates, up to `crowd` of them. Returns how often the guess is right, and the number of candidates.
    """
    answering = observed.answering(questions[0].name)
    candidates = np.flatnonzero(observed.answered[earlier] & answering)[:crowd]
    wanted = np.flatnonzero(observed.answered[later][candidates])[:targets]
    scores = [pair_scores(question, observed.scheme.survey.longitudinal) for question in questions]
    total = Trials()
    size = max(1, CELLS // max(1, len(candidates)))
    for first in range(0, len(wanted), size):
        own: Places = wanted[first : first + size]
        found = np.zeros((len(own), len(candidates)))
        for part, question in zip(scores, questions, strict=True):
            answers = observed.answers[question.name]
            found += part.between(answers[later][candidates[own]], answers[earlier][candidates])
        mine = found[np.arange(len(own)), own][:, None]
        better, equal = (found > mine + SAME).sum(axis=1), (abs(found - mine) <= SAME).sum(axis=1)
        total += Trials(float(np.where(better == 0, 1 / equal, 0.0).sum()), len(own))
    return total, len(candidates)
