"""The long checks of the audit: `python -m tests.lab`. Not part of the tests: they take minutes.

1. Guesses of 200,000 devices of every mechanism, of 1, 2, 3 and 10 reports: within 4 standard errors of what is exact.
2. A thousand coin audits of honest devices of each kind of answer: no more false alarms than alpha says.
3. 10,000 honest periods of each kind of answer: no more small p-values of the checks of integrity than they say.
4. 200 surveys of 50 periods, with a change of all values: contradicted in at most 1 %, and each changed once.
5. 25 lives of a survey of the people of each scenario, with the real device code: contradicted in at most 1 %.
6. Every broken device, and every defect that is planted in the device libraries, is refuted at level 1e-4.
7. Of 100 audits of healthy devices at that level (94 of ours, 3 of each library) none refutes them.
8. Other libraries, at that level: a defect of opendp 0.14.1 is refuted, pure-ldp 1.2.0 is not.
"""

import sys
from collections import Counter
from itertools import product
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from analytics.integrity import ALPHA as INTEGRITY_ALPHA
from analytics.integrity import integrity_of
from hearsay.terminal.exits import BROKEN as REFUTED
from lab.attacks.guessing import guess_trials
from lab.attacks.trials import Trials
from lab.audit.closed.guessing import guess
from protocols.question import Question
from tests.analytics.test_integrity import CASES, honest, small_p_values, zipf
from tests.clients.libraries import LIBRARIES
from tests.clients.program import DEFECTS, MANY
from tests.clients.test_audit import program
from tests.helpers.surveys import of_size, scheme_with
from tests.lab.audit.test_collected import LIVES, alarms
from tests.lab.calling import LEVEL, call, refuted
from tests.lab.observing import ALPHA, BROKEN, MECHANISMS, TWO_ROUNDS, observe, proven
from tests.lab.peers import EPSILON, VALUES, opendp_promise
from tests.lab.test_beside import SIZES

DEVICES, BLOCK, K, REPORTS = 200_000, 50_000, 8, 10
RUNS, COINS = 1000, 1000
PERIODS, PEOPLE, SURVEYS, LIFE, SEEDS = 10_000, 2000, 200, 50, 25
MANY_PEOPLE = 10_000  # with 2,000, the change of thirty symbols is seen in one survey of seven
HEALTHY, HEALTHY_PROGRAMS, CALLS = 94, 3, 4000


def at_most(share: float, of: int, errors: int = 4) -> float:
    """How often something may happen that has this chance."""
    return share * of + errors * sqrt(share * of)


def guesses(name: str, terms: dict[str, Any]) -> bool:
    scheme = scheme_with(of_size(K, mechanism=name), **terms)
    question, good, found = scheme.questions[0], True, dict.fromkeys((1, 2, 3, 10), Trials())
    for seed in range(DEVICES // BLOCK):
        seen = observe(scheme, {"a": np.tile(np.arange(BLOCK) % K, (REPORTS, 1))}, seed=seed)
        for t in found:
            found[t] += guess_trials(seen, question, range(t))
    for t, trials in found.items():
        exact, share = guess(question, t, scheme.survey.longitudinal), trials.share or 0.0
        errors = 0.0 if exact is None else (share - exact) / sqrt(exact * (1 - exact) / trials.count)
        good &= abs(errors) < 4
        known = "no closed form" if exact is None else f"{exact:.5f}  {errors:+.1f} standard errors"
        print(f"{name:12} {t:3}  {share:.5f}  {known}")
    return good


def false_alarms(name: str, t: int) -> bool:
    scheme = scheme_with(of_size(K, mechanism=name), **TWO_ROUNDS)
    promise = scheme.guarantees.constant(t).whole or 0.0
    refuted = sum(proven(scheme, COINS, t, seed=seed) > promise for seed in range(RUNS))
    print(f"{name:12} {t:3}  {refuted} false alarms in {RUNS} audits at alpha = {ALPHA}")
    return refuted <= at_most(ALPHA, RUNS, errors=3)


def honest_periods(name: str, question: Question) -> bool:
    found = small_p_values(question, PEOPLE, PERIODS)
    print(f"{name:12} small p-values in {PERIODS} honest periods: {dict(sorted(found.items()))}")
    return all(times <= at_most(limit, PERIODS) for (_, limit), times in found.items())


def surveys_that_alarm(name: str, question: Question) -> bool:
    rng, contradicted, changed, shares = np.random.default_rng(8), 0, 0, zipf(question.k)
    for _ in range(SURVEYS):
        before, seen = {}, set[str]()
        for period in range(LIFE):
            now = {"a": honest(question, MANY_PEOPLE, shares if period < LIFE // 2 else shares[::-1].copy(), rng)}
            seen |= {check for _, check in integrity_of(period, now, before, None, {}).alarms}
            before = now
        contradicted += bool(seen - {"jump"})
        changed += "jump" in seen
    print(f"{name:12} of {SURVEYS} surveys {contradicted} were contradicted, {changed} changed, in {LIFE} periods each")
    return contradicted <= at_most(INTEGRITY_ALPHA, SURVEYS) and changed == SURVEYS


def honest_lives() -> bool:
    contradicted, lives = 0, SEEDS * len(LIVES)
    for name in LIVES:
        found = [alarms(name, PEOPLE, seed) for seed in range(SEEDS)]
        contradicted += sum(bool(set(one) - {"jump"}) for one in found)
        print(f"{name:14} alarms in {SEEDS} lives: {dict(sum(found, Counter()))}")
    print(f"{contradicted} of {lives} lives were contradicted")
    return contradicted <= at_most(INTEGRITY_ALPHA, lives)


def planted(directory: Path) -> bool:
    good = []
    for name, proves in BROKEN.items():
        found, promise = proves(LEVEL)
        print(f"{name}: {found:.3f} is proven, {promise:g} is promised")
        good.append(found > promise)
    for library, (defect, (code, sizes)) in product(LIBRARIES, DEFECTS.items()):
        seen = refuted(directory, f"{sizes} --device", program(library, defect))
        print(f"{library}, {defect}: {', '.join(sorted(seen)) or 'not refuted'}", flush=True)
        good.append(code in seen)
    return all(good)


def healthy(directory: Path) -> bool:
    found = [refuted(directory, f"{SIZES} --seed {seed}") for seed in range(HEALTHY)]
    for library, seed in product(LIBRARIES, range(HEALTHY_PROGRAMS)):
        found.append(refuted(directory, f"{MANY} --seed {seed} --device", program(library)))
    print(f"{sum(map(bool, found))} of {len(found)} audits of healthy devices refuted them")
    return not any(found)


def peers() -> bool:
    options = f"--values {VALUES} --promise {EPSILON} --devices {CALLS} --alpha {LEVEL}"
    names = ("opendp_bits", "pure_ldp_unary")
    wrong, right = (call(f"audit --function tests.lab.peers:{name} {options}") for name in names)
    print(wrong.output, right.output, sep="\n")
    return wrong.exit_code == REFUTED and right.exit_code == 0 and abs(opendp_promise() - EPSILON) < 1e-9


def main() -> int:
    good = [guesses(name, terms) for name, terms in MECHANISMS]
    good += [false_alarms(name, t) for name in ("l-grr", "l-osue", "loloha") for t in (1, 5)]
    for name, question in CASES.items():
        good += [honest_periods(name, question), surveys_that_alarm(name, question)]
    good.append(honest_lives())
    with TemporaryDirectory() as directory:
        good += [planted(Path(directory)), healthy(Path(directory)), peers()]
    print("all as computed" if all(good) else "NOT as computed")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
