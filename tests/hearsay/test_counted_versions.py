"""Which version a text is follows from where its survey is counted: it keeps the version of its terms after the switch.

The states are of release 0.2, which knew versions 1 and 2 only. "After the switch" new texts are version 3.
"""

import json
import shutil
import tarfile
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from hearsay.cli import app
from hearsay.data_directory import DataDirectory
from hearsay.running.replaying import read_edge
from hearsay.serving.embedded_log import read_surveys
from hearsay.signing import sign_file
from hearsay.survey_files import counted_at, counted_or_rehearsed_at, read_survey
from hearsay_device import Device, DeviceError, Limits
from producers.sinks import DirectorySink
from protocols.errors import FingerprintChanged, SurveyError
from protocols.scheme import Scheme
from protocols.survey.versions import keys
from protocols.survey_text import format_survey
from stream_app.kafka.registry import FINGERPRINT_HEADER, Published, admit
from stream_app.local import EmbeddedApp, LocalStore
from tests.helpers.surveys import of_size, third

STATES = Path(__file__).parents[1] / "states"
LAST = third(of_size(3), id="last", eps=1, lookback=7, publish_from=20, clock="source").survey
"""A survey of version 3, which nothing but tests can make before the switch."""
MOVED = "horizon: 3", "lookback: 3"


@pytest.fixture
def after_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "NEW_TEXTS", 3)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What release 0.2 has written: the survey tiny, and an edge with the survey calls."""
    for name in ("of-0.2", "edge-of-0.2"):
        with tarfile.open(STATES / f"{name}.tar.xz") as states:
            states.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fingerprint(root: Path) -> str:
    """Of tiny, as release 0.2 has written it."""
    return str(json.loads((root / "survey-record.json").read_text())["fingerprint"])


def type_in(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.usefixtures("after_the_switch")
def test_what_a_data_directory_counts_is_read_as_it_was(root: Path, fingerprint: str) -> None:
    survey = read_survey(root / "survey.yaml", counted_at(root / "data"))
    assert survey.version == 2 and Scheme(survey).fingerprint == fingerprint
    with closing(LocalStore.to_write(root / "data" / "collector")) as store:
        assert store.setting("fingerprint/tiny", "none") == fingerprint
    with pytest.raises(SurveyError, match="survey tiny: `minimum` promised more than it kept"):
        read_survey(root / "survey.yaml", counted_at(root / "elsewhere"))


@pytest.mark.usefixtures("after_the_switch")
def test_a_collection_goes_on_under_the_terms_of_its_version(root: Path) -> None:
    """Failure would look like: nobody can go on with a survey that an earlier release has begun."""
    went_on = type_in("run", root / "survey.yaml", "--devices", "30", "--periods", "3", "--data", root / "data")
    assert went_on.exit_code == 0, (went_on.output, went_on.exception)
    changed = root / "changed.yaml"
    changed.write_text((root / "survey.yaml").read_text().replace("eps_1: 0.5", "eps_1: 0.4"))
    refused = type_in("run", changed, "--devices", "30", "--periods", "3", "--data", root / "data")
    assert isinstance(refused.exception, FingerprintChanged), "as changed terms always were"


@pytest.mark.usefixtures("after_the_switch")
def test_a_text_with_keys_of_version_3_is_no_text_of_a_survey_that_is_counted_under_version_2(root: Path) -> None:
    moved = root / "moved.yaml"
    moved.write_text((root / "survey.yaml").read_text().replace(*MOVED).replace("minimum: 5", "publish_from: 5"))
    with pytest.raises(SurveyError) as error:
        read_survey(moved, counted_at(root / "data"))
    assert "write `horizon`, or give the survey a new id" in error.value.message
    assert "have no `publish_from`; leave it out, or give the survey a new id" in error.value.message
    assert read_survey(moved, counted_at(root / "elsewhere")).version == 3


@pytest.mark.usefixtures("after_the_switch")
def test_what_is_served_is_read_as_the_directory_counts_it(root: Path, fingerprint: str) -> None:
    (scheme,), refused = read_surveys([root / "survey.yaml"], root / "data")
    assert (scheme.fingerprint, refused) == (fingerprint, {})
    with pytest.raises(SurveyError, match="promised more"):
        read_surveys([root / "survey.yaml"], root / "elsewhere")


@pytest.mark.usefixtures("after_the_switch")
def test_the_usual_directories_are_looked_at_where_none_is_named(root: Path, fingerprint: str) -> None:
    for name in ("tiny", "serve"):
        shutil.copytree(root / "data", root / "hearsay-data" / name)
        assert Scheme(read_survey(root / "survey.yaml")).fingerprint == fingerprint
        shutil.rmtree(root / "hearsay-data")
    with pytest.raises(SurveyError, match="promised more"):
        read_survey(root / "survey.yaml")


@pytest.mark.usefixtures("after_the_switch")
def test_a_rehearsal_goes_on_as_it_was_begun(root: Path) -> None:
    """A survey with clock: wall is simulated under an id of its own."""
    rehearsed = root / "hearsay-data" / "tiny-sim"
    shutil.copytree(root / "data", rehearsed)
    shutil.rmtree(rehearsed / "collector")
    (rehearsed / "tiny.destination").rename(rehearsed / "tiny-sim.destination")
    assert read_survey(root / "survey.yaml", counted_or_rehearsed_at(None, None)).version == 2
    with pytest.raises(SurveyError, match="promised more"):
        read_survey(root / "survey.yaml", counted_at())


@pytest.mark.usefixtures("after_the_switch")
def test_what_reports_from_a_directory_to_elsewhere_is_known_by_its_destination(root: Path) -> None:
    """Nothing is counted in it: as where devices report to a cluster, or are captured."""
    shutil.rmtree(root / "data" / "collector")
    assert read_survey(root / "survey.yaml", counted_at(root / "data")).version == 2


def test_a_survey_of_version_3_keeps_its_version_before_and_after_the_switch(root: Path) -> None:
    file, data = root / "last.yaml", DataDirectory(root / "new")
    file.write_text(format_survey(LAST))
    with pytest.raises(SurveyError, match="lookback"):
        read_survey(file, counted_at(data.root))
    data.record_destination("last", "a Kafka cluster", LAST.version)
    assert read_survey(file, counted_at(data.root)).version == 3
    (data.root / "last.destination").unlink()
    assert data.counted_version("last") is None
    with EmbeddedApp(data.collector, [LAST], bytes(32), bytes(32)):
        pass
    known = read_survey(file, counted_at(data.root))
    assert Scheme(known).terms == Scheme(LAST).terms
    with EmbeddedApp(data.collector, [known], bytes(32), bytes(32)):
        pass


def test_a_capture_knows_the_version_of_its_surveys(root: Path) -> None:
    file = root / "last.yaml"
    file.write_text(format_survey(LAST))
    DirectorySink(root / "captured", 1, Scheme(LAST)).close()
    assert read_survey(file, counted_at(root / "new", capture=root / "captured")).version == 3


@pytest.mark.usefixtures("after_the_switch")
@pytest.mark.parametrize("counted_here", [True, False], ids=["in this process", "on a cluster"])
def test_an_edge_goes_on_with_its_survey(root: Path, counted_here: bool) -> None:
    edge = root / "edge-of-0.2"
    if not counted_here:
        shutil.rmtree(edge / "data" / "collector")
    _, survey, _ = read_edge(edge / "edge.yaml")
    assert (survey.version, survey.horizon) == (2, 4)
    (edge / "data" / "calls.destination").unlink()
    if not counted_here:
        with pytest.raises(SurveyError, match="write `lookback`"):
            read_edge(edge / "edge.yaml")


def test_a_record_of_the_registry_has_the_version_under_which_it_was_published(root: Path, fingerprint: str) -> None:
    former = json.loads((root / "survey-record.json").read_text())["value"].encode()
    found: dict[str, Published] = {}
    for value, digits in ((former, fingerprint), (LAST.model_dump_json().encode(), Scheme(LAST).fingerprint)):
        headers = [(FINGERPRINT_HEADER, digits.encode())]
        admit(found, SimpleNamespace(value=value, headers=headers, timestamp=0, offset=0, topic="surveys"))
    assert {survey: known.survey.version for survey, known in found.items()} == {"tiny": 2, "last": 3}
    for known in found.values():
        assert Scheme(known.survey).fingerprint == known.fingerprint


@pytest.mark.usefixtures("after_the_switch")
def test_commands_that_only_read_a_file_are_told_where_it_is_counted(root: Path, fingerprint: str) -> None:
    file, data = root / "survey.yaml", ("--data", root / "data")
    refused = type_in("survey", "check", file)
    assert isinstance(refused.exception, SurveyError) and "promised more" in refused.exception.message
    (facts,) = json.loads(type_in("survey", "check", file, *data, "--json").stdout)
    assert (facts["fingerprint"], facts["pin"]) == (fingerprint, fingerprint)
    assert type_in("survey", "terms", file, *data).stdout_bytes == (root / "terms.json").read_bytes()
    assert json.loads(type_in("plan", file, *data, "--json").stdout)["survey"] == "tiny"
    signed = root / "signed.yaml"
    signed.write_text(format_survey(read_survey(file, counted_at(root / "data"))))
    told = type_in("survey", "sign", signed, "--key", root / "author.key", *data)
    assert told.exit_code == 0 and f"fingerprint {fingerprint}\n" in told.output
    assert read_survey(signed, counted_at(root / "data")).signature is not None


def test_a_device_joins_signed_terms_of_version_3_by_their_author_and_by_their_pin(root: Path) -> None:
    file = root / "last.yaml"
    file.write_text(format_survey(LAST))
    scheme, author = sign_file(file, root / "author.key", lambda survey: 3)
    signature = read_survey(file, lambda survey: 3).signature
    assert scheme.terms == Scheme(LAST).terms, "a signature is no term"
    limits = Limits(report=9, value=999, year=999, ratio=1)
    with Device(root / "by author", limits=limits) as device:
        device.join(scheme.terms, author=author, signature=signature)
    with Device(root / "by pin", limits=limits) as device:
        with pytest.raises(DeviceError, match="pin"):
            device.join(scheme.terms, pin=scheme.fingerprint)
        device.join(scheme.terms, pin=scheme.pin)


def test_only_an_id_is_looked_up(root: Path) -> None:
    """What a text calls its id becomes part of a path."""
    asked: list[str] = []
    file = root / "hostile.yaml"
    for name in ("../data", "[a, b]", "'a\\0'", "x/y", "''", "tiny"):
        file.write_text((root / "survey.yaml").read_text().replace("id: tiny", f"id: {name}"))
        try:
            read_survey(file, lambda survey: asked.append(survey))
        except SurveyError:
            continue
    assert asked == ["tiny"]
