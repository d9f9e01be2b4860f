"""Whether a device was there: what is published with `presence_epsilon` says no more about it than that."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.special import betaincinv

from analytics.windows import Window
from protocols.randomness import Keyring
from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.wire import ROW_REASONS, row_faults
from stream_app.counting import Statistics
from stream_app.counting.counters import Counts
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.faust_app.monitoring import PartitionState, StateCollector
from stream_app.finals import Final, NotCounted, Release, release
from stream_app.log.marks import Loss
from tests.helpers.collecting import collecting, small_survey
from tests.helpers.crowd import counts_of, scheme_of
from tests.helpers.frames import random_frame
from tests.helpers.published import build_histogram, build_mobility
from tests.stream_app.faust_app.test_agents import REPORTS, Partition, records
from tests.stream_app.worlds import SCHEME, Reports, Row, dense, scheme

CERTAIN = 1e-6  # how often the bounds of Clopper and Pearson may be wrong
CROWD = 60
Two = tuple[Counts, Counts]  # of two periods


def keyrings() -> Iterator[Keyring]:
    return (Keyring(number.to_bytes(16, "little")) for number in count())


def statistics(scheme: Scheme, n: dict[int, int], supports: Sequence[int]) -> Counts:
    """Reports by gap; the supports of all of them are in the row of the first gap, as only their sum is released."""
    gaps = sorted(n)
    N = np.zeros((len(gaps), scheme.questions[0].k), dtype=np.int64)
    N[0] = supports
    return {"a": Statistics(np.array(gaps, dtype=np.uint16), np.array([n[gap] for gap in gaps]), N)}


def publish(scheme: Scheme, counts: Two, keyring: Keyring) -> tuple[Release, Release]:
    """The releases of periods 0 and 1."""
    first = release(counts[0], scheme, 0, None, keyring)
    return first, release(counts[1], scheme, 1, first, keyring)


def bounds(hits: int, trials: int) -> tuple[float, float]:
    """What the chance of an event lies between, with near certainty (Clopper and Pearson)."""
    low = betaincinv(hits, trials - hits + 1, CERTAIN / 2) if hits else 0.0
    high = betaincinv(hits + 1, trials - hits, 1 - CERTAIN / 2) if hits < trials else 1.0
    return float(low), float(high)


def refuted(here: int, there: int, trials: int, epsilon: float) -> bool:
    """Whether an event that occurred so often cannot be as likely in both worlds as epsilon demands."""
    pairs = (here, there), (there, here), (trials - here, trials - there), (trials - there, trials - here)
    return any(bounds(a, trials)[0] > np.exp(epsilon) * bounds(b, trials)[1] for a, b in pairs)


# One device, there in period 0 or not, and there in period 1. The worlds differ in n[0, 2], n[1, 1], n[1, 2] (by the
# calendar: n[0, ever], n[1, none], n[1, ever]) and in what its report of period 0 supported.

GRR = scheme_of("{name: a, values: [x, y, z], mechanism: grr}", "eps: 1, horizon: 2, presence_epsilon: 1")
OUE = scheme_of("{name: a, range: {last: 4}, mechanism: oue}", "eps: 1, horizon: 2, presence_epsilon: 1")
UNITS = scheme_of("{name: a, values: [x, y, z], mechanism: grr}", "eps: 1, presence_epsilon: 1, visitors: calendar")
SUPPORTED = {GRR: [1, 0, 0], OUE: [1, 1, 1, 1, 1], UNITS: [1, 0, 0]}


def worlds(scheme: Scheme) -> tuple[Two, Two]:
    """The counts with the device in period 0, and without it."""
    k, own, cells = scheme.questions[0].k, np.array(SUPPORTED[scheme]), scheme.survey.visits.cells.tolist()
    others, (again, never) = np.full(k, CROWD // 2), (cells[0], cells[-1])
    there = (
        statistics(scheme, {never: CROWD + 1}, (others + own).tolist()),
        statistics(scheme, {again: 31, never: 30}, others.tolist()),
    )
    absent = (
        statistics(scheme, {never: CROWD}, others.tolist()),
        statistics(scheme, {again: 30, never: 31}, others.tolist()),
    )
    return there, absent


def evidence(scheme: Scheme, seen: tuple[Release, Release], there: Two, absent: Two) -> float:
    """The logarithm of how much likelier the releases are in one world than in the other: no test is stronger."""
    noise = scheme.presence
    assert noise is not None
    total = 0.0
    for shown, here, other in zip(seen, there, absent, strict=True):
        n, m = (world["a"].n @ (world["a"].gaps[:, None] == scheme.survey.visits.cells) for world in (here, other))
        total += float((np.abs(shown.n["a"] - m) - np.abs(shown.n["a"] - n)).sum()) / noise.reports_scale
        N, M = (world["a"].supports for world in (here, other))
        total += float((np.abs(shown.N["a"] - M) - np.abs(shown.N["a"] - N)).sum()) / noise.supports_scale("a")
    return total


def evidences(scheme: Scheme, trials: int) -> tuple[np.ndarray, np.ndarray]:
    """What is found with and without the device, for thousands of noise keys."""
    (there, absent), rings = worlds(scheme), keyrings()
    found = [
        [evidence(scheme, publish(scheme, world, next(rings)), there, absent) for world in (there, absent)]
        for _ in range(trials)
    ]
    here, gone = np.array(found).T
    return here, gone


@pytest.mark.parametrize(
    ("scheme", "trials", "smaller"),
    [
        pytest.param(GRR, 1000, 0.25, id="grr"),
        # bits share e2: they spend less in a single cell
        pytest.param(OUE, 2000, None, id="oue", marks=pytest.mark.long(part="statistics")),
        pytest.param(UNITS, 8000, 1 / 3, id="calendar", marks=pytest.mark.long(part="statistics")),
    ],
)
def test_with_and_without_one_device_nothing_is_more_than_e_to_the_epsilon_times_as_likely(
    scheme: Scheme, trials: int, smaller: float | None
) -> None:
    here, gone = evidences(scheme, trials)
    assert max(np.abs(here).max(), np.abs(gone).max()) <= 1 + 1e-9, "no release at all is likelier by more"
    found = [(int((here > limit).sum()), int((gone > limit).sum())) for limit in np.linspace(-0.95, 0.95, 9)]
    assert not any(refuted(*hits, trials, epsilon=1.0) for hits in found)
    if smaller is not None:
        assert any(refuted(*hits, trials, epsilon=smaller) for hits in found), "the test refutes a smaller budget"


# The noise.


def test_the_same_counts_have_the_same_noise_and_other_counts_have_another() -> None:
    counts, key = worlds(GRR)[0][0], Keyring(bytes(16))
    more = {"a": replace(counts["a"], N=counts["a"].N + 1)}
    one, two = (release(counts, GRR, 0, None, key) for _ in range(2))
    histograms = [build_histogram("final", GRR, 0, released).model_dump_json() for released in (one, two)]
    reports = [build_mobility(GRR, 0, {0: released}).model_dump_json() for released in (one, two)]
    assert histograms[0] == histograms[1] and reports[0] == reports[1]
    assert (one.n["a"] != release(more, GRR, 0, None, key).n["a"]).any(), "n is the same, but not its noise"
    assert (one.n["a"] != release(counts, GRR, 1, None, key).n["a"]).any(), "nor in another period"


def test_cells_have_the_noise_that_their_scales_say() -> None:
    noise, counts = GRR.presence, worlds(GRR)[0][0]
    assert noise is not None
    found = [release(counts, GRR, 0, None, ring) for ring, _ in zip(keyrings(), range(2000), strict=False)]
    n = np.array([r.n["a"] for r in found]) - dense(counts["a"], 2)[0]
    N = np.array([r.N["a"] for r in found]) - counts["a"].supports
    for drawn, scale in ((n, noise.reports_scale), (N, noise.supports_scale("a"))):
        alpha = np.exp(-1 / scale)
        expected = np.sqrt(2 * alpha) / (1 - alpha)
        assert abs(drawn.mean()) < 5 * expected / np.sqrt(drawn.size)
        assert drawn.std() == pytest.approx(expected, rel=0.06)
        assert np.mean(drawn == 0) == pytest.approx((1 - alpha) / (1 + alpha), abs=0.03)
    correlation = np.corrcoef(np.hstack([n, N]).T)
    assert np.abs(correlation - np.eye(5)).max() < 0.12, "each cell has noise of its own"


# What is published.


@pytest.mark.parametrize(
    ("attribute", "terms", "people"),
    [
        ("values: [x, y, z], mechanism: grr", "eps: 1, presence_epsilon: 1, horizon: 2", 1000),
        ("range: {last: 9}, mechanism: oue", "eps: 1, presence_epsilon: 2", 1000),
        ("range: {last: 5}, mechanism: geometric", "eps: 1, presence_epsilon: 1, horizon: 7", 2000),
        ("values: [x, y, z], mechanism: grr", "eps: 1, presence_epsilon: 0.1, horizon: 2", 60),
        ("range: {last: 9}, mechanism: l-osue", "eps_inf: 3, eps_1: 2, presence_epsilon: 1", 5000),
    ],
)
def test_published_intervals_hold_the_truth(attribute: str, terms: str, people: int) -> None:
    scheme = scheme_of(f"{{name: a, {attribute}}}", terms)
    k, horizon = scheme.questions[0].k, scheme.survey.horizon
    weights = np.arange(k, 0, -1.0) ** 2
    values = np.repeat(np.arange(k), np.round(weights / weights.sum() * people).astype(int))
    truth, gaps = np.bincount(values, minlength=k) / len(values), np.arange(len(values)) % horizon
    held = []
    for number, keyring in zip(range(max(60, 600 // k)), keyrings(), strict=False):
        N, n = counts_of(scheme, "a", values, gaps, seed=number)
        counts = {"a": Statistics(np.arange(1, horizon + 1, dtype=np.uint16), n, N)}
        released = release(counts, scheme, 0, None, keyring)
        shown = build_histogram("final", scheme, 0, released).attribute("a")
        report = build_mobility(scheme, 0, {0: released}).window(0, 0)
        if shown.low is None or shown.high is None:  # as far as is known nobody reported: every share is possible
            held += [True] * k
            continue
        held += ((np.array(shown.low) <= truth) & (truth <= np.array(shown.high))).tolist()
        shares = report.attribute("a").values
        assert shares and shares.share.low == pytest.approx(shown.low), "histogram and report say the same"
        assert report.visitors is not None and report.visitors.value == shown.n
    assert np.mean(held) > 0.95 - 4 * np.sqrt(0.05 * 0.95 / len(held))


def walkers(scheme: Scheme, periods: int, people: int, seed: int) -> list[Counts]:
    """Devices that come and go at random, with half of the reports supporting the first value."""
    random, horizon = np.random.default_rng(seed), scheme.survey.horizon
    last, found = np.full(people, -horizon), []
    for period in range(periods):
        there = np.flatnonzero(random.random(people) < 0.3)
        n = np.bincount(np.minimum(period - last[there], horizon) - 1, minlength=horizon)
        last[there] = period
        N = np.stack([n // 2, n - n // 2], axis=1)
        found.append({"a": Statistics(np.arange(1, horizon + 1, dtype=np.uint16), n, N)})
    return found


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_all_published_numbers_of_visitors_agree(epsilon: float) -> None:
    scheme = scheme_of("{name: a, values: [x, y]}", f"eps: 1, horizon: 7, presence_epsilon: {epsilon}")
    counts = walkers(scheme, 20, 300, seed=3)
    closed: dict[int, Release] = {}
    errors = []
    for period, counted in enumerate(counts):
        closed[period] = release(counted, scheme, period, closed.get(period - 1), Keyring(bytes(16)))
        kept = {t: closed[t] for t in range(max(0, period - 6), period + 1)}
        report = build_mobility(scheme, period, kept)
        day = report.window(period, period)
        assert day.visitors and day.new and day.returning
        assert day.visitors.value == build_histogram("final", scheme, period, closed[period]).n
        assert day.visitors.value == (day.new.value or 0) + (day.returning.value or 0)
        assert sum(gap.visitors.value or 0 for gap in day.gaps) == day.returning.value
        cells = {Window(c.first, c.last): c.visitors.value for c in report.triangle if c.visitors}
        assert cells[Window(period, period)] == day.visitors.value
        runs = sorted(cells, key=lambda window: window.length)
        assert all(cells[a] <= cells[b] for a, b in pairwise(runs)), "a longer window has no fewer"
        exact, plain = (
            [int(np.triu(np.array(n)[w.first : w.last + 1]).sum()) for w in runs]
            for n in ([c["a"].n for c in counts], [closed[t].n["a"] for t in range(period + 1)])
        )
        agreed = [cells[w] for w in runs]
        errors.append([np.abs(np.subtract(found, exact)).sum() for found in (agreed, plain)])
    of_agreed, of_plain = np.sum(errors, axis=0)
    assert of_agreed < of_plain, "and they are nearer to the truth than plain sums"


@pytest.mark.parametrize("solution", ["smp", "spl"])
def test_a_report_is_counted_once_however_many_attributes_it_answers(solution: str) -> None:
    """Under smp each attribute has reports and noise of its own, otherwise all have the same."""
    attributes = "{name: a, values: [x, y]}, {name: b, range: {last: 39}, mechanism: oue}"
    scheme = scheme_of(attributes, f"eps: 2, horizon: 3, presence_epsilon: 1, solution: {solution}")
    gaps = np.array([1, 3], dtype=np.uint16)
    counts = {q.name: Statistics(gaps, np.array([400, 300]), np.full((2, q.k), 90)) for q in scheme.questions}
    released = release(counts, scheme, 0, None, Keyring(bytes(16)))
    shown = build_histogram("final", scheme, 0, released)
    report = build_mobility(scheme, 0, {0: released}).window(0, 0)
    sizes = [attribute.n or 0 for attribute in shown.attributes]
    assert report.visitors is not None and report.visitors.value == shown.n == released.agreed.cells.sum()
    assert [attribute.n for attribute in report.attributes] == sizes
    assert scheme.presence is not None
    largest = scheme.presence.largest
    if solution == "smp":
        assert shown.n == sum(sizes) and (released.n["a"] != released.n["b"]).any()
        assert largest["a"] == 1 < largest["b"] < 40
    else:
        assert [shown.n] * 2 == sizes and (released.n["a"] == released.n["b"]).all()
        assert 1 < largest["a"] == largest["b"] < 41


def test_where_devices_take_turns_reports_without_an_answer_have_noise_of_their_own() -> None:
    scheme = scheme_of("{name: a, values: [x, y]}", "eps: 2, horizon: 3, presence_epsilon: 1, one_in: 2")
    gaps, n = np.array([1, 3], dtype=np.uint16), np.array([400, 300])
    counts = {
        "a": Statistics(gaps, n, np.array([[300, 100], [200, 100]])),
        PRESENCE_ONLY: Statistics(gaps, n, np.zeros((2, 0), dtype=np.int64)),
    }
    released = release(counts, scheme, 0, None, Keyring(bytes(16)))
    assert (released.n["a"] != released.n[PRESENCE_ONLY]).any()
    shown = build_histogram("final", scheme, 0, released)
    report = build_mobility(scheme, 0, {0: released}).window(0, 0)
    answers = shown.attribute("a")
    assert shown.presence_only is not None and answers.n is not None and report.visitors is not None
    assert list(shown.presence_only.n) == released.n[PRESENCE_ONLY].tolist()
    assert report.visitors.value == shown.n == answers.n + sum(shown.presence_only.n)
    kept = Final.decode(Final.of(scheme, 0, released, NotCounted()).encode()).counts
    again, once = (build_mobility(scheme, 0, {0: found}).model_dump_json() for found in (kept, released))
    assert again == once


# Counting where presence has noise: late rows, reports that support too many values, and what metrics show.
NOISED = scheme("presence_epsilon: 1,")


WIDE = "{name: a, range: {last: 99}, mechanism: oue}"


@pytest.mark.parametrize(
    ("survey", "most"),
    [
        (scheme_of(WIDE, "eps: 1, presence_epsilon: 1"), 71),
        (scheme_of(WIDE + ", {name: b, values: [x, y], mechanism: grr}", "eps: 1, presence_epsilon: 1"), 71),
        (
            scheme_of(WIDE + ", " + WIDE.replace("name: a", "name: b"), "eps: 2, presence_epsilon: 1, solution: spl"),
            115,
        ),
    ],
    ids=["alone", "one of two", "both"],
)
def test_a_report_that_supports_more_values_than_the_noise_covers_is_refused(survey: Scheme, most: int) -> None:
    """Of a report that answers both attributes, their bits count together."""
    assert survey.presence is not None and survey.presence.largest["a"] == most
    frame = random_frame(survey, 2)
    asked = ["a"] if survey.discloses else list(frame.answers)
    share, bits = divmod(most, len(asked))

    def answering(*numbers: int) -> list[str | None]:
        columns = {
            name: np.packbits(np.arange(104) < number, bitorder="little")[None, :].repeat(2, axis=0)
            for name, number in zip(asked, numbers, strict=True)
        }
        changed = replace(frame, answers=columns)
        codes = row_faults(changed, survey, 0, 1)
        return [None if code == 0 else ROW_REASONS[code - 1] for code in codes]

    fine = [share + bits, *[share] * (len(asked) - 1)]
    assert answering(*fine) == [None, None]
    assert answering(fine[0] + 1, *fine[1:]) == ["too-many-bits"] * 2


@pytest.mark.parametrize(("survey", "shown"), [(SCHEME, True), (NOISED, False)], ids=["exact", "noised"])
def test_metrics_count_no_reports_of_a_survey_with_noise_on_presence(
    survey: Scheme, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = Partition()
    partition.registry.published.append(survey)
    partition.receive(records(Reports(0, (Row(1), Row(5))), of=survey))
    assert partition.outcomes[survey.survey.id, "counted"] == (2 if shown else 0)
    assert partition.is_private is not shown, "the flush is timed, or not"
    monkeypatch.setattr(PartitionCounter, "lost", {"s": (Loss(0, 0, 7),)})
    state = PartitionState(REPORTS, partition.counter, 0, None, False)
    families = StateCollector(lambda: [state], {"s": survey}.get).collect()
    samples = [sample for family in families for sample in family.samples if sample.labels.get("survey") == "s"]
    assert bool([sample for sample in samples if sample.name in ("hearsay_tokens", "hearsay_open_periods")]) is shown
    (lost,) = (sample.value for sample in samples if sample.name == "hearsay_lost_reports")
    assert lost == (7 if shown else 1)


def test_how_often_reports_come_late_changes_nothing_that_is_published(tmp_path: Path) -> None:
    """The noise covers one report of a device. Late ones may come any number of times, also after they were counted."""
    finals = []
    for repeats in (0, 1, 50):
        of = small_survey(extra="presence_epsilon: 1,")
        with collecting(tmp_path / str(repeats), of) as (collection,):
            collection.report(0, [30, 20, 10])
            collection.close(0)
            collection.report(1, [30, 20, 10])
            for _ in range(repeats):
                collection.report(0, [1, 0, 0])
            collection.close(1)
            finals.append([(message.key, message.value) for _, message in collection.published()])
    assert finals[0] and finals[0] == finals[1] == finals[2]
