"""What the writer does with a result that readers could not read: it is named, costs its period, and is made later."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from analytics.mobility.model import Amount, AmountQuantile, Quantity
from hearsay.reports.files import require_results
from protocols.errors import ResultsError
from stream_app.finals import FinalKey
from stream_app.local import LocalStore
from stream_app.log.flushes import FINALS, Come
from tests.helpers.published import Kept
from tests.views.folders import FolderSink, content
from tests.views.trials import World
from views.local import LocalViews
from views.reading import Results
from views.refusing import Refusals
from views.results import HISTOGRAMS, MOBILITY
from views.runner import Runner, backfill
from views.sinks import Sink, open_sink
from views.view import View, all_views

BAD = 1
"""The period of which a result is refused."""


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def with_nan(result: Any) -> Any:
    """The mobility report with a number that is not one, as `model_copy` lets it through."""
    first, *others = result.windows
    asked = first.attributes[0]
    quantile = AmountQuantile.model_construct(at=0.5, value=float("nan"), low=0.0, high=1.0)
    known = Quantity(value=1, error=1, low=0, high=2)
    number = Amount.model_construct(mean=known, sum=known, off=0.0, quantiles=(quantile,), top=None)
    broken = asked.model_copy(update={"amount": number})
    update = {"attributes": (broken, *first.attributes[1:]), "presence_lost": "maybe"}
    window = first.model_copy(update=update)
    return result.model_copy(update={"windows": (window, *others)})


def views_with(fault: str, periods: Sequence[int] = (BAD,)) -> tuple[View[Any], ...]:
    """All views; the mobility report of some periods has a fault."""

    def make(past: Any) -> Any:
        if past.period in periods and fault == "raises":
            raise FloatingPointError("invalid value")
        result = MOBILITY.make(past)
        return with_nan(result) if past.period in periods else result

    return tuple(replace(view, make=make) if view is MOBILITY else view for view in all_views())


def run(world: World, sinks: Sequence[Sink], views: Sequence[View[Any]] | None = None) -> Runner:
    """A runner, as it starts: it reads all finals from the beginning."""
    runner = Runner(sinks, views=views)
    runner.apply(Come(world.surveys(), [(0, 0, message) for message in world.messages(FINALS)]))
    assert not runner.failed
    return runner


def periods_in(kept: Kept, view: View[Any]) -> list[int | None]:
    return [FinalKey.decode(message.key).period for message in kept.messages(view.name)]


@pytest.mark.parametrize("fault", ["nan", "raises"])
def test_a_refused_result_costs_its_period_and_is_published_once_it_can_be_made(world: World, fault: str) -> None:
    kept, every = Kept(world.surveys()), [key.period for key in world.keys]
    others = [period for period in every if period != BAD]
    for _ in range(2):  # a restart with the fault publishes nothing again
        run(world, [kept], views_with(fault))
        assert periods_in(kept, HISTOGRAMS) == periods_in(kept, MOBILITY) == others
    run(world, [kept])
    assert periods_in(kept, HISTOGRAMS) == periods_in(kept, MOBILITY) == [*others, BAD], "each exactly once"
    calm = Kept(world.surveys())
    run(world, [calm])
    assert {m.key: m.value for m in kept.messages(MOBILITY.name)} == {
        m.key: m.value for m in calm.messages(MOBILITY.name)
    }
    assert [report.windows[0].last for report in Results(kept).mobility(world.scheme.survey.id)] == every


def test_the_first_period_is_published_later_too(world: World) -> None:
    kept, first = Kept(world.surveys()), world.keys[0].period
    run(world, [kept], views_with("nan", [first or 0]))
    assert first not in periods_in(kept, HISTOGRAMS)
    run(world, [kept])
    assert periods_in(kept, HISTOGRAMS)[-1] == first


def test_a_refusal_is_said_once_with_survey_period_and_field(world: World) -> None:
    told: list[Any] = []
    refusals = Refusals(told.append)
    with capture_logs() as logs:
        for _ in range(2):  # two sinks of a worker, or a sink that is opened anew
            runner = Runner([Kept()], views=views_with("nan"), refusals=refusals)
            runner.apply(Come(world.surveys(), [(0, 0, message) for message in world.messages(FINALS)]))
    (line,) = [one for one in logs if one["log_level"] == "error"]
    survey = world.scheme.survey.id
    assert (line["survey"], line["period"], line["result"]) == (survey, BAD, "mobility")
    assert "presence_lost: Input should be a valid boolean" in line["why"]
    assert "amount" in line["why"] and "finite number" in line["why"] and "maybe" not in line["why"]
    assert [one.key for one in told] == [FinalKey(survey, BAD)]
    with pytest.raises(ResultsError, match=f"survey '{survey}', period {BAD}: the mobility result is refused"):
        refusals.raise_any()


@pytest.mark.parametrize("kind", ["sqlite", "parquet", "folder"])
def test_tables_are_complete_through_the_period_before_and_are_filled_later(
    world: World, kind: str, tmp_path: Path
) -> None:
    address, survey = f"{kind}:{tmp_path / 'results'}", world.scheme.survey.id
    opened = FolderSink if kind == "folder" else open_sink
    for _ in range(2):
        with closing(opened(address)) as sink:
            run(world, [sink], views_with("nan"))
            assert sink.complete() == {survey: BAD - 1}, "what is refused never counts as complete"
    with closing(opened(address)) as sink:
        run(world, [sink])
        assert sink.complete() == {survey: world.finals[-1].period}
    if kind == "folder":
        assert sorted(content(tmp_path / "results")) == world.keys


@pytest.fixture
def store(world: World, tmp_path: Path) -> Iterator[LocalStore]:
    """The data directory of a run: its finals."""
    with closing(LocalStore.to_write(tmp_path)) as opened:
        opened.setting(f"survey/{world.scheme.survey.id}", world.scheme.survey.model_dump_json())
        opened.write(world.messages(FINALS))
        yield opened


def test_a_data_directory_makes_the_period_when_it_is_opened_by_a_release_that_can(
    world: World, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = world.scheme.survey.id
    with monkeypatch.context() as faulty:
        faulty.setattr("views.runner.all_views", lambda: views_with("nan"))
        LocalViews()(store)
    others = [key.period for key in world.keys if key.period != BAD]
    assert Results(store).periods(survey) == others
    with pytest.raises(ResultsError, match=f"survey '{survey}' lacks the results of 1 period") as caught:
        require_results(Results(store), survey)
    assert "same command" not in caught.value.hint and "a release in which it is mended" in caught.value.hint
    LocalViews()(store)
    require_results(Results(store), survey)
    assert Results(store).periods(survey) == [key.period for key in world.keys]


def test_a_backfill_fills_what_it_can_and_says_what_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("views.runner.all_views", lambda: views_with("raises"))
    kept = Kept(world.surveys())
    with pytest.raises(ResultsError, match="mobility result is refused and not published: FloatingPointError"):
        backfill(world, kept)
    assert len(periods_in(kept, HISTOGRAMS)) == len(world.finals) - 1
