"""Checks of collected counts: honest ones pass, forged ones are noticed from the share on that is stated."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from analytics.integrity import ALPHA, Closed, flow_of, integrity_of, robust
from analytics.integrity.checks import Answers, Check, jump_check, negativity_check, sum_check, width_check
from lab.seeded_keyrings import seeded_keyring
from protocols.arrays import Floats, Mask, Whole
from protocols.mechanisms import Flip, SupportChannel
from protocols.privacy import width_laws
from protocols.question import Question
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from tests.helpers.crowd import answers_of, scheme_of

LEVEL = 1e-5  # as of a check in the tenth period of a survey
LONG, ONCE = "eps_inf: 2, eps_1: 1", "eps: 1"
CHECKS: dict[str, Callable[[Answers, float], Check]] = {
    "sum": sum_check,
    "widths": width_check,
    "negativity": negativity_check,
}


def asked(k: int, mechanism: str, terms: str) -> Question:
    return scheme_of(f"{{name: a, range: {{last: {k - 1}}}, mechanism: {mechanism}}}", terms).questions[0]


CASES = {
    "bits": asked(20, "l-osue", LONG),
    "even bits": asked(6, "sue", ONCE),
    "symbols": asked(30, "l-grr", LONG),
    "ordered": asked(8, "geometric", ONCE),
}


@pytest.mark.parametrize(
    ("attributes", "terms"),
    [
        ("{name: a, range: {last: 11}, mechanism: l-osue}", LONG),
        ("{name: a, range: {last: 11}, mechanism: sue}", ONCE),
        ("{name: a, range: {last: 11}, mechanism: dbitflip, parameter: 4}", "eps_inf: 2"),
        ("{name: a, range: {last: 11}, mechanism: loloha}", LONG),
        ("{name: a, range: {last: 11}, mechanism: oue-z}, {name: b, values: [x, y, z]}", f"{ONCE}, solution: rs+fd"),
        ("{name: a, range: {last: 11}, mechanism: oue-r}, {name: b, values: [x, y, z]}", f"{ONCE}, solution: rs+fd"),
    ],
    ids=["l-osue", "sue", "dbitflip", "loloha", "oue-z", "oue-r"],
)
def test_the_widths_of_devices_follow_their_law_whatever_the_values_are(attributes: str, terms: str) -> None:
    scheme = scheme_of(attributes, terms)
    question, laws = scheme.questions[0], width_laws(scheme.questions[0])
    assert laws.sum(axis=1) == pytest.approx(np.ones(len(laws)))
    for seed, shares in enumerate((zipf(12), np.eye(12)[7])):
        values = np.random.default_rng(seed).choice(12, 20_000, p=shares)
        seen = answers_of(question, Respondent(scheme, seeded_keyring(seed)), values)
        widths = question.mechanism.encoding.count_widths(seen)
        supports = question.mechanism.encoding.count(seen, np.zeros(len(seen), dtype=np.int64), 1)[0]
        assert widths.sum() == 20_000 and widths @ np.arange(13) == supports.sum()
        found = Answers(20_000, supports, widths, question.channel, laws)
        assert all(check(found, LEVEL).p > 1e-3 for check in CHECKS.values())


@pytest.mark.long(part="statistics")
def test_few_honest_answers_of_very_many_bits_pass_and_forged_ones_are_noticed() -> None:
    """Failure would look like: chances too small for a float, and every period of such a survey seems forged."""
    k, n = 65_536, 40
    scheme = scheme_of(f"{{name: a, range: {{last: {k - 1}}}, mechanism: oue}}", ONCE)
    question, laws = scheme.questions[0], width_laws(scheme.questions[0])
    seen = answers_of(question, Respondent(scheme, seeded_keyring(4)), np.arange(n))
    widths = question.mechanism.encoding.count_widths(seen)
    supports = question.mechanism.encoding.count(seen, np.zeros(n, dtype=np.int64), 1)[0]
    found = Answers(n, supports, widths, question.channel, laws)
    assert all(check(found, LEVEL).p > 1e-3 for check in CHECKS.values())
    smallest = sum_check(found, LEVEL).smallest
    assert smallest is not None and smallest < 0.1
    each = np.repeat(np.arange(k + 1), widths)
    each[: 1 + round(smallest * n)] = 1
    forged = Answers(n, supports, np.bincount(each, minlength=k + 1), question.channel, laws)
    assert sum_check(forged, LEVEL).p < LEVEL


def small_p_values(question: Question, n: int, periods: int) -> Counter[tuple[str, float]]:
    """How often a check of so many honest periods has a p-value below a limit."""
    rng, found, shares = np.random.default_rng(n), Counter[tuple[str, float]](), zipf(question.k)
    for _ in range(periods):
        now, before = honest(question, n, shares, rng), honest(question, n, shares, rng)
        checks = {name: check(now, LEVEL) for name, check in CHECKS.items() if len(now.laws) or name == "negativity"}
        jump = jump_check(now, before, LEVEL)
        checks |= {} if jump is None else {"jump": jump}
        found.update((name, limit) for name, check in checks.items() for limit in (0.1, 0.01) if check.p <= limit)
    return found


@pytest.mark.long(part="statistics")
@pytest.mark.parametrize("question", CASES.values(), ids=CASES)
@pytest.mark.parametrize("n", [60, 5000])
def test_the_p_values_of_honest_periods_are_at_least_as_large_as_they_claim(question: Question, n: int) -> None:
    for (name, limit), times in small_p_values(question, n, 400).items():
        assert times <= 400 * limit + 4 * np.sqrt(400 * limit), f"{name}: {times} p-values below {limit}"


@pytest.mark.parametrize(
    ("name", "case"), [(c, k) for c in CHECKS for k in ("bits", "even bits")] + [("negativity", "symbols")]
)
@pytest.mark.parametrize("n", [500, 5000])
def test_the_smallest_share_that_is_stated_is_noticed(name: str, case: str, n: int) -> None:
    question, rng, trials = CASES[case], np.random.default_rng(n), 40
    k, shares, check = question.k, zipf(question.k), CHECKS[name]
    noticed = stated = 0
    for _ in range(trials):
        smallest = check(counted(question, reports(question, n, shares, rng)), LEVEL).smallest
        if smallest is None:
            continue
        stated += 1
        forged = np.zeros((round(n * smallest), k), dtype=bool)
        forged[:, 0] = True  # the most frequent value: that is where it is least noticed
        if name == "widths":
            usual = int(np.argmax(width_laws(question)[0]))
            forged[:] = np.argsort(rng.random(forged.shape), axis=1) < usual
        bits = np.concatenate([reports(question, n - len(forged), shares, rng), forged])
        noticed += check(counted(question, bits), LEVEL).p <= LEVEL
    assert noticed >= 0.8 * stated, f"{noticed} of {stated}"  # 90 % is stated
    assert stated == trials or n == 500


def test_a_jump_is_noticed_and_says_only_that_something_changed() -> None:
    question, rng = CASES["symbols"], np.random.default_rng(4)
    before = honest(question, 5000, zipf(30), rng)
    assert jump_check(honest(question, 5000, zipf(30), rng), before, LEVEL).p > LEVEL  # type: ignore[union-attr]
    now = honest(question, 5000, zipf(30)[::-1].copy(), rng)
    verdict = integrity_of(9, {"a": now}, {"a": before}, None, {})
    assert (verdict.verdict, verdict.alarms) == ("changed", (("a", "jump"),))


def test_forged_reports_contradict_and_the_checks_that_see_them_are_named() -> None:
    question, rng = CASES["bits"], np.random.default_rng(8)
    bits = reports(question, 5000, zipf(20), rng)
    assert integrity_of(0, {"a": counted(question, bits)}, {}, None, {}).verdict == "consistent"
    bits[:400] = np.arange(20) == 3
    verdict = integrity_of(0, {"a": counted(question, bits)}, {}, None, {})
    assert verdict.verdict == "contradicted" and {check for _, check in verdict.alarms} >= {"sum", "widths"}
    one = verdict.attributes[0]
    assert one.widths is not None and one.widths.adjusted <= ALPHA < one.widths.smallest < 400 / 5000


def test_all_periods_together_spend_the_level() -> None:
    """The same p-value means less in a later period, and with more attributes."""
    question = CASES["symbols"]
    bits = reports(question, 5000, zipf(30), np.random.default_rng(1))
    bits[:1000] = np.arange(30) == 0
    forged = counted(question, bits)
    first = integrity_of(0, {"a": forged}, {}, None, {}).attributes[0].negativity
    for period, attributes in ((0, 3), (9, 1), (999, 2)):
        later = (
            integrity_of(period, {f"a{i}": forged for i in range(attributes)}, {}, None, {}).attributes[0].negativity
        )
        assert later.p == first.p
        assert later.adjusted / first.adjusted == pytest.approx(attributes * (period + 1) ** 2, rel=0.01)
    spent = sum(6 / (np.pi**2 * (period + 1) ** 2) for period in range(100_000))
    assert spent == pytest.approx(1, abs=1e-4)


def history(rng: np.random.Generator, horizon: int, periods: int) -> dict[int, Closed]:
    """Honest devices that are there now and then, some of whose reports are late or refused, by period."""
    devices = int(rng.integers(1, 30))
    last = np.full(devices, -horizon)
    gaps: dict[int, list[int]] = {}
    refused, late = Counter[int](), {period: Counter[int]() for period in range(periods)}
    for period in range(periods):
        here = np.flatnonzero(rng.random(devices) < rng.choice([0.1, 0.5, 0.9]))
        counted_gaps = []
        for device in here:
            fate = rng.choice(["counted", "late", "refused"], p=[0.8, 0.1, 0.1])
            after = period + int(rng.integers(1, 3))
            if fate == "counted":
                counted_gaps.append(min(period - int(last[device]), horizon))
            elif fate == "late" and after < periods:
                late[after][period] += 1
            else:
                refused[period] += 1
            last[device] = period  # it was sent, whatever became of it
        gaps[period] = counted_gaps
    first = min((period for period in gaps if gaps[period]), default=0)
    closed = {}
    for period in range(first, periods):
        found, n = np.unique(np.array(gaps[period], dtype=np.int64), return_counts=True)
        closed[period] = Closed(found, n, refused[period], late[period])
    return closed


def test_honest_histories_break_no_flow_and_one_forged_gap_beyond_the_slack_does() -> None:
    rng, tested = np.random.default_rng(5), 0
    for _ in range(300):
        horizon, periods = int(rng.integers(2, 6)), int(rng.integers(2, 8))
        closed = history(rng, horizon, periods)
        recent = {t: closed[t] for t in closed if t > max(closed) - horizon}
        flow = flow_of(recent, horizon)
        assert flow is None or not flow.broken
        if flow is None:
            continue
        gap = max(recent) - flow.period
        now = recent[max(recent)]
        for forged, broken in ((flow.reported - flow.claimed, False), (flow.reported - flow.claimed + 1, True)):
            gaps, n = np.append(now.gaps, gap), np.append(now.n, forged)
            again = flow_of({**recent, max(recent): Closed(gaps, n, now.refused, now.late)}, horizon)
            assert again is not None and again.broken is (broken and gap < horizon)
            tested += broken
    assert tested > 150


def test_bounds_for_forgers_hold_the_honest_share() -> None:
    """Whatever value a tenth of the reports support, and if they support nothing."""
    scheme: Scheme = scheme_of("{name: a, range: {last: 5}, mechanism: oue}", ONCE)
    question = scheme.questions[0]
    channel, shares = question.channel, zipf(6)
    for forged in (*np.eye(6), np.zeros(6), np.ones(6)):
        seen = 0.9 * channel.support(shares) + 0.1 * forged
        estimate = (seen - channel.floor) / channel.gain  # type: ignore[union-attr]
        found = robust(estimate, estimate, estimate, channel, 0.1)
        assert (found["low"] <= shares + 1e-9).all() and (shares <= found["high"] + 1e-9).all()
        assert found["normalised"].sum() == pytest.approx(1) and (found["normalised"] >= 0).all()


def zipf(k: int) -> Floats:
    shares = 1 / np.arange(1, k + 1) ** 1.5
    return np.asarray(shares / shares.sum())


def reports(question: Question, n: int, shares: Floats, rng: np.random.Generator) -> Mask:
    """Which values each of n honest reports supports; of symbols, or of bits that are all true."""
    values = rng.choice(question.k, n, p=shares)
    if question.channel.exclusive:
        limits = question.channel.matrix.cumsum(axis=1)[values]
        symbols = (limits < rng.random(n)[:, None]).sum(axis=1).clip(max=question.k - 1)
        return np.asarray(np.arange(question.k) == symbols[:, None])
    flip = question.mechanism.one_report
    assert isinstance(flip, Flip)
    bits = rng.random((n, question.k)) < flip.q
    bits[np.arange(n), values] = rng.random(n) < flip.p
    return np.asarray(bits)


def counted(question: Question, bits: Mask) -> Answers:
    widths = np.bincount(bits.sum(axis=1), minlength=question.k + 1)
    return answers(question, len(bits), bits.sum(axis=0), widths)


def answers(question: Question, n: int, supports: Whole, widths: Whole) -> Answers:
    laws = width_laws(question)
    return Answers(n, supports, widths if len(laws) else widths[:0], question.channel, laws)


def honest(question: Question, n: int, shares: Floats, rng: np.random.Generator) -> Answers:
    """The same counts as of `reports`, but drawn at once: widths and supports each have their own law."""
    supports, laws = supported(question, rng.multinomial(n, shares), rng), width_laws(question)
    widths = np.zeros(0, dtype=np.int64) if question.channel.exclusive else rng.multinomial(n, laws[0])
    return answers(question, n, supports, widths)


def supported(question: Question, people: Whole, rng: np.random.Generator) -> Whole:
    """How many reports of so many people with each value support each value."""
    channel = question.channel
    if channel.exclusive:
        return np.asarray(sum(map(rng.multinomial, people, channel.matrix)))
    assert isinstance(channel, SupportChannel)
    return rng.binomial(people, channel.floor + channel.gain) + rng.binomial(people.sum() - people, channel.floor)
