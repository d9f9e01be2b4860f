"""The long checks of the audit: `python -m tests.lab`. Not part of the tests: they take minutes.

1. 10,000 honest periods of each kind of answer: no more small p-values of the checks of integrity than they say.
2. 200 surveys of 50 periods, with a change of all values: contradicted in at most 1 %, and each changed once.
3. 25 lives of a survey of the people of each scenario, with the real device code: contradicted in at most 1 %.
4. Every broken device, and every defect that is planted in the device libraries, is refuted at level 1e-4.
5. Of 100 audits of healthy devices at that level (94 of ours, 3 of each library) none refutes them.
6. Other libraries, at that level: a defect of opendp 0.14.1 is refuted, pure-ldp 1.2.0 is not.
7. Every fault that is planted in a copy of the Python library is refuted at that level, with as many devices as the
   audit says beforehand; and none of 40 audits refutes the conduct of healthy devices.

`python -m tests.lab integrity conduct` carries out some of them: integrity (1, 2, 3), planted (4), healthy (5),
peers (6), conduct (7).
"""

import sys
from collections import Counter
from collections.abc import Callable
from itertools import product
from math import sqrt
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from tempfile import TemporaryDirectory

import numpy as np

from analytics.integrity import ALPHA as INTEGRITY_ALPHA
from analytics.integrity import integrity_of
from hearsay.terminal.explaining import BROKEN as REFUTED
from protocols.question import Question
from tests.analytics.test_integrity import CASES, honest, small_p_values, zipf
from tests.clients.libraries import LIBRARIES
from tests.clients.planting import FAULTS, SURVEYS_OF_FAULTS, plant
from tests.clients.program import APART, DEFECTS, MANY
from tests.clients.test_audit import program
from tests.lab.calling import LEVEL, call, conduct_defects, needed, refuted
from tests.lab.observing import BROKEN
from tests.lab.peers import EPSILON, VALUES, opendp_promise
from tests.lab.test_beside import SIZES
from tests.lab.test_collected import LIVES, alarms

PERIODS, PEOPLE, SURVEYS, LIFE, SEEDS = 10_000, 2000, 200, 50, 25
MANY_PEOPLE = 10_000  # with 2,000, the change of thirty symbols is seen in one survey of seven
HEALTHY, HEALTHY_PROGRAMS, CALLS = 94, 3, 4000
HEALTHY_CONDUCT, HEALTHY_DEVICES = 40, 300


def at_most(share: float, of: int) -> float:
    """How often something may happen that has this chance."""
    return share * of + 4 * sqrt(share * of)


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


def integrity() -> bool:
    good = []
    for name, question in CASES.items():
        good += [honest_periods(name, question), surveys_that_alarm(name, question)]
    return all([*good, honest_lives()])


def conduct(directory: Path) -> bool:
    good = []
    for number, (name, fault) in enumerate(FAULTS.items()):
        devices = needed(fault.survey, directory)[fault.deviation]
        command = plant(directory / f"library-{number}", fault)
        found = conduct_defects(fault.survey, directory, devices, command)
        print(f"{name}, {devices} devices: {', '.join(sorted(found)) or 'not refuted'}", flush=True)
        good.append(fault.finding in found)
    return all([*good, healthy_conduct(directory)])


def healthy_conduct(directory: Path) -> bool:
    """Runs of all surveys in turns; every fourth one sends each report at a moment of its own."""
    wrong = 0
    for seed in range(HEALTHY_CONDUCT):
        survey = SURVEYS_OF_FAULTS[seed % len(SURVEYS_OF_FAULTS)]
        mode = [APART] if seed % 4 == 0 else []
        found = conduct_defects(survey, directory, HEALTHY_DEVICES, program("python", *mode), seed)
        print(f"healthy, seed {seed}: {', '.join(sorted(found)) or 'not refuted'}", flush=True)
        wrong += bool(found)
    print(f"{wrong} of {HEALTHY_CONDUCT} audits of the conduct of healthy devices refuted them")
    return wrong == 0


def main() -> int:
    with TemporaryDirectory() as name:
        directory = Path(name)
        parts: dict[str, Callable[[], bool]] = {
            "integrity": integrity,
            "planted": lambda: planted(directory),
            "healthy": lambda: healthy(directory),
            "peers": peers,
            "conduct": lambda: conduct(directory),
        }
        wanted = sys.argv[1:] or list(parts)
        if unknown := set(wanted) - set(parts):
            sys.exit(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
        good = [timed(part, parts[part]) for part in wanted]
    print("all as computed" if all(good) else "NOT as computed")
    return 0 if all(good) else 1


def timed(name: str, part: Callable[[], bool]) -> bool:
    """Whether a part is as computed; its CPU time is printed."""
    begin = cpu_seconds()
    good = part()
    print(f"{name}: {'as computed' if good else 'NOT as computed'}, {cpu_seconds() - begin:.0f} CPU s", flush=True)
    return good


def cpu_seconds() -> float:
    """Of this process, and of those that it started and that ended."""
    used = [getrusage(whose) for whose in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    sys.exit(main())
