"""Which pairs of histories the coins of an audit choose between, and what is promised for each (docs/audit.md, 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from audit.measured.coins import Law, coin_audit, smallest_violation
from audit.measured.histories import Coins, can_change, law_of_reports, ratios, returning_coins, steady_coins
from audit.measured.observed import Observed
from audit.report import Figure
from protocols.arrays import Floats, Mask
from protocols.scheme import Scheme

MOST_RETURNS = 100  # periods: beyond, likelihoods of whole histories are too small for a float


@dataclass(frozen=True)
class Look:
    """One way to look at the reports of an experiment: how many of them, and at which attribute (None: at all)."""

    target: str
    periods: range
    promise: float | None
    shown: str | None = None
    law: Law | None = None
    exact: bool = True


@dataclass
class Experiment:
    """Devices whose coins choose between two histories."""

    knows: str
    coins: Coins
    looks: Sequence[Look]
    _ratios: dict[int, list[Floats]] = field(default_factory=dict)
    _tossed: dict[int, list[Mask]] = field(default_factory=dict)

    def add(self, observed: Observed, tossed: Mask) -> None:
        """One block of devices, and what their coins showed."""
        for place, look in enumerate(self.looks):
            rows, found = ratios(observed, self.coins, look.periods, look.shown)
            self._ratios.setdefault(place, []).append(found)
            self._tossed.setdefault(place, []).append(tossed[rows])

    def figures(self, alpha: float) -> list[Figure]:
        """What the coins prove, each with the whole of `alpha`."""
        return [self._figure(place, look, alpha) for place, look in enumerate(self.looks)]

    def _figure(self, place: int, look: Look, alpha: float) -> Figure:
        proven = coin_audit(np.concatenate(self._ratios[place]), np.concatenate(self._tossed[place]), alpha, look.law)
        seen = None if look.promise is None else smallest_violation(look.promise, proven.guesses, alpha)
        return Figure(
            attack="epsilon", target=look.target, knows=self.knows, reports=len(look.periods), unit="nats", luck=0.0,
            histogram=0.0, measured=proven.bound, low=proven.bound, trials=proven.guesses, best=look.promise,
            exact=look.exact, detectable=seen,
        )  # fmt: skip


def experiments(scheme: Scheme, periods: int) -> list[Experiment]:
    """What is measured for a survey: tuples, single attributes, and a value that comes back."""
    promise = scheme.guarantees
    spans = [range(1)] if periods == 1 else [range(1), range(periods)]
    found = [
        Experiment(
            "values never change",
            steady_coins(scheme, periods),
            [
                Look("whole tuples", span, promise.constant(len(span)).whole, law=law_of_reports(scheme, len(span)))
                for span in spans
            ]
            + [
                Look(question.name, span, promise.per_attribute(len(span))[place], shown=question.name)
                for span in spans
                for place, question in enumerate(scheme.questions)
                if len(scheme.questions) > 1 and scheme.survey.solution == "spl"
            ],
        )
    ]
    if scheme.questions[0].faked:
        losses = promise.per_attribute(periods)
        place = int(np.argmax(losses))
        name = scheme.questions[place].name
        looks = [Look(name, span, promise.per_attribute(len(span))[place]) for span in spans]
        found.append(Experiment("values never change", steady_coins(scheme, periods, name), looks))
    if can_change(scheme) and periods >= 2:
        span = range(min(periods, MOST_RETURNS))
        loss = promise.any(len(span))
        look = Look("whole tuples", span, loss.whole, exact=loss.exact)
        found.append(Experiment("a value that comes back, or never changes", returning_coins(scheme, periods), [look]))
    return found
