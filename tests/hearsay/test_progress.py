"""How far it is, said where no bar can move."""

from __future__ import annotations

import pytest

from hearsay.terminal import console


def test_a_log_gets_a_line_every_few_seconds_and_none_about_what_is_done_soon(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "err", console.Console(highlight=False))
    times = iter([0.0, 1.0, 6.0, 6.0, 8.0, 12.0, 12.0])
    step = console.Lines(lambda: next(times))
    for done in (100, 2_000, 3_000, 4_000):
        step(done, 5_000, "day 3")
    assert capsys.readouterr().out.splitlines() == ["day 3: 2,000 of 5,000", "day 3: 4,000 of 5,000"]


def test_a_bar_is_only_drawn_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "err", console.Console(stderr=True, force_terminal=False))
    with console.progress("working") as step:
        assert isinstance(step, console.Lines)
