"""Replays for the tests of what they report."""

from collections.abc import Callable
from pathlib import Path

import pytest

from memo_store.survey_memos import SurveyMemos
from producers.events import Options
from producers.replay import Replay
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from tests.helpers.sinks import KeepingSink
from tests.producers.events import OPTIONS, MakeReplay, survey
from tests.producers.populations import CLOCK_KEY, KEYRING


@pytest.fixture
def replay(open_memos: Callable[[Respondent], SurveyMemos], tmp_path: Path) -> MakeReplay:
    """Make replays that share a memo store and a workspace, each as a new process would."""

    def make(path: Path, sink: KeepingSink, options: Options = OPTIONS, scheme: Scheme | None = None) -> Replay:
        memos = open_memos(Respondent(scheme or survey(), KEYRING))
        return Replay(memos, sink, CLOCK_KEY, [path], options, tmp_path / "workspace")

    return make
