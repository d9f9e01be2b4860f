"""Pairs, very many values and learning: what each step costs, and how much more where there is four times as much.

Both sizes of a row are measured in one go, in turns, in CPU seconds: their ratio holds on any machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from time import process_time

import numpy as np

from analytics.estimation import exact
from analytics.learning import Measured, Pair, People, compare, counted, draw_records, fit
from analytics.mobility import Answers
from bench._tables import Table, best_of
from hearsay.running.seeded_keyrings import seeded_keyring
from protocols.mechanisms import FreshHash
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey_text import parse_survey
from protocols.wire import Frame
from stream_app.counting.counters import PeriodCounts

TIMES, FOUR = 3, 4
REPORTS = 20_000
MOST = 6.0  # times as much for four times as much: more would not be linear, but for a logarithm
Work = Callable[[], object]


def run() -> Table:
    found = Table("Pairs, many values and learning, CPU time on one core", ("", "of", "takes", "of", "takes", "ratio"))
    for mechanism in ("l-osue", "l-grr"):
        _per_report(found, f"an answer to a cross, {mechanism}", "a report counted", partial(_cross, mechanism))
    _per_report(found, "an answer of olh", "a report counted", _olh)
    _compare(found, "supports of olh decoded", "values", 40_000, _decoding)
    _compare(found, "estimate and adjust a table", "pairs", 16_384, _adjusting)
    _compare(found, "fit a tree, attributes of 4 values", "pairs", 15, _fitting)
    _compare(found, "draw records along it", "records", 50_000, _drawing)
    _compare(found, "learn a label, one budget and run", "people", 25_000, _learning)
    found.remarks.append("decoding olh takes as long as for the next power of g (here 3) above the number of values")
    found.remarks.append("an answer in bits is as long as there are pairs; one of l-grr or olh is a number")
    return found


def _per_report(found: Table, answering: str, counting: str, of: Callable[[int], tuple[Work, Work]]) -> None:
    few, many = (of(k) for k in (256, 4 * 256))
    for what, one, other in zip((answering, f"  {counting}"), few, many, strict=True):
        _row(found, what, "values", 256, one, other, 1e9 / REPORTS, "ns")


def _compare(found: Table, what: str, unit: str, size: int, of: Callable[[int], Work]) -> None:
    _row(found, what, unit, size, of(size), of(FOUR * size), 1e3, "ms")


def _row(found: Table, what: str, unit: str, size: int, few: Work, many: Work, scale: float, of_time: str) -> None:
    for work in (few, many):
        work()
    rounds = [[best_of(1, work, process_time, warm=False) for work in (few, many)] for _ in range(TIMES)]
    one, other = (min(times) for times in zip(*rounds, strict=True))
    sizes = f"{size:,} {unit}", f"{FOUR * size:,}"
    takes = f"{one * scale:,.1f} {of_time}", f"{other * scale:,.1f} {of_time}"
    found.row(what, sizes[0], takes[0], sizes[1], takes[1], f"{other / one:.1f}")
    if other > MOST * one:
        found.missed.append(f"{what}: {other / one:.1f} times as long for {FOUR} times the {unit}")


def _scheme(attributes: str, budget: str, more: str = "") -> Scheme:
    return Scheme(
        parse_survey(f"{{id: s, start: 2026-01-01T00:00:00Z, period: 1d, {budget}, attributes: [{attributes}]{more}}}")
    )


def _sides(k: int) -> tuple[int, int]:
    side = 1 << (k.bit_length() // 2)
    return side, k // side


def _crossed(k: int, mechanism: str) -> Scheme:
    a, b = _sides(k)
    names = f"{{name: a, range: {{last: {a - 1}}}}}, {{name: b, range: {{last: {b - 1}}}}}"
    return _scheme(names, "eps_inf: 4, eps_1: 2", f", crosses: [{{of: [a, b], mechanism: {mechanism}}}]")


def _cross(mechanism: str, k: int) -> tuple[Work, Work]:
    return _reporting(_crossed(k, mechanism), "a*b", k)


def _olh(k: int) -> tuple[Work, Work]:
    return _reporting(_scheme(f"{{name: a, range: {{last: {k - 1}}}, mechanism: olh}}", "eps: 1"), "a", k)


def _reporting(scheme: Scheme, name: str, k: int) -> tuple[Work, Work]:
    """Making so many answers to one question, and counting them."""
    question, respondent = scheme.question(name), Respondent(scheme, seeded_keyring(1))
    devices = np.arange(REPORTS, dtype=np.uint64)
    values = np.random.default_rng(1).integers(k, size=REPORTS)
    gaps = np.ones(REPORTS, dtype=np.uint16)
    frame = Frame("s", scheme.fingerprint, 0, devices, gaps, {name: respondent.answers(question, devices, 0, values)})
    return lambda: respondent.answers(question, devices, 0, values), lambda: PeriodCounts(scheme).count(frame)


def _decoding(k: int) -> Work:
    scheme = _scheme(f"{{name: a, range: {{last: {k - 1}}}, mechanism: olh}}", "eps: 1")
    encoding = scheme.questions[0].mechanism.encoding
    assert isinstance(encoding, FreshHash)
    answers = np.random.default_rng(1).integers(encoding.answer.count, size=REPORTS, dtype=np.uint32)
    return lambda: encoding.supports(answers)


def _adjusting(k: int) -> Work:
    scheme, random, people = _crossed(k, "l-osue"), np.random.default_rng(2), exact(np.array(3e6))
    counts = {q.name: random.binomial(10**6, q.channel.support(np.full(q.k, 1 / q.k))) for q in scheme.questions}

    def adjust() -> object:
        found = {q.name: Answers(q.channel, 10**6, counts[q.name], people, None) for q in scheme.questions}
        return found["a*b"].fitted(scheme.question("a*b").axes, [found["a"], found["b"]])

    return adjust


def _fitting(pairs: int) -> Work:
    measured = _measured(pairs)
    return lambda: fit(measured)


def _drawing(rows: int) -> Work:
    model = fit(_measured(15))
    return lambda: draw_records(model, rows, 1)


def _measured(pairs: int) -> Measured:
    """So many pairs of attributes that follow one another, as if they had been asked without noise."""
    names = [f"a{place}" for place in range(12)]
    wanted: list[Pair] = list(combinations(names, 2))[:pairs]
    random = np.random.default_rng(3)
    first = random.integers(4, size=20_000)
    people = {name: np.where(random.random(20_000) < 0.3, first, random.integers(4, size=20_000)) for name in names}
    return counted(dict.fromkeys(names, 4), people, wanted)


def _learning(people: int) -> Work:
    random = np.random.default_rng(4)
    label = random.integers(2, size=people)
    known = {f"a{at}": (label + random.integers(6, size=people)) % 6 for at in range(5)} | {"label": label}
    tried = {name: column[:2000] for name, column in known.items()}
    everybody = People(dict.fromkeys(known, 6) | {"label": 2}, "label", known, tried)
    return lambda: compare(everybody, [2.0], seeded_keyring(1), runs=1)
