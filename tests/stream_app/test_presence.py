"""Whether a device was there: what is published with `presence_epsilon` says no more about it than that."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import betaincinv

from analytics.windows import Span, Window, spans_of
from protocols.arrays import Whole
from protocols.randomness import Keyring
from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.survey import Survey
from protocols.survey.released import Released
from protocols.survey_text import parse_survey
from protocols.wire import ROW_REASONS, row_faults
from stream_app.counting import Statistics
from stream_app.counting.counters import Counts
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.faust_app.monitoring import PartitionState, StateCollector
from stream_app.finals import Final, Noise
from stream_app.log.marks import Loss
from stream_app.merging.survey import Frozen
from tests.helpers.collecting import collecting, small_survey
from tests.helpers.crowd import counts_of, scheme_of
from tests.helpers.frames import random_frame
from tests.helpers.one_device import NoNoise, Number, final_after
from tests.helpers.published import finals_of
from tests.stream_app.faust_app.test_agents import REPORTS, Partition, records
from tests.stream_app.worlds import SCHEME, Reports, Row, scheme
from views.past import Past
from views.results import HISTOGRAMS, MOBILITY

CERTAIN = 1e-5  # how often the bounds of Clopper and Pearson may be wrong; the keys of tests are fixed
CROWD = 60
World = Sequence[Counts]  # of consecutive periods
Hits = dict[Any, tuple[int, int]]  # by event: with a device, and without it


def keyrings() -> Iterator[Keyring]:
    return (Keyring(number.to_bytes(16, "little")) for number in count())


def statistics(scheme: Scheme, n: dict[int, int], supports: Whole) -> Counts:
    """Reports by gap or flags; the supports of all of them are in the first row, as only their sum is released."""
    gaps = sorted(n)
    N = np.zeros((len(gaps), scheme.questions[0].k), dtype=np.int64)
    N[0] = supports
    return {"a": counted(scheme, "a", np.array(gaps), np.array([n[gap] for gap in gaps]), N)}


def counted(scheme: Scheme, name: str, gaps: Whole, n: Whole, N: Whole) -> Statistics:
    """Counts as counters have them; how many bits reports had is left out."""
    widths = np.zeros(scheme.question(name).mechanism.encoding.widths, dtype=np.int64)
    return Statistics(gaps.astype(np.uint16), n, N, widths)


def bounds(hits: int, trials: int) -> tuple[float, float]:
    """What the chance of an event lies between, with near certainty (Clopper and Pearson)."""
    low = betaincinv(hits, trials - hits + 1, CERTAIN / 2) if hits else 0.0
    high = betaincinv(hits + 1, trials - hits, 1 - CERTAIN / 2) if hits < trials else 1.0
    return float(low), float(high)


def refuted(here: int, there: int, trials: int, epsilon: float) -> bool:
    """Whether an event that occurred so often cannot be as likely in both worlds as epsilon demands."""
    pairs = (here, there), (there, here), (trials - here, trials - there), (trials - there, trials - here)
    return any(bounds(a, trials)[0] > np.exp(epsilon) * bounds(b, trials)[1] for a, b in pairs)


# One device, there in period 0 or not, and there in period 1. The worlds differ in n[0], in the new devices of both
# periods (days) and in what its report of period 0 supported; by the calendar also in the visitors of the first day.

ONE_VALUE = "{name: a, values: [x, y, z], mechanism: grr}"
BITS = "{name: a, range: {last: 4}, mechanism: oue}"


def by_gaps(epsilon: int, attribute: str = ONE_VALUE) -> Scheme:
    return scheme_of(attribute, f"eps: 1, horizon: 2, presence_epsilon: {epsilon}")


def by_days(epsilon: int) -> Scheme:
    """Half days: the first day has one period, the second one two."""
    terms = f"period: 12h, eps: 1, presence_epsilon: {epsilon}, visitors: {{units: [day, ever]}}"
    return Scheme(parse_survey(f"{{id: s, start: 2026-01-05T12:00:00Z, {terms}, attributes: [{ONE_VALUE}]}}"))


GRR = by_gaps(1)


def worlds(scheme: Scheme) -> tuple[World, World]:
    """The counts with the device in period 0, and without it."""
    k = scheme.questions[0].k
    others = np.full(k, CROWD // 2)
    own = np.ones(k) if k == 5 else np.eye(k)[0]  # all bits, or one value
    visits = scheme.survey.visits
    again, never = (int(visits.of(np.array([last]), 1)[0]) for last in (0, -1))
    there = [
        statistics(scheme, {never: CROWD + 1}, others + own),
        statistics(scheme, {again: 31, never: 30}, others),
    ]
    absent = [
        statistics(scheme, {never: CROWD}, others),
        statistics(scheme, {again: 30, never: 31}, others),
    ]
    if scheme.survey.visitors is None:
        return there, absent
    nobody = statistics(scheme, {never: 0}, 0 * others)
    return [*there, nobody], [*absent, nobody]


@dataclass
class Publisher:
    """Makes finals as the merge does, and reads every number in them that has noise."""

    scheme: Scheme
    made: list[Final]

    def release(self, world: World, keyring: Keyring) -> dict[Number, int]:
        """What is released of some periods."""
        before: Frozen | None = None
        self.made.clear()
        for period, counts in enumerate(world):
            before = final_after(self.scheme, period, counts, before, keyring)
        found: dict[Number, int] = {}
        for final in self.made:
            found |= numbers_of(final)
        return found

    def exact(self, world: World, monkeypatch: pytest.MonkeyPatch) -> NoNoise:
        """The numbers without noise, and the scales of their noise."""
        assert self.scheme.presence is not None
        noise = NoNoise(self.scheme.presence)
        with monkeypatch.context() as patched:
            patched.setattr("stream_app.merging.survey.Noise", noise)
            self.release(world, Keyring(bytes(16)))
        return noise


def numbers_of(final: Final) -> dict[Number, int]:
    """The released numbers of a final."""
    found: dict[Number, int | None] = {}
    for window in final.windows or ():
        at = Window(window.first, final.period)
        if window.kind != "ever":
            what = "reports" if window.kind == "period" else "visitors"
            found[Number(f"{what} of {window.kind}", at, 0)] = window.visitors
            found[Number(f"new of {window.kind}", at, 0)] = window.new
    for name, table in final.counts.items():
        at = Window(final.period, final.period)
        for place, supports in enumerate(table.supports.tolist()):
            found[Number(f"supports of period: {name}", at, place)] = supports
    return {number: value for number, value in found.items() if value is not None}


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> Callable[[Scheme], Publisher]:
    made: list[Final] = []

    def kept(final: Final) -> bytes:
        made.append(final)
        return b""

    # Bytes of finals, and windows by the calendar, take most of the time.
    monkeypatch.setattr(Final, "encode", kept)
    spans: dict[tuple[int, int], list[Span]] = {}

    def known_spans(survey: Survey, period: int) -> list[Span]:
        key = id(survey), period
        if key not in spans:
            spans[key] = spans_of(survey, period)
        return spans[key]

    monkeypatch.setattr("stream_app.finals.windows.spans_of", known_spans)
    return lambda scheme: Publisher(scheme, made)


def hits_of(publisher: Publisher, both: tuple[World, World], exact: Sequence[NoNoise], trials: int) -> Hits:
    """How often each event occurs with the device, and without it, for so many noise keys."""
    there, absent = exact
    rings = keyrings()
    worlds_seen = []
    for world in both:
        seen = [publisher.release(world, next(rings)) for _ in range(trials)]
        worlds_seen.append(events(seen, there, absent))
    here, gone = worlds_seen
    return {event: (here[event], gone[event]) for event in here}


TOO_MUCH = "evidence", "more than epsilon"


def events(seen: Sequence[dict[Number, int]], there: NoNoise, absent: NoNoise) -> dict[Any, int]:
    """How often each event occurs: each number is there, and is at least that of either world; much evidence."""
    found: dict[Any, int] = {}
    for number, one in there.exact.items():
        shown = np.array([release[number] for release in seen if number in release])
        found[number, "is there"] = len(shown)
        for limit in {one, absent.exact[number]}:
            found[number, limit] = int((shown >= limit).sum())
    evidence = np.array([evidence_of(release, there, absent) for release in seen])
    for share in np.linspace(-0.95, 0.95, 9):
        found["evidence", share] = int((evidence > share * there.law.epsilon).sum())
    found[TOO_MUCH] = int((abs(evidence) > there.law.epsilon + 1e-9).sum())
    return found


def evidence_of(release: dict[Number, int], there: NoNoise, absent: NoNoise) -> float:
    """The logarithm of how much likelier it is in one world than in the other: no test is stronger."""
    total = 0.0
    for number, shown in release.items():
        nearer = abs(shown - absent.exact[number]) - abs(shown - there.exact[number])
        total += nearer / there.scales[number]
    return total


LONG = pytest.mark.long(part="statistics")


@pytest.mark.parametrize(
    ("scheme", "trials", "smaller"),
    [
        pytest.param(by_gaps(2), 160, 0.5, id="grr"),
        pytest.param(by_days(2), 160, 0.25, id="calendar"),
        # bits share the budget of answers: they spend less in a single cell
        pytest.param(by_gaps(1, BITS), 2000, None, id="oue", marks=LONG),
        pytest.param(by_gaps(1), 3000, 0.5, id="grr, often", marks=LONG),
        pytest.param(by_days(1), 3000, 0.25, id="calendar, often", marks=LONG),
    ],
)
def test_with_and_without_one_device_nothing_is_more_than_e_to_the_epsilon_times_as_likely(
    scheme: Scheme,
    trials: int,
    smaller: float | None,
    publisher: Callable[[Scheme], Publisher],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = worlds(scheme)
    epsilon = scheme.survey.presence_epsilon
    assert epsilon is not None
    exact = [publisher(scheme).exact(world, monkeypatch) for world in both]
    hits = hits_of(publisher(scheme), both, exact, trials)
    assert hits[TOO_MUCH] == (0, 0)
    assert not [event for event, found in hits.items() if refuted(*found, trials, epsilon)]
    if smaller is not None:
        assert any(refuted(*found, trials, smaller) for found in hits.values()), "a smaller budget is refuted"


NUMBERS_ALONE = Released(("period",), (), ())


def half_the_scale(patched: pytest.MonkeyPatch) -> None:
    rightly = Noise.on
    patched.setattr(
        Noise, "on", lambda noise, series, window, exact, scale: rightly(noise, series, window, exact, scale / 2)
    )


def supports_without_noise(patched: pytest.MonkeyPatch) -> None:
    rightly = Noise.on

    def on(noise: Noise, series: str, window: Window, exact: Any, scale: float) -> Whole:
        if series.startswith("supports"):
            return np.asarray(exact, dtype=np.int64)
        return rightly(noise, series, window, exact, scale)

    patched.setattr(Noise, "on", on)


def threshold_on_exact_numbers(patched: pytest.MonkeyPatch) -> None:
    from stream_app.finals import noised_period

    def released(scheme: Scheme, period: int, counts: Counts, noise: Noise) -> Counts:
        enough = counts["a"].total > CROWD
        return noised_period(scheme, period, counts, noise) if enough else {}

    patched.setattr("stream_app.merging.survey.noised_period", released)


@pytest.mark.parametrize(
    ("broken", "released", "trials"),
    [
        (half_the_scale, NUMBERS_ALONE, 220),
        (supports_without_noise, None, 60),
        (threshold_on_exact_numbers, None, 60),
    ],
)
def test_the_same_test_finds_noise_that_is_not_enough(
    broken: Callable[[pytest.MonkeyPatch], None],
    released: Released | None,
    trials: int,
    publisher: Callable[[Scheme], Publisher],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if released is not None:
        monkeypatch.setattr(Survey, "released", property(lambda survey: released))
    own = by_gaps(1)
    there, absent = worlds(own)
    both = there[:1], absent[:1]
    exact = [publisher(own).exact(world, monkeypatch) for world in both]
    rightly = hits_of(publisher(own), both, exact, trials)
    assert not any(refuted(*hits, trials, 1) for hits in rightly.values())
    broken(monkeypatch)
    wrongly = hits_of(publisher(own), both, exact, trials)
    assert any(refuted(*hits, trials, 1) for hits in wrongly.values())


# The noise.


def test_the_same_counts_have_the_same_noise_and_other_counts_have_another() -> None:
    (counts, *_), _ = worlds(GRR)
    more = {"a": replace(counts["a"], n=counts["a"].n + 1)}
    one, again = (published(GRR, counts, bytes(16)) for _ in range(2))
    assert one == again
    noise = [noise_of(GRR, 0, counts, bytes(16))]
    noise.append(noise_of(GRR, 0, more, bytes(16)))
    noise.append(noise_of(GRR, 1, counts, bytes(16)))
    noise.append(noise_of(GRR, 0, counts, bytes([1] * 16)))
    assert len({tuple(drawn) for drawn in noise}) == 4, "other counts, another period, and another key"
    assert noise[0][0] != noise[0][1], "n and new of a period have the same exact number, and noise of their own"


def published(scheme: Scheme, counts: Counts, key: bytes) -> tuple[str, str]:
    """What readers get of a period: a histogram and a report."""
    past = Past(scheme, finals_of(scheme, {0: counts}, key))
    report = MOBILITY.make(past)
    assert report is not None
    return HISTOGRAMS.make(past).model_dump_json(), report.model_dump_json()


def noise_of(scheme: Scheme, period: int, counts: Counts, key: bytes) -> list[int]:
    """The noise of the numbers of devices, and then of the supports."""
    final = finals_of(scheme, {period: counts}, key)[-1]
    assert final.windows is not None
    (alone,) = final.windows
    assert alone.visitors is not None and alone.new is not None
    total = counts["a"].total
    of_numbers = [alone.visitors - total, alone.new - int(counts["a"].n[-1])]
    of_supports = final.counts["a"].supports - counts["a"].supports
    return [*of_numbers, *of_supports.tolist()]


def test_numbers_have_the_noise_that_their_scales_say() -> None:
    noise = GRR.presence
    assert noise is not None
    exact = np.arange(5)
    scales = sorted(noise.scales.values())
    window = Window(3, 9)
    drawn = []
    for keyring in islice(keyrings(), 1000):
        own = Noise(GRR, keyring)
        drawn.append(np.concatenate([own.on("n", window, exact, scale) - exact for scale in scales]))
    found = np.array(drawn)
    for place, scale in enumerate(scales):
        numbers = found[:, 5 * place : 5 * place + 5]
        alpha = np.exp(-1 / scale)
        expected = np.sqrt(2 * alpha) / (1 - alpha)
        assert abs(numbers.mean()) < 5 * expected / np.sqrt(numbers.size)
        assert numbers.std() == pytest.approx(expected, rel=0.06)
        assert np.mean(numbers == 0) == pytest.approx((1 - alpha) / (1 + alpha), abs=0.03)
        correlation = np.corrcoef(numbers.T)
        assert np.abs(correlation - np.eye(5)).max() < 0.12, "each number has noise of its own"


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
    k = scheme.questions[0].k
    horizon = scheme.survey.horizon
    weights = np.arange(k, 0, -1.0) ** 2
    values = np.repeat(np.arange(k), np.round(weights / weights.sum() * people).astype(int))
    truth = np.bincount(values, minlength=k) / len(values)
    gaps = np.arange(len(values)) % horizon
    shares_held = []
    numbers_held = []
    for number in range(max(60, 300 // k)):
        N, n = counts_of(scheme, "a", values, gaps, seed=number)
        counts = {"a": counted(scheme, "a", np.arange(1, horizon + 1), n, N)}
        past = Past(scheme, finals_of(scheme, {0: counts}, number.to_bytes(16, "little")))
        shown = HISTOGRAMS.make(past).attribute("a")
        report = MOBILITY.make(past)
        assert report is not None
        window = report.window(0, 0)
        assert window.visitors is not None and window.visitors.low is not None and window.visitors.high is not None
        numbers_held.append(window.visitors.low <= len(values) <= window.visitors.high)
        if shown.low is None or shown.high is None:  # as far as is known nobody reported: every share is possible
            shares_held += [True] * k
            continue
        shares_held += ((np.array(shown.low) <= truth) & (truth <= np.array(shown.high))).tolist()
        shares = window.attribute("a").values
        assert shares and shares.share.low == pytest.approx(shown.low), "histogram and report say the same"
        assert window.visitors.value == shown.n
    for held in (shares_held, numbers_held):
        assert np.mean(held) > 0.95 - 4 * np.sqrt(0.05 * 0.95 / len(held))


@pytest.mark.parametrize("solution", ["smp", "spl"])
def test_a_report_is_counted_once_however_many_attributes_it_answers(solution: str) -> None:
    """Under smp each attribute has reports and noise of its own, and all reports have noise of theirs."""
    attributes = "{name: a, values: [x, y]}, {name: b, range: {last: 39}, mechanism: oue}"
    scheme = scheme_of(attributes, f"eps: 2, horizon: 3, presence_epsilon: 1, solution: {solution}")
    gaps = np.array([1, 3], dtype=np.uint16)
    n = np.array([400, 300])
    counts = {q.name: counted(scheme, q.name, gaps, n, np.full((2, q.k), 90)) for q in scheme.questions}
    past = Past(scheme, finals_of(scheme, {0: counts}))
    shown = HISTOGRAMS.make(past)
    made = MOBILITY.make(past)
    assert made is not None and scheme.presence is not None
    report = made.window(0, 0)
    sizes = [attribute.n for attribute in shown.attributes]
    assert report.visitors is not None and report.visitors.value == shown.n
    assert [attribute.n for attribute in report.attributes] == sizes
    largest = scheme.presence.largest
    if solution == "smp":
        assert sizes[0] != sizes[1] and shown.n == pytest.approx(1400, abs=200)
        assert largest["a"] == 1 < largest["b"] < 40
    else:
        assert [shown.n] * 2 == sizes and shown.n == pytest.approx(700, abs=200)
        assert 1 < largest["a"] == largest["b"] < 41


def test_where_devices_take_turns_reports_without_an_answer_have_noise_of_their_own() -> None:
    scheme = scheme_of("{name: a, values: [x, y]}", "eps: 2, horizon: 3, presence_epsilon: 1, one_in: 2")
    gaps = np.array([1, 3], dtype=np.uint16)
    n = np.array([400, 300])
    counts = {
        "a": Statistics(gaps, n, np.array([[300, 100], [200, 100]])),
        PRESENCE_ONLY: Statistics(gaps, n, np.zeros((2, 0), dtype=np.int64)),
    }
    (final,) = finals_of(scheme, {0: counts})
    assert final.counts["a"].total != final.counts[PRESENCE_ONLY].total
    shown = HISTOGRAMS.make(Past(scheme, [final]))
    assert shown.presence_only is not None
    assert list(shown.presence_only.n) == final.counts[PRESENCE_ONLY].n.tolist()
    assert final.windows is not None and shown.n == final.windows[0].visitors


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
