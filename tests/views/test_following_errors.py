"""A thread that makes views says what went wrong, and whose views it makes."""

from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from stream_app.kafka import Topics
from tests.helpers.eventually import eventually
from tests.helpers.published import Kept, come
from tests.views.trials import World
from views.following import everything, following
from views.results import HISTOGRAMS
from views.runner import Runner


def test_an_error_that_nobody_expected_is_logged_with_its_stack(tmp_path: Path) -> None:
    """Results would be missing, and nobody would know why."""
    no_settings: Any = None
    with capture_logs() as logged, following(no_settings, Topics("t"), [f"sqlite:{tmp_path}/results.sqlite"]):
        eventually(lambda: any(entry["log_level"] == "error" for entry in logged), 30)
    (first, *_) = [entry for entry in logged if entry["log_level"] == "error"]
    assert first["event"] == "results cannot be made; trying again"
    assert first["exc_info"] is True


def test_views_are_made_of_every_survey_if_nobody_says_otherwise() -> None:
    world = World(periods=1)
    kept = Kept(world.surveys())
    Runner([kept], everything).apply(come(world.messages("finals"), *world.surveys()))
    assert [message.key for message in kept.messages(HISTOGRAMS.name)] == [b"town/0"]
