"""`hearsay survey`, as people and programs see it, and files beside a survey: values of attributes, and areas."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hearsay.cli import app as every
from hearsay.commands.survey import app
from hearsay.running.simulating import populate
from hearsay.survey_files import EXAMPLES, example, example_text, read_survey
from hearsay_device import Device, DeviceError
from pages.shapes import grid_shapes
from producers.simulation import check_scenario
from protocols.errors import SurveyError
from protocols.planning import plan
from protocols.scheme import Scheme
from protocols.survey_text import json_schema, parse_survey, reference
from tests.helpers.terms import decode_terms
from tests.pages.towns import square


def run(*arguments: str, answers: str = "") -> str:
    result = CliRunner().invoke(app, list(arguments), input=answers, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path = tmp_path / "survey.yaml"
    path.write_text(example_text("mobility-week"), "utf-8")
    return path


def test_a_survey_is_shown_with_its_mechanisms_as_json_and_as_terms_byte_for_byte(survey: Path) -> None:
    fingerprint, shown = Scheme(example("mobility-week")).fingerprint, run("check", str(survey))
    for part in ("✓", "festival-week", fingerprint, "visit_duration", "l-grr"):
        assert part in shown
    (facts,) = json.loads(run("check", str(survey), "--json"))
    assert facts["id"] == "festival-week"
    assert facts["attributes"]["region"] == {"values": 37, "mechanism": "l-osue", "bytes": 5}
    written = CliRunner().invoke(app, ["terms", str(survey)], catch_exceptions=False)
    assert decode_terms(written.stdout_bytes).fingerprint == fingerprint


def test_signing_replaces_the_file_as_a_whole_and_keeps_its_mode(survey: Path, tmp_path: Path) -> None:
    """Who reads it meanwhile, or after a loss of power, has the old text or the new one."""
    survey.chmod(0o640)
    (tmp_path / "before").hardlink_to(survey)
    run("sign", str(survey), "--key", str(tmp_path / "author.key"))
    assert read_survey(survey).signature is not None
    assert (tmp_path / "before").read_text("utf-8") == example_text("mobility-week")
    assert survey.stat().st_mode & 0o777 == 0o640
    assert {path.name for path in tmp_path.iterdir()} == {"survey.yaml", "before", "author.key"}


def test_a_survey_that_is_bad_not_there_not_text_or_without_an_end_is_refused(survey: Path, tmp_path: Path) -> None:
    survey.write_text(survey.read_text("utf-8").replace("eps_1: 2", "eps_1: two"), "utf-8")
    with pytest.raises(SurveyError, match=r"survey\.yaml: line \d+: eps_1 = two"):
        run("check", str(survey))
    (tmp_path / "latin.yaml").write_bytes("title: café".encode("latin-1"))
    files = {"nothing.yaml": "No such file", "latin.yaml": "not UTF-8", "/dev/zero": "cannot be read: File too large"}
    for name, why in files.items():
        with pytest.raises(SurveyError, match=why):
            read_survey(tmp_path / name)


def test_the_schema_is_printed_for_editors_and_for_people() -> None:
    assert json.loads(run("schema")) == json_schema()
    assert run("schema", "--markdown") == reference()


def test_a_new_survey_is_made_from_answers(tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    answers = [
        "Buttons", "buttons", "Which button?", "1d", "Paris", "Europe/Paris", "tomorrow", "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00+01:00", "y", "3", "5", "1", "7",
        "token", "colour", "red", "red, green, no", "area", "y", "colour", "hour", "0..23", "transition", "dwell", "n",
        "spl", "3", "",
    ]  # fmt: skip
    shown = run("new", str(path), answers="\n".join(answers) + "\n")
    for refused in (
        "id = Buttons: not written as it must be (its name for ever: lower-case letters, digits, . _ -",
        "no such time zone; did you mean Europe/Paris?",
        "not a moment with a time zone",
        "is 01:00 in Europe/Paris",
        "must be below eps_inf",
        "another name",
        "at least 2",
        "twice",
        "'0' is not a transition",
    ):
        assert refused in shown
    survey = read_survey(path)
    assert (survey.id, survey.title, survey.eps_inf, survey.eps_1, survey.solution) == (
        "buttons", "Which button?", 3.0, 1.0, "spl",
    )  # fmt: skip
    assert [attribute.values[:3] for attribute in survey.attributes] == [("red", "green", "no"), ("0", "1", "2")]
    assert [attribute.role for attribute in survey.attributes] == ["area", "dwell"]
    assert (survey.memo_cap, survey.minimum) == (3, 50)
    assert survey.time_zone and "\ntime_zone: Europe/Paris\n" in path.read_text("utf-8")
    assert "# how many values of an attribute a device memoises at most\nmemo_cap: 3\n" in path.read_text("utf-8")
    assert f"Next: hearsay plan {path}" in shown.replace("\n", "")


def test_every_answer_that_costs_something_is_shown_with_its_price(tmp_path: Path) -> None:
    """The figures are those of the plan; other budgets have other prices."""
    path = tmp_path / "new.yaml"
    shown = run(
        "new", str(path), answers="buttons\n\n\n\n\ny\n3\n1\n7\ncolour\nred, green, blue\n\ny\non\na, b\n\nn\n\n2\n\n"
    )
    drawn = plan(Scheme(read_survey(path)))
    worst = max(attribute.precision.if_half for attribute in drawn.attributes)
    alone = Scheme(read_survey(path).model_copy(update={"attributes": (read_survey(path).attributes[1],)}))
    for price in (
        "which of two values it has in up to 95% of the cases",  # 1 / (1 + exp(-3))
        "from one report the guess is right in up to 73% of the cases",  # 1 / (1 + exp(-1))
        f"a yes/no question is answered to ± {196 * plan(alone).attributes[0].precision.if_half:.2g} percentage points",
        "up to 2.8 bits",  # log2(7)
        f"smp: ± {196 * worst:.2g} percentage points (95 %) with 10,000 devices",
        "2 values of an attribute, up to 6.",
        "The smallest results are known to",
    ):
        assert price in shown, price
    assert shown.index("smp: ±") < shown.index("spl: ±") < shown.index("rs+fd: ±")


def test_a_new_survey_counts_unique_devices_by_the_calendar(tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    shown = run("new", str(path), answers="buttons\n\n\n\n\ny\n3\n1\nfortnight\nweek\ncolour\nred, green\n\nn\n\n20\n")
    assert "fortnight" in shown and "first of the week, and ever: " in shown
    assert (read_survey(path).units, read_survey(path).horizon) == (("week", "ever"), 1)
    few = CliRunner().invoke(every, ["plan", str(path), "--devices", "4"])
    assert isinstance(few.exception, SurveyError) and "is one of 4" in str(few.exception)


def test_what_is_proposed_fits_the_limits_of_a_persons_device(tmp_path: Path) -> None:
    """Also of an attribute of many values, which without a cap would cost a device more than it allows."""
    for cap in ("", "0"):
        path = tmp_path / f"new{cap}.yaml"
        run("new", str(path), answers=f"buttons\n\n\n\n\ny\n\n\n\ncolour\na, b, c, d, e\n\nn\n{cap}\n\n")
        survey = read_survey(path)
        assert (survey.eps_inf, survey.eps_1, survey.memo_cap) == (3.0, 1.0, None if cap else 3)
        scheme, refused = Scheme(survey), pytest.raises(DeviceError, match="its charges of a year")
        with Device(tmp_path / f"device{cap}", now=survey.start.timestamp) as device, refused if cap else nullcontext():
            device.join(scheme.terms, pin=scheme.fingerprint)


def test_a_new_one_shot_survey_asks_for_one_budget(tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    run("new", str(path), answers="buttons\n\n\nAsia/Tokyo\n\nn\n0.5\ncolour\nred, green\n\nn\n\n")
    assert (read_survey(path).eps, read_survey(path).longitudinal) == (0.5, False)
    assert read_survey(path).start.isoformat().endswith("T00:00:00+09:00"), "midnight of the zone"


def test_an_example_can_be_the_beginning_no_file_is_overwritten_and_no_example_is_guessed(
    survey: Path, tmp_path: Path
) -> None:
    for name in EXAMPLES:
        run("new", str(tmp_path / name), "--example", name)
        assert (tmp_path / name).read_text("utf-8") == example_text(name)
    with pytest.raises(SurveyError, match="exists already"):
        run("new", str(survey))
    with pytest.raises(SurveyError, match="examples: mobility-week, telemetry"):
        run("new", str(tmp_path / "other.yaml"), "--example", "nothing")


SURVEY = "{id: s, start: 2026-01-01T00:00:00Z, period: 1d, eps: 1, attributes: [{name: a, %s}]}"
MEMOS = "eps_inf: 2, eps_1: 1"
TEXT = """
{id: s, start: 2026-01-01T00:00:00Z, period: 1d, attributes: [{name: place, areas: districts.geojson,
 grid: {at: [47.2, 6.0], cell: 500m, columns: 6, rows: 4}, geo: {level: 1.1, radius: 400m}}]}
"""


def written(directory: Path, more: str) -> Path:
    path = directory / "survey.yaml"
    path.write_text(SURVEY % more)
    return path


def test_very_many_values_are_read_from_a_file_and_asked_with_fresh_hashes(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("".join(f"item {place}\n" for place in range(70_000)))
    found = read_survey(written(tmp_path, "values_from: names.txt"))
    assert found.attributes[0].values[-1] == "item 69999"
    assert Scheme(found).questions[0].label == "olh"
    few = ", ".join(f"item {place}" for place in range(3))
    (tmp_path / "names.txt").write_text("item 0\nitem 1\nitem 2")
    same = read_survey(written(tmp_path, "values_from: names.txt")), parse_survey(SURVEY % f"values: [{few}]")
    assert same[0] == same[1]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("values_from: ../names.txt", "not the name of a file"),
        ("values_from: [a]", "not the name of a file"),
        ("values_from: names.txt, values: [a, b]", "other values beside it"),
        ("values_from: others.txt", r"others.txt cannot be read: No such file"),
        ("values_from: names.txt", "lists 'x' twice"),
    ],
)
def test_a_wrong_file_of_values_is_refused_in_words(tmp_path: Path, more: str, words: str) -> None:
    (tmp_path / "names.txt").write_text("x\nx\n")
    with pytest.raises(SurveyError, match=words):
        read_survey(written(tmp_path, more))


@pytest.mark.parametrize(
    ("more", "budgets", "words"),
    [
        ("values_from: names.txt", "eps: 1", "read from beside a survey's file"),
        ("range: {last: 69999}", MEMOS, r"has 70,000 values; auto takes at most 65,536 .*olh up to 1,000,000"),
        ("range: {last: 299}, mechanism: loloha", MEMOS, r"at most 255 values, not 300.*l-osue up to 65,536"),
        ("range: {last: 299}, mechanism: olh", MEMOS, "'olh' does not fit this survey's solution and budgets"),
        ("range: {last: 1000000}", "eps: 1", "more than 1,000,000 values"),
        ("range: {last: 999999}, mechanism: olh, parameter: 61", "eps: 1", "olh cannot hash 1000000 values to g = 61"),
    ],
)
def test_too_many_values_are_refused_with_what_to_take(more: str, budgets: str, words: str) -> None:
    with pytest.raises(SurveyError, match=words):
        parse_survey((SURVEY % more).replace("eps: 1", budgets))


def test_areas_of_a_file_become_groups_and_change_no_fingerprint(tmp_path: Path) -> None:
    survey_file, areas = tmp_path / "survey.yaml", tmp_path / "districts.geojson"
    survey_file.write_text(TEXT)
    with pytest.raises(SurveyError, match="beside the survey"):
        read_survey(survey_file)
    districts = [square("west", 5.9, 47.15, 0.1132), square("far away", 7.0, 47.15, 0.1132)]
    areas.write_text(json.dumps({"type": "FeatureCollection", "features": districts}))
    survey = read_survey(survey_file)
    groups = survey.attributes[0].groups
    assert groups == {"west": tuple(f"x{x}y{y}" for y in range(4) for x in range(2))}
    other = areas.read_text().replace("west", "left")
    areas.write_text(other)
    assert Scheme(read_survey(survey_file)).fingerprint == Scheme(survey).fingerprint
    areas.write_text("{}")
    with pytest.raises(SurveyError, match="cannot be read"):
        read_survey(survey_file)


def test_the_map_has_a_shape_for_each_cell_where_it_is_and_commuters_live_on_the_grid() -> None:
    survey = example("places")
    shapes = grid_shapes(survey)
    assert shapes is not None and shapes["attribute"] == "place"
    assert [shape["properties"]["name"] for shape in shapes["features"]] == list(survey.attributes[0].values)
    (corner, *_) = shapes["features"][0]["geometry"]["coordinates"][0]
    assert corner == pytest.approx([6.02 - 5000 / 75_800, 47.24 - 4000 / 111_200], abs=1e-3)
    check_scenario(survey, populate(survey, "commuters", 50, 2, 0))
