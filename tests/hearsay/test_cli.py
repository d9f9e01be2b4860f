"""The command line as people, programs and terminals meet it: sentences, hints, exit codes, harmless text."""

import errno
import io
import json
import logging
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.table import Table

from hearsay.commands.operations import topics
from hearsay.survey_files import example_text
from hearsay.terminal import console
from hearsay.terminal.console import SafeConsole
from hearsay.terminal.explaining import REFUSED, explain
from protocols.errors import SurveyError
from protocols.wire import REPORT
from servers.logs import configure_logs
from servers.ports import free_port
from servers.printable import UNSAFE
from stream_app.kafka import Topics
from stream_app.local.log import LocalLog
from tests.helpers.browser import events_in
from tests.helpers.nursery import run as hearsay
from views.results import MobilityResult


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a small demo."""
    directory = tmp_path_factory.mktemp("demo") / "data"
    shown = hearsay("demo", "--devices", "500", "--data", str(directory))
    assert shown.returncode == 0, shown.stderr
    assert "500" in shown.stdout
    assert max(map(len, shown.stdout.replace(str(directory), "").splitlines())) <= 80
    return directory


NOBODY = {"HEARSAY_KAFKA_BOOTSTRAP": "127.0.0.1:1", "HEARSAY_CLOCK_KEY": "0" * 64}
WITHOUT_KEY = {"HEARSAY_KAFKA_BOOTSTRAP": "127.0.0.1:1"}
NO_REDIS = {"HEARSAY_REDIS_URL": "redis://127.0.0.1:1/0"}


@pytest.mark.parametrize(
    ("words", "environment", "code", "said"),
    [
        ("survey check no-such-file.yaml", {}, 1, "no-such-file.yaml"),
        ("demo --data {file}", {}, 1, "{file}"),
        ("report --data {data} --csv {file}", {}, 1, "{file}"),
        ("report --data {data} --period 99", {}, 1, "99"),
        ("report other-survey --data {data}", {}, 1, "other-survey"),
        ("demo --devices 600 --data {data}", {}, 1, "another population"),  # their truth is not shown beside reports
        ("send {directory}", WITHOUT_KEY, 1, "not a capture"),  # before a cluster is looked for
        ("worker --web-port 0", WITHOUT_KEY, 1, "HEARSAY_CLOCK_KEY"),  # before it waits for a broker
        ("demo --data {directory}/new", NO_REDIS, 75, "Redis"),
        ("topics check", NOBODY, 75, "127.0.0.1:1"),
    ],
)
def test_an_error_is_one_sentence_and_a_hint(
    words: str, environment: dict[str, str], code: int, said: str, data: Path, tmp_path: Path
) -> None:
    (file := tmp_path / "file").touch()
    places = {"data": data, "file": file, "directory": tmp_path}
    refused = hearsay(*words.format(**places).split(), **environment)
    assert refused.returncode == code
    assert said.format(**places) in refused.stderr and "hint:" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["noticed at the end", "noticed at once"])
def test_a_full_disk_is_said_in_a_sentence(unbuffered: str) -> None:
    command = [sys.executable, "-m", "hearsay", "version"]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        refused = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=240, env=environment
        )
    assert refused.returncode == 1
    assert refused.stderr.startswith("hearsay: No space left")
    assert "Exception ignored" not in refused.stderr


@pytest.mark.parametrize("closed", ["2>&-", "0<&- 1>&- 2>&-"])
def test_whoever_closes_its_outputs_is_served_all_the_same(closed: str, tmp_path: Path) -> None:
    page = tmp_path / "telemetry.yaml"
    command = f"{sys.executable} -m hearsay survey new {page} --example telemetry {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")
    assert page.read_text() == example_text("telemetry"), "nothing else was written to it"


def test_a_defect_has_its_own_exit_code_and_colours_of_our_own_stay(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(ValueError("of all things")) == 70
    assert "ValueError: of all things" in capsys.readouterr().err
    file = io.StringIO()
    SafeConsole(file=file, force_terminal=True, color_system="standard").print("[red]stop[/]")
    assert "\x1b[31mstop" in file.getvalue()


TELEMETRY = re.sub(r"^(central|devices):.*\n", "", example_text("telemetry"), flags=re.MULTILINE)
"""Without what readers of results learn, which takes seconds to compute."""


@pytest.fixture(scope="module")
def telemetry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a small run."""
    directory = tmp_path_factory.mktemp("telemetry")
    survey = directory / "survey.yaml"
    survey.write_text(TELEMETRY)
    done = hearsay("run", str(survey), "--devices", "50", "--periods", "3", "--data", str(directory / "data"))
    assert done.returncode == 0, done.stderr
    return directory / "data"


HEAVY = {"numba", "llvmlite", "scipy", "pyarrow", "kafka", "aiokafka", "faust", "redis", "uvloop"}
OF_SERVERS = {"kafka", "aiokafka", "faust", "uvloop"}
OF_LOGS = {"structlog", "pygments"}
COMPILED = {"numba", "llvmlite", "scipy.linalg", "pyarrow.compute"}


@pytest.mark.parametrize(
    ("words", "heavy", "most"),
    [
        (["--help"], HEAVY | OF_LOGS | {"numpy", "yaml", "pydantic", "markdown_it"}, 235),
        (["survey", "check", "{survey}"], HEAVY | OF_LOGS, 580),
        (["plan", "{survey}"], HEAVY | OF_LOGS, 568),
        (["report", "app-telemetry", "--data={data}"], HEAVY | OF_LOGS | {"pydantic_settings"}, 636),
        (["run", "{survey}", "--devices=50", "--periods=1", "--data={new}"], OF_SERVERS | COMPILED, 1080),
    ],
    ids=["--help", "survey check", "plan", "report", "run"],
)
def test_what_needs_no_heavy_library_does_not_load_one(
    words: list[str], heavy: set[str], most: int, tmp_path: Path, telemetry: Path
) -> None:
    """Modules are counted, and no clock is asked: importing is most of what a short command computes.

    `most` is a few more than there were. Raise it for a good reason only: 100 modules take 0.05 to 0.1 s of CPU.
    """
    survey = tmp_path / "survey.yaml"
    survey.write_text(TELEMETRY)
    given = [word.format(survey=survey, data=telemetry, new=tmp_path / "data") for word in words]
    called = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "hearsay", *given],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    loaded = {line.rpartition("|")[2].strip() for line in called.stderr.splitlines()}
    assert "typer" in loaded
    assert not loaded & heavy
    assert len(loaded) <= most, f"{len(loaded)} modules"


def test_a_damaged_log_is_said_on_standard_error(tmp_path: Path) -> None:
    survey = tmp_path / "survey.yaml"
    survey.write_text(TELEMETRY)
    words = "run", str(survey), "--devices=50", "--periods=1", f"--data={tmp_path / 'data'}"
    assert hearsay(*words).returncode == 0
    path = next((tmp_path / "data").rglob("0.log"))
    log = LocalLog(path, 0)
    for _ in range(2):
        log.append(REPORT, b"not a report")
    log.sync()
    log.close()
    data = bytearray(path.read_bytes())
    data[data.index(b"not a report")] ^= 1
    path.write_bytes(data)
    again = hearsay(*words)
    assert again.returncode == 0
    assert "a record is damaged" in again.stderr and "a record is damaged" not in again.stdout


def test_the_options_of_topics_have_the_defaults_of_topics() -> None:
    default = Topics()
    assert (
        default.partitions, default.merge_partitions, default.retention_days,
    ) == (topics.PARTITIONS, topics.MERGE_PARTITIONS, topics.RETENTION_DAYS)  # fmt: skip


def test_wrong_usage_has_its_own_exit_code_and_an_error_its_traceback_if_it_is_asked_for() -> None:
    assert "Traceback" in hearsay("--debug", "survey", "check", "no-such-file.yaml").stderr
    assert hearsay("no-such-command").returncode == 2
    assert hearsay("run").returncode == 2
    assert hearsay("worker", "--log-level", "LOUD").returncode == 2


def test_a_worker_whose_port_is_taken_says_so_before_anything_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = hearsay("worker", "--web-port", str(port), **NOBODY)
    assert refused.returncode == 1
    assert f"port {port} of 127.0.0.1 cannot be listened on: Address already in use" in refused.stderr
    assert "--web-port" in refused.stderr


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGTERM, 0), pytest.param(signal.SIGINT, 130, marks=pytest.mark.long(part="pages"))]
)
def test_a_worker_that_waits_for_a_broker_ends_at_a_signal(sent: signal.Signals, code: int) -> None:
    """By a handler of its own: the first process of a container is not ended by the signal itself."""
    command = [sys.executable, "-m", "hearsay", "worker", "--web-port", str(free_port())]
    with subprocess.Popen(
        command,
        env=os.environ | NOBODY,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # ignored in a run in the background
    ) as worker:
        try:
            assert worker.stderr is not None
            assert any("waiting for the broker" in line for line in worker.stderr), "it ended without waiting"
            worker.send_signal(sent)
            assert worker.wait(timeout=60) == code
        finally:
            worker.kill()  # leaving the block waits for it


def test_a_survey_on_the_wall_clock_is_rehearsed_under_another_id_and_every_step_names_the_next(tmp_path: Path) -> None:
    """Failure would look like: a dead end, or real terms whose noise was used by a simulation."""
    file, data = tmp_path / "survey.yaml", tmp_path / "d"
    file.write_text(
        "{id: buttons, start: 2030-01-01T00:00:00Z, period: 1d, eps_inf: 4, eps_1: 2, attributes: "
        "[{name: colour, values: [red, green]}]}"
    )
    assert f"Next: hearsay run {file}" in hearsay("plan", str(file)).stdout
    done = hearsay("run", str(file), "--devices", "50", "--periods", "2", "--data", str(data))
    assert done.returncode == 0, done.stderr
    assert "buttons has clock: wall; simulated as buttons-sim, with clock: source." in done.stderr
    assert f"hearsay survey publish {file}" in done.stdout
    next_step = re.search(r"Next: hearsay (report buttons-sim --data .*)", done.stdout)
    assert next_step is not None
    assert hearsay(*next_step[1].split()).returncode == 0
    assert hearsay("report", "buttons", "--data", str(data)).returncode == 1


def test_a_report_is_json_for_programs(data: Path) -> None:
    report = MobilityResult.model_validate_json(hearsay("report", "--data", str(data), "--json").stdout)
    assert [window.visitors for window in report.windows if window.kind == "period"]
    one = MobilityResult.model_validate_json(hearsay("report", "--data", str(data), "--window", "0:6", "--json").stdout)
    assert [(window.first, window.last) for window in one.windows] == [(0, 6)]


def test_a_report_compares_with_what_is_normal(data: Path) -> None:
    shown = hearsay("report", "--data", str(data), "--baseline", "0:0").stdout.splitlines()
    assert "vs baseline" in shown[1] and shown[2].split()[4] == "–", "a day is not compared with itself"
    assert shown[3].split()[5] == "%" and "– against the baseline: part of it" in " ".join(shown)
    one = hearsay("report", "--data", str(data), "--baseline", "0:0", "--period", "3").stdout
    assert " % against the comparable window" in one
    refused = hearsay("report", "--data", str(data), "--baseline", "7:12")
    assert refused.returncode == 1
    assert "periods 7 to 12" in refused.stderr and "periods 0 to 6" in refused.stderr


def test_a_report_is_a_page_and_tables(data: Path, tmp_path: Path) -> None:
    page, tables = tmp_path / "page.html", tmp_path / "tables"
    words = ("--html", str(page), "--csv", str(tables), "--parquet", str(tables))
    written = hearsay("report", "--data", str(data), *words)
    assert written.returncode == 0, written.stderr
    kinds = [told["kind"] for told in events_in(page.read_text())]
    assert kinds[0] == "survey" and kinds.count("mobility") == 7
    assert (tables / "visitors.csv").read_text().count("\n") > 7
    assert pq.read_table(tables / "values.parquet").num_rows > 0


def test_the_doctor_looks_and_hides_secrets() -> None:
    seen = hearsay("doctor", "--json", HEARSAY_CLOCK_KEY="ab" * 32)
    found = json.loads(seen.stdout)
    findings = {finding["what"]: finding["found"] for finding in found["findings"]}
    assert findings.keys() >= {"Python", "java", "clock"}
    assert findings["Redis server"].startswith("Valkey ")
    assert "abab" not in seen.stdout
    assert not any("\x1b" in finding["found"] for finding in found["findings"]), "colours are for terminals"
    assert found["settings"]["HEARSAY_CLOCK_KEY"] == "**********"
    assert "HEARSAY_KAFKA_BOOTSTRAP" in found["defaults"] and "HEARSAY_CLOCK_KEY" not in found["defaults"]


def test_the_doctor_says_what_to_do_about_a_server_that_is_away_and_cuts_nothing_off(tmp_path: Path) -> None:
    seen = hearsay("doctor", HEARSAY_REDIS_URL=f"unix://{tmp_path}/{'far/' * 30}redis.sock", COLUMNS="80")
    assert seen.returncode == 1
    assert "…" not in seen.stdout and "start it" in seen.stdout
    assert "HEARSAY_KAFKA_BOOTSTRAP is not set; by default 127.0.0.1:9092" in seen.stdout


HOSTILE = "before\x1b]0;title\x07\x1b[2J\x9b31m\u202eafter"


def in_bytes(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
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


def test_json_has_the_same_data_in_harmless_characters(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"value": HOSTILE})
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"value": HOSTILE}
    assert not UNSAFE.search(shown)


@pytest.fixture
def _loggers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for logger in logging.getLogger(), logging.getLogger("protocols.arrays.compiling"):
        monkeypatch.setattr(logger, "handlers", logger.handlers[:])
        monkeypatch.setattr(logger, "level", logger.level)
        monkeypatch.setattr(logger, "propagate", logger.propagate)


@pytest.mark.usefixtures("_loggers_are_kept")
def test_a_log_on_a_terminal_is_harmless_too(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    configure_logs()
    logging.getLogger("hearsay").warning("%s", HOSTILE)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())  # colours of our own
    assert "before?]0;title??[2J" in shown
    assert not UNSAFE.search(shown)


@pytest.mark.usefixtures("_loggers_are_kept")
def test_every_line_of_a_log_that_a_program_reads_is_json_also_of_a_first_compilation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    configure_logs()
    logging.getLogger("hearsay").info("counting")
    logging.getLogger("protocols.arrays.compiling").info("compiling, once")
    assert [json.loads(line)["event"] for line in file.getvalue().splitlines()] == ["counting", "compiling, once"]


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path = tmp_path / "survey.yaml"
    path.write_text(example_text("telemetry"), "utf-8")
    return path


@pytest.mark.long(part="pages")
def test_a_terminal_without_unicode_gets_other_characters(survey: Path) -> None:
    for arguments in (("survey", "check", str(survey)), ("plan", str(survey)), ("plan", "--help")):
        shown = in_bytes(*arguments, PYTHONIOENCODING="ascii")
        assert (shown.returncode, shown.stderr) == (0, b"")
        assert shown.stdout.isascii() and b"\\u" not in shown.stdout
    refused = in_bytes("plan", "caf\u00e9.yaml", PYTHONIOENCODING="ascii")
    assert refused.returncode == 1
    assert b"cannot be read: No such file" in refused.stderr and refused.stderr.isascii()


@pytest.mark.long(part="pages")
def test_a_narrow_terminal_loses_no_digit(survey: Path) -> None:
    narrow, wide = (in_bytes("plan", str(survey), COLUMNS=columns).stdout.decode() for columns in ("40", "80"))
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
