"""The true attribute, as published attackers look for it: with devices whose attribute they know (docs/audit.md, 3).

They learn how true and fake answers are spread from some devices, where the best attacker computes it:

    partial knowledge    two histograms of each attribute, with one added to every count; of bits one for each bit
    hybrid               the same, on top of what the survey's own estimate says, with as much weight

Both guess the attribute of all other devices from one report.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from audit.intervals import Trials
from audit.measured.guessing import best_guesses
from audit.measured.observed import Observed
from protocols.arrays import Floats, PackedBits, Places
from protocols.mechanisms import Flip
from protocols.question import Question

KNOWN = 0.1  # the share of devices whose attribute the attacker knows
KINDS = {"partial": f"{KNOWN:.0%} of the devices (published attacker)", "hybrid": "both (published attacker)"}


def published_trials(observed: Observed, estimates: Mapping[str, Floats], seed: int = 0) -> dict[str, Trials]:
    """How often each kind of published attacker is right."""
    assert observed.sampled is not None, "all attributes are true"
    rows = np.flatnonzero(observed.answered[0])
    known = np.random.default_rng(seed).random(len(rows)) < KNOWN
    learnt, rest = rows[known], rows[~known]
    found = {}
    for kind in KINDS:
        scores = np.empty((len(rest), len(observed.scheme.questions)))
        for place, question in enumerate(observed.scheme.questions):
            true = observed.sampled[learnt] == place
            hints = _hints(question, estimates[question.name]) if kind == "hybrid" else None
            answers = observed.answers[question.name][0]
            chances = [
                _learnt(question, answers[learnt[which]], None if hints is None else hints[side], len(learnt))
                for side, which in enumerate((true, ~true))
            ]
            scores[:, place] = _ratio(question, answers, rest, *chances)
        found[kind] = best_guesses(scores, observed.sampled[rest])
    return found


def _hints(question: Question, shares: Floats) -> tuple[Floats, Floats]:
    """How often each symbol or bit is in true and in fake answers, if values are spread like the estimate."""
    noise = question.mechanism.one_report
    assert isinstance(noise, Flip)
    true = shares * noise.gain + noise.q
    if question.mechanism.encoding.exclusive:
        return true, np.asarray(question.fake_answer)
    fakes = np.zeros(question.k) if question.fake is None else question.fake
    return true, fakes * noise.gain + noise.q


def _learnt(question: Question, answers: Floats | Places, hint: Floats | None, weight: int) -> Floats:
    """The chance of each symbol, or of each bit, from answers of known devices."""
    layout = question.mechanism.encoding.answer
    if isinstance(layout, PackedBits):
        counts, total, added = layout.unpack(answers).sum(axis=0).astype(float), len(answers), 2.0  # type: ignore[arg-type]
    else:
        counts, total, added = np.bincount(answers, minlength=question.k).astype(float), len(answers), float(question.k)
    if hint is None:
        return np.asarray((counts + 1) / (total + added))
    return np.asarray((counts + weight * hint) / (total + weight))


def _ratio(question: Question, answers: Floats, rows: Places, true: Floats, fake: Floats) -> Floats:
    layout = question.mechanism.encoding.answer
    if isinstance(layout, PackedBits):
        bits = layout.unpack(answers[rows]).astype(float)  # type: ignore[arg-type]
        ones, zeros = np.log(true / fake), np.log((1 - true) / (1 - fake))
        return np.asarray(bits @ (ones - zeros) + zeros.sum())
    return np.asarray(np.log(true / fake)[answers[rows].astype(int)])
