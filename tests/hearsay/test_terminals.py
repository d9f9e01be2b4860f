"""Every terminal gets text that it can show and nothing that it would obey; a log gets lines about progress."""

import errno
import io
import json
import logging
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table

from hearsay.survey_files import example_text
from hearsay.terminal import console
from hearsay.terminal.console import SafeConsole
from hearsay.terminal.exits import REFUSED
from hearsay.terminal.explaining import explain
from protocols.errors import SurveyError
from servers.logs import configure_logs
from servers.printable import UNSAFE

HOSTILE = "before\x1b]0;title\x07\x1b[2J\x9b31m\u202eafter"


def hearsay(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "hearsay", *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, timeout=120, check=False)


def test_text_from_outside_is_shown_and_not_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    terminal = SafeConsole(file=file, force_terminal=True, color_system=None, width=120)
    table = Table(HOSTILE, title=HOSTILE)
    table.add_row(HOSTILE)
    terminal.print(HOSTILE, table)
    monkeypatch.setattr(console, "err", terminal)
    explain(SurveyError(HOSTILE, HOSTILE))
    assert file.getvalue().count("before") == 6
    assert not UNSAFE.search(file.getvalue())


def test_colours_of_our_own_stay() -> None:
    file = io.StringIO()
    SafeConsole(file=file, force_terminal=True, color_system="standard").print("[red]stop[/]")
    assert "\x1b[31mstop" in file.getvalue()


def test_json_has_the_same_data_in_harmless_characters(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"value": HOSTILE})
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"value": HOSTILE}
    assert not UNSAFE.search(shown)


def test_a_log_on_a_terminal_is_harmless_too(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    root = logging.getLogger()
    kept, level = root.handlers[:], root.level
    try:
        configure_logs()
        logging.getLogger("hearsay").warning("%s", HOSTILE)
    finally:
        root.handlers[:] = kept
        root.setLevel(level)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())  # colours of our own
    assert "before?]0;title??[2J" in shown
    assert not UNSAFE.search(shown)


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path = tmp_path / "survey.yaml"
    path.write_text(example_text("telemetry"), "utf-8")
    return path


@pytest.mark.long(part="pages")
def test_a_terminal_without_unicode_gets_other_characters(survey: Path) -> None:
    for arguments in (("survey", "check", str(survey)), ("plan", str(survey)), ("plan", "--help")):
        shown = hearsay(*arguments, PYTHONIOENCODING="ascii")
        assert (shown.returncode, shown.stderr) == (0, b"")
        assert shown.stdout.isascii() and b"\\u" not in shown.stdout
    refused = hearsay("plan", "caf\u00e9.yaml", PYTHONIOENCODING="ascii")
    assert refused.returncode == 1
    assert b"cannot be read: No such file" in refused.stderr and refused.stderr.isascii()


@pytest.mark.long(part="pages")
def test_a_narrow_terminal_loses_no_digit(survey: Path) -> None:
    narrow, wide = (hearsay("plan", str(survey), COLUMNS=columns).stdout.decode() for columns in ("40", "80"))
    assert narrow == wide


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "free disk space"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "free disk space"),
        (OSError(errno.EMFILE, "Too many open files"), "ulimit -n"),
        (sqlite3.OperationalError("database or disk is full"), "free disk space"),
    ],
)
def test_limits_of_the_machine_get_a_sentence_and_what_to_do(
    error: Exception, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain(error) == REFUSED
    assert hint in capsys.readouterr().err


def test_a_log_gets_a_line_every_few_seconds_and_none_about_what_is_done_soon(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "err", console.Console(highlight=False))
    times = iter([0.0, 1.0, 6.0, 6.0, 8.0, 12.0, 12.0])
    step = console.Lines(lambda: next(times))
    for done in (100, 2_000, 3_000, 4_000):
        step(done, 5_000, "day 3")
    assert capsys.readouterr().out.splitlines() == ["day 3: 2,000 of 5,000", "day 3: 4,000 of 5,000"]
