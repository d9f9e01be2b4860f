"""The reference of survey files: for editors (JSON Schema) and for people (docs/survey-reference.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from protocols.mechanisms.catalogue import RECORDS
from protocols.mechanisms.record import CHOOSERS, MechanismRecord, Use
from protocols.survey.attribute import Attribute, ForecastPlan, Span
from protocols.survey.calendar import Visitors
from protocols.survey.crosses import Cross
from protocols.survey.grid import Grid, Reach
from protocols.survey.model import Survey
from protocols.survey.roles import ROLES

DIALECT = "https://json-schema.org/draft/2020-12/schema"

USES: dict[Use, str] = {
    "one-shot": "`eps`",
    "memo only": "memo only",
    "two rounds": "`eps_1`",
    "rs+fd": "rs+fd",
    "rs+rfd": "rs+rfd",
}
"""What a survey writes to use a mechanism this way."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a survey file, for editors that complete and check YAML."""
    return {"$schema": DIALECT, **Survey.model_json_schema()}


def reference() -> str:
    """docs/survey-reference.md."""
    return "\n".join(
        [
            "# Survey reference",
            "",
            "A survey is one YAML (or JSON) file: everything that devices and collectors must agree on. Unknown keys",
            "are refused. Names of values are taken as they are written: `yes`, `12:30` and `010` are what they look",
            "like. `hearsay survey check FILE` checks a file, `hearsay survey new` writes one, and `hearsay survey",
            "schema` prints the JSON Schema that editors use. `hearsay plan FILE` shows what a survey guarantees.",
            "",
            "Everything except `title`, `description`, `forecast`, `areas`, `signature`, `groups` and `role` is part",
            "of the survey's fingerprint, which travels with every report: reports made under other terms are refused.",
            "It also covers the mechanisms that were chosen and their tables of probabilities. Changed terms need",
            "a new `id`.",
            "",
            "Budgets: `eps_inf` and `eps_1` (a memo, and fresh noise on it for every report), or `eps_inf` alone (the",
            "memo itself is sent every time: memo only), or `eps` (fresh noise on the truth for every report).",
            "",
            "`time_zone` is looked up when the file is read, for 20 years from `start`; the offsets found are part of",
            "the terms ([time zones](first-hour.md#time-zones)). Times without a key for it are those of `start`.",
            "",
            *_table("The survey", Survey),
            *_table("Each of `attributes`", Attribute),
            *_table("Each of `crosses`", Cross),
            "A cross asks pairs: `age*area` has a value for each age in each area. Reports of single attributes say",
            "nothing about pairs. Each device draws one question for life, by the shares, so a cross takes devices",
            "from the others; `hearsay plan` shows the errors, and proposes shares for wanted ones. A memo is kept per",
            "pair, and `memo_cap` counts pairs. Crosses need `solution: smp`, have at most 65,536 pairs, and are",
            "refused where their answers would link reports in a crowd of `devices` ([pairs](pairs.md)).",
            "",
            *_table("`visitors`", Visitors),
            *_table("`forecast`", ForecastPlan),
            *_table("`range`", Span),
            *_table("`grid`", Grid),
            *_table("`geo` and `geo_inf`", Reach),
            "Places on a grid are protected by distance, not each from every other: with `geo` (and `geo_inf`) the",
            "attribute has budgets of its own, and the survey's `eps`, `eps_inf` and `eps_1` are those of the others.",
            "Leave them out if there are no others. `geo` alone is fresh noise for every report, `geo_inf` alone the",
            "memo, both are a memo with fresh noise on it; all attributes of a survey have the same. Cells are named",
            "`x0y0` (in the south-west), `x1y0`, and so on. A grid without `geo` is asked like any other values. With",
            "`inside` only some cells are values, and `auto` takes geo-tight, for up to 400 of them",
            "([places](places.md)).",
            "",
            "## Roles",
            "",
            "What mobility reports show of an attribute, and how its values are written. Values that are not written",
            "so are refused.",
            "",
            "| role | reports show | values |",
            "|---|---|---|",
            *(f"| `{role}` | {shown} | {written} |" for role, (shown, written) in ROLES.items()),
            "",
            "## Mechanisms",
            "",
            "| mechanism | fits | what it does |",
            "|---|---|---|",
            *(f"| `{chooser.name}` | always | {chooser.summary} |" for chooser in CHOOSERS.values()),
            *(f"| `{record.name}` | {fits(record)} | {record.summary} |" for record in RECORDS.values()),
            "",
            "## How many values",
            "",
            "| values | with memos (`eps_inf`) | without (`eps`, also with `one_in`) |",
            "|---|---|---|",
            "| a few | `l-grr` | `grr` |",
            "| up to 255 | `l-osue`; `loloha` if values keep changing | `oue` |",
            "| up to 65,536 | `l-osue`: a bit for each value, by which reports may be recognised | `oue`, or `olh` |",
            "| up to 1,000,000 | none | `olh`: a few bytes, and hardly more error than `oue` |",
            "",
            "`auto` chooses between the direct and the unary mechanism by the error, and takes `olh` above 65,536",
            "values. There is no lifelong hash for more than 255 values: to estimate so many, its number would have to",
            "name the device ([why](decisions/0012-no-lifelong-hash-for-many-values.md)). With memos, or for more",
            "values, ask for groups of values first, and for the values of some groups in a second survey.",
            "",
            "Many values are a `range`, or in a text file beside the survey, one in each line: `values_from:",
            "names.txt` instead of `values`. The file is read together with the survey; its lines become the values.",
            "",
            "The declared values are all there is: a survey does not find values that nobody listed. Protocols that do",
            "divide devices into G groups that report prefixes of a value; they find one only if its share is about",
            "4 sqrt(V G / n) or more, V the variance of a report: 2 % of a million devices for eps = 1 and G = 8.",
            "Declare a value such as `other` instead, and follow it up with another survey.",
            "",
        ]
    )


def fits(record: MechanismRecord) -> str:
    """Which surveys can use a mechanism, in a few words.

    >>> fits(RECORDS["geometric"])
    '`eps`, memo only, a range'
    """
    uses = [text for use, text in USES.items() if record.fits(use)]
    needs = ["a range"] * record.needs_order + ["a grid"] * record.needs_grid
    return ", ".join([*uses, *needs])


def _table(title: str, model: type[BaseModel]) -> Iterator[str]:
    schema = model.model_json_schema()
    yield from (f"## {title}", "", "| key | what to write | default | meaning |", "|---|---|---|---|")
    for key, entry in schema["properties"].items():
        default = "required" if key in schema.get("required", ()) else _shown(entry.get("default"))
        yield f"| `{key}` | {_kind(entry)} | {default} | {entry['description']} |"
    yield ""


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
