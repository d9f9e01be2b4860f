"""The long checks of the audit: `python -m tests.audit`. Not part of the tests: they take minutes.

1. Guesses of 200,000 devices of every mechanism, of 1, 2, 3 and 10 reports: within 4 standard errors of what is exact.
2. A thousand coin audits of honest devices of each kind of answer: no more false alarms than alpha says.
"""

from __future__ import annotations

import sys
from math import sqrt
from typing import Any

import numpy as np

from audit.closed import guess
from audit.intervals import Trials
from audit.measured import coin_audit
from audit.measured.guessing import guess_trials
from audit.measured.histories import law_of_reports, ratios, steady_coins
from protocols.mechanisms import fitting
from tests.audit.observing import observe, tossed, with_coins
from tests.helpers.surveys import of_size, scheme_with

DEVICES, BLOCK, K, REPORTS = 200_000, 50_000, 8, 10
RUNS, COINS, ALPHA = 1000, 1000, 0.05
MECHANISMS: list[tuple[str, dict[str, Any]]] = [
    *((record.name, {"eps": 1.0}) for record in fitting("one-shot")),
    *((record.name, {"eps_inf": 1.5}) for record in fitting("memo only")),
    *((record.name, {"eps_inf": 2.0, "eps_1": 1.0}) for record in fitting("two rounds")),
]


def guesses(name: str, terms: dict[str, Any]) -> bool:
    scheme = scheme_with(of_size(K, mechanism=name), **terms)
    question, memoised = scheme.questions[0], scheme.survey.longitudinal
    found = dict.fromkeys((1, 2, 3, 10), Trials())
    for seed in range(DEVICES // BLOCK):
        values = {"a": np.tile(np.arange(BLOCK) % K, (REPORTS, 1))}
        seen = observe(scheme, values, seed=seed)
        for t in found:
            found[t] += guess_trials(seen, question, range(t))
    good = True
    for t, trials in found.items():
        exact, share = guess(question, t, memoised), trials.share or 0.0
        if exact is None:
            print(f"{name:12} {t:3}  {share:.5f}  no closed form")
            continue
        errors = (share - exact) / sqrt(exact * (1 - exact) / trials.count)
        good &= abs(errors) < 4
        print(f"{name:12} {t:3}  {share:.5f}  {exact:.5f}  {errors:+.1f} standard errors")
    return good


def false_alarms(name: str, t: int) -> bool:
    scheme = scheme_with(of_size(K, mechanism=name), eps_inf=2.0, eps_1=1.0)
    coins, law, promise = steady_coins(scheme, t), law_of_reports(scheme, t), scheme.guarantees.constant(t).whole
    alarms = 0
    for seed in range(RUNS):
        shown = tossed(COINS, seed)
        rows, scores = ratios(with_coins(scheme, coins, shown, t, seed=seed), coins, range(t))
        alarms += coin_audit(scores, shown[rows], ALPHA, law).bound > (promise or 0.0)
    print(f"{name:12} {t:3}  {alarms} false alarms in {RUNS} audits at alpha = {ALPHA}")
    return alarms <= ALPHA * RUNS + 3 * sqrt(ALPHA * RUNS)


def main() -> int:
    good = [guesses(name, terms) for name, terms in MECHANISMS]
    good += [false_alarms(name, t) for name in ("l-grr", "l-osue", "loloha") for t in (1, 5)]
    print("all as computed" if all(good) else "NOT as computed")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
