"""Methods compared on a population whose truth is known: what the command and the library have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from analytics.evaluation import USUAL, Method, Outcome, Truth, choose, noisy_priors
from analytics.evaluation import evaluate as evaluate_methods
from hearsay.running.seeded_keyrings import seeded_keyring
from hearsay.terminal.console import Step, no_step


@dataclass(frozen=True)
class Evaluation:
    """What is compared: `methods` as `choose` takes them, each at every budget in `eps`.

    `published` adds the papers' variants, where they differ. `prior_eps` is the central budget of the noisy census
    from which RS+RFD draws fakes. With `one_in`, devices of one-shot methods answer in one of so many periods.
    """

    methods: Sequence[str] = ("longitudinal",)
    eps: Sequence[float] = (0.5, 1.0, 2.0, 4.0)
    alpha: float = 0.5
    guarantee: Literal["tuple", "attribute"] = "tuple"
    published: bool = False
    prior_eps: float = 0.1
    corrections: Sequence[str] = USUAL
    runs: int = 20
    seed: int = 0
    one_in: int = 1

    def run(self, truth: Truth, step: Step = no_step) -> list[Outcome]:
        """The outcome of every method at every budget."""
        named = choose(self.methods, placed=bool(truth.places))
        chosen = [method.under(self.guarantee).taking_turns(self.one_in) for method in named]
        if self.published:
            chosen = [variant for method in chosen for variant in _variants(method)]
        priors = noisy_priors(truth, self.prior_eps, np.random.default_rng(self.seed))
        return evaluate_methods(
            replace(truth, priors=priors),
            chosen,
            self.eps,
            seeded_keyring(self.seed),
            alpha=self.alpha,
            runs=self.runs,
            corrections=self.corrections,
            progress=step,
        )


def _variants(method: Method) -> list[Method]:
    return [method, method.as_published()] if method.republished else [method]
