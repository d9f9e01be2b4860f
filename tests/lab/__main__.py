"""The long checks of the audit: `python -m tests.lab`. Not part of the tests: they take minutes.

1. Guesses of 200,000 devices of every mechanism, of 1, 2, 3 and 10 reports: within 4 standard errors of what is exact.
2. A thousand coin audits of honest devices of each kind of answer: no more false alarms than alpha says.
3. 10,000 honest periods of each kind of answer: no more small p-values of the checks of integrity than they say.
4. 200 surveys of 50 periods, with a change of all values: contradicted in at most 1 %, and each changed once.
5. 25 lives of a survey of the people of each scenario, with the real device code: contradicted in at most 1 %.
"""

from __future__ import annotations

import sys
from collections import Counter
from math import sqrt
from typing import Any

import numpy as np

from analytics.integrity import ALPHA as INTEGRITY_ALPHA
from analytics.integrity import integrity_of
from analytics.integrity.checks import jump_check, negativity_check, sum_check, width_check
from audit.closed import guess
from lab.attacks.coins import coin_audit
from lab.attacks.guessing import guess_trials
from lab.attacks.histories import law_of_reports, ratios, steady_coins
from lab.attacks.trials import Trials
from protocols.mechanisms import fitting
from tests.analytics.integrity_data import honest, zipf
from tests.audit.lives import LIVES as LIVES_OF
from tests.audit.lives import alarms
from tests.helpers.surveys import of_size, scheme_with
from tests.lab.observing import observe, tossed, with_coins

DEVICES, BLOCK, K, REPORTS = 200_000, 50_000, 8, 10
RUNS, COINS, ALPHA = 1000, 1000, 0.05
HONEST, PEOPLE, LEVEL, LIMITS, LIVES, LIFE = 10_000, 2000, 1e-5, (0.1, 0.01, 0.001), 200, 50
SEEDS = 25
KINDS: dict[str, dict[str, Any]] = {
    "l-osue": {"eps_inf": 2.0, "eps_1": 1.0},
    "l-grr": {"eps_inf": 2.0, "eps_1": 1.0},
    "geometric": {"eps": 1.0},
}
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
        alarms += coin_audit(scores, shown[rows], ALPHA, law)[0] > (promise or 0.0)
    print(f"{name:12} {t:3}  {alarms} false alarms in {RUNS} audits at alpha = {ALPHA}")
    return alarms <= ALPHA * RUNS + 3 * sqrt(ALPHA * RUNS)


def honest_periods(name: str, terms: dict[str, Any]) -> bool:
    question = scheme_with(of_size(K, mechanism=name), **terms).questions[0]
    rng, shares, found = np.random.default_rng(7), zipf(K), Counter[tuple[str, float]]()
    for _ in range(HONEST):
        now = honest(question, PEOPLE, shares, rng)
        checks = {"negativity": negativity_check(now, LEVEL)}
        if len(now.laws):
            checks |= {"sum": sum_check(now, LEVEL), "widths": width_check(now, LEVEL)}
        jump = jump_check(now, honest(question, PEOPLE, shares, rng), LEVEL)
        checks |= {} if jump is None else {"jump": jump}
        found.update((check, limit) for check, one in checks.items() for limit in LIMITS if one.p <= limit)
    print(f"{name:12} small p-values in {HONEST} honest periods: {dict(sorted(found.items()))}")
    return all(times <= HONEST * limit + 4 * sqrt(HONEST * limit) for (_, limit), times in found.items())


def surveys_that_alarm(name: str, terms: dict[str, Any]) -> bool:
    question = scheme_with(of_size(K, mechanism=name), **terms).questions[0]
    rng, alarms, jumps = np.random.default_rng(8), 0, 0
    for _ in range(LIVES):
        before, seen = {}, set[str]()
        for period in range(LIFE):
            shares = zipf(K) if period < LIFE // 2 else zipf(K)[::-1].copy()
            now = {"a": honest(question, PEOPLE, shares, rng)}
            seen |= {check for _, check in integrity_of(period, now, before, None, {}).alarms}
            before = now
        alarms += bool(seen - {"jump"})
        jumps += "jump" in seen
    print(f"{name:12} {alarms} of {LIVES} surveys were contradicted, and {jumps} changed, in {LIFE} periods each")
    return alarms <= INTEGRITY_ALPHA * LIVES + 4 * sqrt(INTEGRITY_ALPHA * LIVES) and jumps == LIVES


def honest_lives() -> bool:
    contradicted = 0
    for name in LIVES_OF:
        found = [alarms(name, PEOPLE, seed) for seed in range(SEEDS)]
        contradicted += sum(bool(set(one) - {"jump"}) for one in found)
        print(f"{name:14} alarms in {SEEDS} lives: {dict(sum(found, Counter()))}")
    lives = SEEDS * len(LIVES_OF)
    print(f"{contradicted} of {lives} lives were contradicted")
    return contradicted <= INTEGRITY_ALPHA * lives + 4 * sqrt(INTEGRITY_ALPHA * lives)


def main() -> int:
    good = [guesses(name, terms) for name, terms in MECHANISMS]
    good += [false_alarms(name, t) for name in ("l-grr", "l-osue", "loloha") for t in (1, 5)]
    for name, terms in KINDS.items():
        good += [honest_periods(name, terms), surveys_that_alarm(name, terms)]
    good.append(honest_lives())
    print("all as computed" if all(good) else "NOT as computed")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
