"""The questions of `hearsay survey new`: each answer is checked at once, and its price is shown."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime, time, timedelta
from functools import partial
from importlib.resources import files
from typing import Any, get_args
from zoneinfo import ZoneInfo

import typer
from pydantic import ValidationError

from protocols.errors import HearsayError
from protocols.planning import DEVICES, gap_bits, told_apart, widest_interval
from protocols.scheme import Scheme
from protocols.survey import Solution, Survey, version_of_new_texts
from protocols.survey_text import Document, explain, parse_survey

Data = dict[str, Any]
Read = Callable[[str], Data]
TEXTS = json.loads((files("hearsay.terminal") / "asking.json").read_text("utf-8"))
"""By name: questions with their usual answers, and prices; a name of several words is for where its case holds."""

# Placeholders for keys that were not asked yet, so that each answer can be checked at once.
UNASKED: Data = {
    "id": "new",
    "period": "1d",
    "eps": "1",
    "attributes": [{"name": "a", "values": ["yes", "no"]}],
}


def ask_for_survey() -> Survey:
    """A survey from answers, each checked as soon as it is given; keys that are not asked keep their defaults."""
    data: Data = {}
    ask = partial(_ask, data)
    ask("id")
    ask("title")
    ask("period")
    ask("time_zone", lambda zone: {"time_zone": zone.strip()} if zone.strip() else {})
    ask("start", default=_midnight(data))
    lasting = _confirmed("lasting")
    if lasting:
        ask("eps_inf")
        ask("eps_1")
        ask("visits", _visits)
    else:
        ask("eps")
    _ask_attribute(data, [])
    while _confirmed("another"):
        _ask_attribute(data, data["attributes"])
    if len(data["attributes"]) > 1:
        typer.echo("smp: a device answers one attribute. spl: all, each with a part of the budget.")
        typer.echo("rs+fd: all, one of them true and the others fake.")
        for line in _price_of_solutions(Survey.model_validate(_draft(data))):
            typer.echo(f"  {line}")
        ask("solution")
    if lasting:
        ask("memo_cap", lambda cap: {} if cap.strip() == "0" else {"memo_cap": cap.strip()})
    ask("minimum")
    return parse_survey(json.dumps(data), "your answers")


def _ask_attribute(data: Data, before: list[Data]) -> None:
    def name(answer: str) -> Data:
        return {"attributes": [*before, {"name": answer.strip(), "values": ["yes", "no"]}]}

    def values(answer: str) -> Data:
        return {"attributes": [*before, {"name": data["attributes"][-1]["name"], **_values(answer)}]}

    def role(answer: str) -> Data:
        return {"attributes": [*before, {**data["attributes"][-1], "role": answer.strip()}]}

    for what, read in {"name": name, "values": values, "role": role}.items():
        _ask(data, what, read)


def _values(answer: str) -> Data:
    """Names separated by commas, or a range.

    >>> _values("red, green"), _values("0..23")
    ({'values': ['red', 'green']}, {'range': {'first': '0', 'last': '23'}})
    """
    span = re.fullmatch(r"\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*", answer)
    if span:
        return {"range": {"first": span[1], "last": span[2]}}
    return {"values": [name.strip() for name in answer.split(",")]}


def _visits(answer: str) -> Data:
    if not answer.isalpha():
        return {"horizon": answer.strip()}
    return {"visitors": {"units": [answer, "ever"]}}


def _midnight(data: Data) -> str:
    """When tomorrow begins, in the survey's time zone; in UTC if it has none, or none that is known."""
    try:
        zone = ZoneInfo(data.get("time_zone", "UTC"))
    except (OSError, ValueError, KeyError):
        zone = ZoneInfo("UTC")
    tomorrow = datetime.combine(datetime.now(zone).date() + timedelta(days=1), time(), zone)
    return tomorrow.isoformat().replace("+00:00", "Z")


def _draft(given: Data) -> Data:
    """The survey so far, with placeholders for what was not asked."""
    draft = UNASKED | {"version": version_of_new_texts(), "start": _midnight(given)} | given
    if "eps_inf" in draft:
        del draft["eps"]
    return draft


def _confirmed(what: str) -> bool:
    question, usual = TEXTS["questions"][what]
    return typer.confirm(question, default=usual)


def _ask(data: Data, what: str, read: Read | None = None, default: str | None = None) -> None:
    """Ask until the answer, together with those before, is valid; then keep it, and show its price."""

    def checked(answer: str) -> Data:
        found = {what: answer.strip()} if read is None else read(answer)
        draft = _draft(data | found)
        try:
            Survey.model_validate(draft)
        except ValidationError as error:
            raise typer.BadParameter(explain(error, Document(draft))) from None
        return found

    question, usual = TEXTS["questions"][what]
    data.update(typer.prompt(question, default=usual if default is None else default, value_proc=checked))
    if what in TEXTS["prices"]:
        typer.echo(f"  {_price(what, Survey.model_validate(_draft(data)))}")


def _price(what: str, survey: Survey) -> str:
    """What an answer reveals, or what remains of precision."""
    variants = {
        "visits by units": bool(survey.units),
        "visits without gaps": survey.horizon == 1,
        "memo_cap without a limit": survey.memo_cap is None,
        "minimum of nobody": survey.minimum == 0,
    }
    said = next((name for name, holds in variants.items() if holds and name.split()[0] == what), what)
    most = max(attribute.k for attribute in survey.attributes)
    held = min(most, survey.memo_cap or most)
    figures = {
        "survey": survey,
        "devices": DEVICES,
        "for_ever": told_apart(survey.eps_inf or 0),
        "once": told_apart(survey.eps_1 or survey.eps or 0),
        "points": _points(survey),
        "smallest": _points(survey, max(survey.minimum, 1)),
        "gap_bits": gap_bits(survey),
        "held": held,
        "held_cost": held * (survey.eps_inf or 0),
    }
    return str(TEXTS["prices"][said].format(**figures))


def _price_of_solutions(survey: Survey) -> Iterator[str]:
    """How precise shares will be with each solution that needs no priors."""
    for solution in get_args(Solution):
        if solution != "rs+rfd":
            try:
                shown = _points(survey.model_copy(update={"solution": solution}))
            except HearsayError as error:
                shown = error.message
            yield f"{solution}: {shown} with {DEVICES:,} devices"


def _points(survey: Survey, devices: int = DEVICES) -> str:
    return f"± {100 * widest_interval(Scheme(survey), devices):.2g} percentage points (95 %)"
