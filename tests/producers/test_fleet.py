"""A fleet reports every device once per period, whatever happens to it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import redis

from memo_store.presence import FleetPresence
from memo_store.survey_memos import SurveyMemos
from producers.simulation import Simulation
from protocols.errors import DeliveryError, ScenarioError, Stopped
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from tests.helpers.dying import EVERY, Killed, Steps
from tests.helpers.sinks import KeepingSink, rows_by_token, tokens_of
from tests.producers.populations import CLOCK_KEY, COLOURS, KEYRING, PLANS, Alternating, counted, scheme

SPL = "solution: spl,"
FAKES = "solution: rs+fd,"
ONCE = "eps: 1, clock: source"
HASHED = scheme(SPL, mechanism="loloha")  # here, and in buckets, a value's cell depends on the device
BUCKETS = scheme(SPL, "eps_inf: 2, clock: source", mechanism="dbitflip")
TURNS = (scheme("one_in: 3,", ONCE), scheme(f"one_in: 3, {SPL}", ONCE))
MakeFleet = Callable[..., Simulation]


@pytest.fixture
def fleet(open_memos: Callable[[Respondent], SurveyMemos]) -> MakeFleet:
    """Make fleets that share a memo store, each as a new process would."""

    def make(survey: Scheme, sink: KeepingSink, world: Alternating | None = None) -> Simulation:
        return Simulation(open_memos(Respondent(survey, KEYRING)), sink, world or Alternating(), CLOCK_KEY)

    return make


@pytest.mark.parametrize(
    "survey",
    [scheme(), scheme(SPL), scheme(FAKES), scheme(budgets=ONCE), scheme(SPL, ONCE), HASHED, BUCKETS, *TURNS],
    ids=["smp", "spl", "rs+fd", "one-shot smp", "one-shot spl", "hashed", "buckets", "smp in turns", "spl in turns"],
)
def test_each_device_present_is_reported_once_with_its_gap_and_answers(fleet: MakeFleet, survey: Scheme) -> None:
    sink, world = KeepingSink(), Alternating(60)
    fleet(survey, sink, world).run()
    respondent = Respondent(survey, KEYRING)
    rows = rows_by_token(sink.frames(survey))
    expected = 0
    for period in range(world.periods):
        day = world.presences(period)
        sampled = respondent.sampled(day.devices)
        for i, token in enumerate(respondent.tokens(day.devices, period).tolist()):
            one = day.devices[i : i + 1]
            gap, answers = rows[period, token]
            assert gap == world.gap(int(one[0]), period, 7)
            asked = [survey.questions[sampled[i]]] if survey.discloses else list(survey.questions)
            if survey.takes_turns and respondent.places(one)[0] != period % 3:
                asked = []
            for question, (name, answer) in zip(asked, answers, strict=True):
                value = day.values[question.name][i : i + 1]
                if survey.survey.longitudinal:
                    memo = respondent.memoise(question, one, respondent.cells(question, one, value))
                    alone = respondent.report(question, one, period, respondent.listed(question, memo))
                else:
                    alone = respondent.answer_once(question, one, period, value)
                assert (name, answer) == (question.name, alone[0].tobytes())
            expected += 1
    assert len(rows) == expected == sum(len(f) for f in sink.frames(survey))


def test_a_period_is_closed_after_its_reports_in_every_partition(fleet: MakeFleet) -> None:
    survey, sink = scheme(), KeepingSink(partitions=2)
    fleet(survey, sink).run(range(3))
    assert [(p, c.through) for p, c in sink.clocks(CLOCK_KEY)] == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    closed = -1
    for record in sink.records:
        one = KeepingSink(2, records=[record])
        assert all(frame.period > closed for frame in one.frames(survey)), "a report after its period was closed"
        closed = max([closed, *(clock.through for _, clock in one.clocks(CLOCK_KEY))])


def test_grace_keeps_a_period_open_until_the_scenario_is_over(fleet: MakeFleet) -> None:
    survey, sink = scheme("grace: 36h,"), KeepingSink(partitions=1)
    fleet(survey, sink).run(range(4))
    assert [clock.through for _, clock in sink.clocks(CLOCK_KEY)] == [0, 1]
    fleet(survey, sink).run([4])
    assert [clock.through for _, clock in sink.clocks(CLOCK_KEY)] == [0, 1, 1, 4]


def test_a_run_that_begins_later_closes_what_is_over_first(fleet: MakeFleet) -> None:
    sink = KeepingSink(partitions=1)
    fleet(scheme(), sink).run([3])
    assert sink.clocks(CLOCK_KEY)[0][1].through == 2
    assert sink.records[0][1].endswith("clock+json")


def test_running_a_period_again_sends_nothing_more(fleet: MakeFleet) -> None:
    survey, sink = scheme(), KeepingSink()
    first = fleet(survey, sink).run([0])
    again = fleet(survey, sink).run([0])
    assert first[0].sent == first[0].present and first[0].repeats == 0
    assert again[0].sent == 0 and again[0].repeats == again[0].present
    assert len(tokens_of(sink.frames(survey), 0)) == first[0].present


@pytest.mark.parametrize("fail_after", [0, 3, 9, 14])
def test_what_was_not_confirmed_is_reported_again_bit_for_bit(
    fleet: MakeFleet, redis_url: str, fail_after: int
) -> None:
    """Failure would look like: a token missing, or one token with two different reports."""
    survey, world = scheme(SPL), Alternating(500, 3)
    sink = KeepingSink(fail_after=fail_after)
    with pytest.raises(DeliveryError, match=r"period . of survey 'buttons'"):
        fleet(survey, sink, world).run()
    again, whole = KeepingSink(), KeepingSink()
    fleet(survey, again, world).run()
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    fleet(survey, whole, world).run()
    for arrived in (sink.records, sink.records[: sink.confirmed]):
        both = KeepingSink(records=[*arrived, *again.records])
        assert rows_by_token(both.frames(survey)) == rows_by_token(whole.frames(survey))


def test_a_wish_to_stop_is_granted_after_a_portion_and_the_rest_follows_later(
    fleet: MakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("producers.reporting.ROWS_PER_FRAME", 1)
    survey, sink, world = scheme(SPL), KeepingSink(), Alternating(400, 2)
    present = [len(world.presences(period).devices) for period in range(2)]
    with pytest.raises(Stopped, match=r"resume with period 0\b"):
        fleet(survey, sink, world).run(stop=lambda: len(sink.records) >= 10)
    assert 10 <= len(sink.frames(survey)) < present[0]
    fleet(survey, sink, world).run()
    assert len(sink.frames(survey)) == sum(present) == len(rows_by_token(sink.frames(survey)))
    assert [len(tokens_of(sink.frames(survey), period)) for period in range(2)] == present


@pytest.mark.parametrize("value", [-2, len(COLOURS)])
@pytest.mark.parametrize("survey", [scheme(SPL), scheme(SPL, ONCE), HASHED, BUCKETS])
def test_a_value_outside_the_surveys_list_is_refused_before_anything_is_sent(
    fleet: MakeFleet, survey: Scheme, value: int
) -> None:
    """A hash would turn the value -2 into the cell of another value. (-1 is a value that is not listed.)"""
    world, sink = Alternating(20), KeepingSink()
    truth = world.presences(0)
    truth.values["colour"][3] = value
    world.presences = lambda period: truth  # type: ignore[method-assign]
    with pytest.raises(ScenarioError, match="a value of 'colour' in period 0 is not one of 0 to 3"):
        fleet(survey, sink, world).run([0])
    assert sink.frames(survey) == []


def test_a_frame_never_gathers_the_same_devices_again(fleet: MakeFleet) -> None:
    """Frames cut by device number would: the company of a row would then be a name for it."""
    survey = scheme("solution: spl,")
    world = Alternating(20_000, 2)
    respondent = Respondent(survey, KEYRING)
    sink = KeepingSink(partitions=1)
    fleet(survey, sink, world).run()
    groups: list[list[set[int]]] = [[], []]
    for period in range(2):
        owner = dict(
            zip(respondent.tokens(everyone := np.arange(20_000, dtype=np.uint64), period), everyone, strict=True)
        )
        for frame in sink.frames(survey):
            if frame.period == period:
                groups[period].append({int(owner[token]) for token in frame.tokens})
    shared = [len(a & b) / len(a) for a in groups[0] for b in groups[1]]
    assert len(groups[0]) > 2 and max(shared) < 0.5


@pytest.mark.parametrize(
    ("attributes", "complaint"),
    [
        ({"colour": COLOURS}, "asks for attribute 'plan'"),
        (
            {"colour": (*COLOURS, "white"), "plan": PLANS},
            "the value 'white', which the survey does not list",
        ),
        (
            {"colour": COLOURS[:3], "plan": PLANS},
            "the value 'black', which the scenario does not have",
        ),
        ({"colour": COLOURS, "plan": PLANS[::-1]}, "the values are in another order"),
    ],
)
def test_a_scenario_that_does_not_fit_the_survey_is_refused(
    fleet: MakeFleet, attributes: dict[str, tuple[str, ...]], complaint: str
) -> None:
    world = Alternating()
    world.attributes = attributes  # type: ignore[misc]
    with pytest.raises(ScenarioError, match=complaint):
        fleet(scheme(), KeepingSink(), world)


@pytest.mark.parametrize("every", EVERY)
def test_a_crash_at_any_step_is_repaired_by_running_again(
    fleet: MakeFleet, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Failure would look like: a token missing, one token with two reports, or a count that is not the number there."""
    survey, world, whole = scheme(SPL), Alternating(120, 3), KeepingSink()
    owners = {FleetPresence: ("status", "delivered"), SurveyMemos: ("lookup",), KeepingSink: ("send", "flush")}
    steps = Steps(monkeypatch, *((owner, name) for owner, names in owners.items() for name in names))
    fleet(survey, whole, world).run()
    last = len(steps.taken)
    assert last > 30
    for fatal in range(1, last + 1, every):
        with redis.Redis.from_url(redis_url) as client:
            client.flushall()
        sink = KeepingSink()
        steps.begin(fatal)
        with pytest.raises(Killed):
            fleet(survey, sink, world).run()
        if fatal % 2:  # and what was on its way is gone, too
            del sink.records[sink.confirmed :]
        steps.begin(0)
        fleet(survey, sink, world).run()
        assert rows_by_token(sink.frames(survey)) == rows_by_token(whole.frames(survey)), f"died before step {fatal}"
    expected = [len(world.presences(period).devices) for period in range(world.periods)]
    assert counted(sink, survey, tmp_path) == expected
