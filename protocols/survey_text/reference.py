"""The reference of survey files: for editors (JSON Schema) and for people (docs/survey-reference.md)."""

from collections.abc import Iterator
from importlib import resources
from string import Template
from typing import Any

from pydantic import BaseModel

from protocols.mechanisms.catalogue import RECORDS
from protocols.mechanisms.record import CHOOSERS, MechanismRecord, Use
from protocols.survey.attribute import Attribute, ForecastPlan, NowcastPlan, Span
from protocols.survey.calendar import Visitors
from protocols.survey.crosses import Cross
from protocols.survey.grid import Grid, Reach
from protocols.survey.model import Central, Survey
from protocols.survey.versions import Rolling, version_of_new_texts, written

USES: dict[Use, str] = {
    "one-shot": "`eps`",
    "memo only": "memo only",
    "two rounds": "`eps_1`",
    "rs+fd": "rs+fd",
    "rs+rfd": "rs+rfd",
}
"""What a survey writes to use a mechanism this way."""


def json_schema(version: int | None = None) -> dict[str, Any]:
    """The JSON Schema of a survey file, for editors that complete and check YAML; by default of a new one."""
    version = version or version_of_new_texts()
    schema = Survey.model_json_schema()
    _rename(schema, Survey, version)
    _rename(schema["$defs"]["Attribute"], Attribute, version)
    if version < 3:
        del schema["$defs"]["Rolling"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _rename(schema: dict[str, Any], model: type[BaseModel], version: int) -> None:
    """Give the properties of a model's schema the keys that they have in texts of a version."""
    named = {field: written(model.__name__, field, version) for field in schema["properties"]}
    schema["properties"] = {key: schema["properties"][field] for field, key in named.items() if key is not None}


def reference(version: int | None = None) -> str:
    """docs/survey-reference.md: the text beside this file, with tables of what models and the catalogue say."""
    version = version or version_of_new_texts()
    models: list[type[BaseModel]] = [Survey, Attribute, Cross, Visitors, Central]
    models += [ForecastPlan, NowcastPlan, Span, Grid, Reach]
    mechanisms = [f"| `{name}` | always | {summary} |" for name, summary in CHOOSERS.items()]
    mechanisms += [f"| `{record.name}` | {fits(record)} | {record.summary} |" for record in RECORDS.values()]
    tables = {model.__name__: "\n".join(_table(model, version)) for model in models}
    tables["Released"] = _about_released(version)
    text = resources.files("protocols.survey_text").joinpath("reference.txt").read_text("utf-8")
    return Template(text).substitute(tables, mechanisms="\n".join(mechanisms))


def fits(record: MechanismRecord) -> str:
    """Which surveys can use a mechanism, in a few words.

    >>> fits(RECORDS["geometric"])
    '`eps`, memo only, a range'
    """
    uses = [text for use, text in USES.items() if record.fits(use)]
    needs = ["a range"] * record.needs_order + ["a grid"] * record.needs_grid
    return ", ".join([*uses, *needs])


def _about_released(version: int) -> str:
    """The part about what is released with noise, which version 3 has."""
    if version < 3:
        return ""
    text = resources.files("protocols.survey_text").joinpath("released.txt").read_text("utf-8")
    return Template(text).substitute(Rolling="\n".join(_table(Rolling, version)))


def _table(model: type[BaseModel], version: int) -> Iterator[str]:
    schema = model.model_json_schema()
    _rename(schema, model, version)
    yield from ("| key | what to write | default | meaning |", "|---|---|---|---|")
    for key, entry in schema["properties"].items():
        default = "required" if key in schema.get("required", ()) else _shown(entry.get("default"))
        yield f"| `{key}` | {_kind(entry)} | {default} | {entry['description']} |"


def _shown(default: Any) -> str:
    return "" if default in (None, "", []) else f"`{default}`"


def _kind(entry: dict[str, Any]) -> str:
    """What a value looks like, in a few words."""
    if "anyOf" in entry:
        return _kind(next(option for option in entry["anyOf"] if option.get("type") != "null"))
    if "$ref" in entry:
        return "see below"
    if "enum" in entry:
        return ", ".join(f"`{word}`" for word in entry["enum"]) if len(entry["enum"]) < 9 else "see below"
    low, high = entry.get("minimum"), entry.get("maximum")
    bounds = "" if low is None else f", {low:g} or more" if high is None else f", {low:g} to {high:,.10g}"
    words = {"integer": "a whole number", "number": "a number", "string": "text", "object": "names and what they hold"}
    if "prefixItems" in entry:
        return "two numbers"
    if entry.get("type") == "array":
        return "a list, see below" if "$ref" in entry.get("items", ()) else "a list of names"
    if isinstance(entry.get("type"), list):
        return "a name"
    if entry.get("format") == "date-time":
        return "a moment"
    return "a duration" if "examples" in entry else words[entry["type"]] + bounds
