"""`hearsay replay` and `hearsay send` as a user types them."""

import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hearsay.cli import app
from protocols.errors import FingerprintChanged, SettingsError, SurveyError
from protocols.survey_text import parse_survey
from servers.kafka_broker import KafkaBroker
from servers.settings import KafkaSettings
from stream_app.kafka import Topics, create, publish, published
from stream_app.local import LocalStore
from tests.helpers.topics import read_records
from views.reading import Results

CLOCK_KEY = "5e" * 32
SURVEY = """{id: cdr, start: 2026-01-01T00:00:00Z, period: 1d, eps_inf: 2, eps_1: 1, clock: source,
 attributes: [{name: area, values: [north, south]}]}"""


@pytest.fixture
def day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A file of events, a survey, and the words to replay one under the other."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "survey.yaml").write_text(SURVEY)
    people = [f"+336{i:08d}" for i in range(50)]
    rows = [f"{p},2026-01-0{d} 12:00:00,{'north' if i % 2 else 'south'}" for d in (1, 2) for i, p in enumerate(people)]
    (tmp_path / "events.csv").write_text("msisdn,at,cell\n" + "\n".join([*rows, "+33600000000,never,north"]) + "\n")
    words = "replay events.csv --survey survey.yaml --person msisdn --time at --map cell=area --choose area=most"
    return [*words.split(), "--zone", "Europe/Paris", "--until", "2026-02-01T00:00:00Z", "--data", "data"]


def type_in(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(app, words, env={"HEARSAY_CLOCK_KEY": CLOCK_KEY, **environment})


def test_events_are_collected_in_this_process_and_the_file_is_judged(day: list[str]) -> None:
    result = type_in(*day)
    assert result.exit_code == 0, result.exception
    assert "bad time" in result.output and "102" in result.output
    assert "+336" not in result.output
    with closing(LocalStore.existing(Path("data/collector"))) as store:
        assert [final.n for final in Results(store).histograms("cdr")] == [50, 50]


def test_the_summary_for_programs_counts_every_fault(day: list[str]) -> None:
    summary = json.loads(type_in(*day, "--json").stdout)
    assert {name: summary[name] for name in ("rows", "people", "periods", "reports")} == {
        "rows": 101, "people": 50, "periods": 2, "reports": 100,
    }  # fmt: skip
    assert summary["faults"]["bad_time"] == {"count": 1, "first": [{"file": "events.csv", "line": 102}]}


def test_keys_of_periods_are_forgotten_only_after_the_grace_and_from_the_first_replay_on(day: list[str]) -> None:
    """A refused replay leaves nothing behind."""
    assert "--forget-after: not a duration" in type_in(*day, "--forget-after", "soon").output
    refused = type_in(*day, "--forget-after", "0s")
    assert isinstance(refused.exception, SettingsError) and not Path("data").exists()
    assert type_in(*day, "--forget-after", "1d").exit_code == 0
    assert "was begun with --forget-after" in str(type_in(*day).exception)
    assert type_in(*day, "--forget-after", "100000000w").exit_code == 0, "the same again, and another duration"


def test_events_after_now_are_mistakes_unless_told_otherwise(day: list[str]) -> None:
    later = Path("events.csv").read_text().replace("2026-01-02", f"{datetime.now(UTC).year + 1}-01-02")
    Path("events.csv").write_text(later)
    until = day.index("--until")
    refused = type_in(*day[:until], *day[until + 2 :], "--json")
    assert refused.exit_code == 1 and "events at or after" in str(refused.exception)
    summary = json.loads(type_in(*day[:until], *day[until + 2 :], "--json", "--most-faults", "100%").stdout)
    assert summary["faults"]["outside"]["count"] >= 50


def test_captured_reports_are_sent_later(day: list[str], kafka: KafkaBroker, kafka_settings: KafkaSettings) -> None:
    create(kafka_settings, Topics("captured"))
    captured = type_in(*day, "--capture", "captured")
    assert "Next: hearsay send captured" in captured.output
    cluster = {"HEARSAY_KAFKA_BOOTSTRAP": kafka_settings.bootstrap, "HEARSAY_KAFKA_PREFIX": "captured"}
    sent = type_in("send", "captured", **cluster)
    assert sent.exit_code == 0, sent.exception
    arrived = read_records(kafka_settings, "captured.reports")
    assert f"Sent {len(arrived)} records" in sent.output
    assert "Published cdr." in sent.output and list(published(kafka_settings, Topics("captured"))) == ["cdr"]
    assert len(arrived) > 16  # 8 clock records a day, and a frame for each partition that has somebody
    assert json.loads(type_in("send", "captured", "--json", **cluster).stdout)["records"] == 0
    assert type_in("send", "captured", **cluster).output.startswith("Nothing to send: all ")


def test_a_capture_is_not_sent_where_its_survey_has_other_terms(
    day: list[str], kafka: KafkaBroker, kafka_settings: KafkaSettings
) -> None:
    """Failure would look like: every report among the dead letters, and exit code 0."""
    create(kafka_settings, Topics("other-terms"))
    publish(kafka_settings, Topics("other-terms"), parse_survey(SURVEY.replace("eps_inf: 2", "eps_inf: 3")))
    assert type_in(*day, "--capture", "captured").exit_code == 0
    refused = type_in(
        "send", "captured", HEARSAY_KAFKA_BOOTSTRAP=kafka_settings.bootstrap, HEARSAY_KAFKA_PREFIX="other-terms"
    ).exception
    assert isinstance(refused, FingerprintChanged) and "all would be refused" in refused.message
    assert read_records(kafka_settings, "other-terms.reports") == []


def test_who_has_reported_here_is_not_captured_for_a_cluster(day: list[str]) -> None:
    """The capture would hold clock records and nobody's report: it would close periods that nobody reported."""
    assert type_in(*day).exit_code == 0
    error = type_in(*day, "--capture", "captured").exception
    assert isinstance(error, SettingsError)
    assert "report to this process" in error.message
    assert not list(Path("captured").glob("*.arrow"))


def test_a_wall_clock_survey_and_a_capture_without_the_clock_key_are_refused(day: list[str]) -> None:
    error = CliRunner().invoke(app, [*day, "--capture", "captured"]).exception
    assert isinstance(error, SettingsError) and "HEARSAY_CLOCK_KEY" in error.hint
    Path("survey.yaml").write_text(SURVEY.replace("clock: source", "clock: wall"))
    error = type_in(*day).exception
    assert isinstance(error, SurveyError) and "cdr-sim" in error.hint


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--map area", "left=right"),
        ("--choose area=best", "not one of first, last, most"),
        ("--tolerance soon", "not a duration"),
        ("--zone Paris", "no time zone"),
        ("--until tomorrow", "not a time with a zone"),
        ("--kafka here:9092 --capture here", "one of --kafka and --capture"),
    ],
)
def test_wrong_words_are_explained(day: list[str], words: str, complaint: str) -> None:
    result = type_in(*day, *words.split())
    assert result.exit_code == 2
    assert complaint in " ".join(result.output.replace("│", " ").split())


def test_a_file_that_would_lose_much_is_refused_and_a_check_sends_nothing(day: list[str]) -> None:
    zone = day.index("--zone")
    without = [*day[:zone], *day[zone + 2 :]]
    refused = type_in(*without)
    assert refused.exit_code == 1
    assert "nothing was sent" in str(refused.exception) and "--zone Europe/Paris" in str(refused.exception)
    wrong = type_in(*without, "--check")
    assert wrong.exit_code == 1 and "100 times without a zone in column at" in wrong.output
    right = type_in(*day, "--check", "--json")
    assert right.exit_code == 0 and json.loads(right.stdout)["people"] == {"0": 50, "1": 50}
    assert not Path("data").exists()


def test_events_may_come_from_standard_input(day: list[str]) -> None:
    words = ["replay", "-", *day[2:], "--json"]
    result = CliRunner().invoke(app, words, input=Path("events.csv").read_text(), env={"HEARSAY_CLOCK_KEY": CLOCK_KEY})
    assert json.loads(result.stdout)["reports"] == 100
