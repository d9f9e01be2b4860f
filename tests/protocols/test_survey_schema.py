"""What editors and people are told about surveys is what the model takes."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from producers.scenarios import scenario
from protocols.errors import SurveyError
from protocols.mechanisms import CHOOSERS, NAMES, RECORDS
from protocols.scheme import Scheme
from protocols.survey import Attribute, Cross, Survey
from protocols.survey.attribute import Span
from protocols.survey.grid import Grid, Reach
from protocols.survey_text import json_schema, parse_survey, reference
from protocols.survey_text.reference import fits

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((files("protocols") / "survey_text" / "examples").iterdir(), key=lambda path: path.name)
ATTRIBUTES = [{"name": "a", "values": ["x", "y", "z"]}, {"name": "b", "values": ["x", "y"]}]
PRIORS = [{**each, "prior": dict.fromkeys(each["values"], 1 / len(each["values"]))} for each in ATTRIBUTES]
FITS: dict[str, dict[str, Any]] = {
    "`eps`": {"eps": 1},
    "memo only": {"eps_inf": 2},
    "`eps_1`": {"eps_inf": 2, "eps_1": 0.5},
    "rs+fd": {"eps": 1, "solution": "rs+fd"},
    "rs+rfd": {"eps": 1, "solution": "rs+rfd", "attributes": PRIORS},
}


def test_the_reference_in_the_documents_is_the_one_the_model_gives() -> None:
    """Write it again with: hearsay survey schema --markdown > docs/survey-reference.md"""
    assert (ROOT / "docs" / "survey-reference.md").read_text("utf-8") == reference()


def test_every_key_and_every_mechanism_is_in_the_reference() -> None:
    models = (Survey, Attribute, Cross, Span, Grid, Reach)
    text, fields = reference(), [field for model in models for field in model.model_fields.items()]
    assert all(field.description for _, field in fields)
    assert [name for name in (*dict(fields), *NAMES) if f"| `{name}` |" not in text] == []
    assert json_schema()["$defs"]["Attribute"]["properties"]["mechanism"]["enum"] == list(NAMES)


@pytest.mark.parametrize("context", FITS)
@pytest.mark.parametrize("mechanism", NAMES)
def test_what_the_reference_says_fits_is_what_compiles(mechanism: str, context: str) -> None:
    terms = {"id": "s", "start": "2026-01-01T00:00:00Z", "period": "1d", "attributes": ATTRIBUTES, **FITS[context]}
    first: dict[str, Any] = {**terms["attributes"][0], "mechanism": mechanism}
    if mechanism in RECORDS and RECORDS[mechanism].needs_grid:
        reaches = {"eps": "geo", "eps_inf": "geo_inf", "eps_1": "geo"}
        first = {"name": "a", "grid": {"crs": "own", "cell": 100, "columns": 3, "rows": 2}, "mechanism": mechanism}
        first |= {
            reaches[key]: {"level": 1 + (key == "eps_inf"), "radius": 100} for key in FITS[context] if key in reaches
        }
    if mechanism in RECORDS and RECORDS[mechanism].needs_order:
        first = {"name": "a", "range": {"last": 2}, "mechanism": mechanism}
        first |= {"prior": {"0": 0.25, "1": 0.25, "2": 0.5}} if context == "rs+rfd" else {}
    terms["attributes"] = [first, terms["attributes"][1]]
    try:
        Scheme(Survey.model_validate(terms))
        compiles = True
    except (SurveyError, ValidationError):
        compiles = False
    assert compiles == (mechanism in CHOOSERS or context in fits(RECORDS[mechanism]).split(", "))


def test_the_json_schema_is_json_and_knows_every_key() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert list(schema["properties"]) == list(Survey.model_fields)
    assert schema["additionalProperties"] is False
    assert schema["properties"]["grace"]["default"] == "0s"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_show_and_explain_every_key(path: Path) -> None:
    """Each key is set, or shown as a comment with its default, and some comment stands above it."""
    lines = path.read_text("utf-8").splitlines()
    for key in Survey.model_fields:
        number = next((n for n, line in enumerate(lines) if line.removeprefix("# ").startswith(f"{key}:")), None)
        assert number is not None, f"{key} is not shown"
        while not lines[number - 1].startswith("#"):
            number -= 1
            assert lines[number], f"{key} is not explained"


@pytest.mark.parametrize(
    ("example", "name"), [("mobility-week", "virtual-humans"), ("telemetry", "telemetry"), ("demand-year", "demand")]
)
def test_examples_fit_the_scenarios_they_are_for(example: str, name: str) -> None:
    survey = parse_survey((files("protocols") / "survey_text" / "examples" / f"{example}.yaml").read_text("utf-8"))
    truth = scenario(name, devices=500)
    assert {attribute.name: attribute.values for attribute in survey.attributes} == truth.attributes
