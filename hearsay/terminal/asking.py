"""The questions of `hearsay survey new`: each answer is checked at once, and its price is shown."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime, time, timedelta
from math import log2
from typing import Any, get_args
from zoneinfo import ZoneInfo

import typer
from pydantic import ValidationError

from protocols.errors import HearsayError
from protocols.planning import DEVICES, told_apart, visit_bits, widest_interval
from protocols.scheme import Scheme
from protocols.survey import Solution, Survey
from protocols.survey_text import Document, explain, parse_survey

Data = dict[str, Any]
Read = Callable[[str], Data]
Price = Callable[[Survey], str]

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
    _prompt(data, "Id of the survey (lower-case letters, digits, - . _)", _key("id"))
    _prompt(data, "Title", _key("title"), default="")
    _prompt(data, "Length of a period, in which a device reports once (15m, 1h, 1d, ...)", _key("period"), default="1d")
    question = "Time zone of days and hours, such as Europe/Paris (nothing: days of 24 hours)"
    _prompt(data, question, _optional("time_zone"), default="")
    _prompt(data, "Start of the first period", _key("start"), default=_midnight(data))
    lasting = typer.confirm("Will the same devices report in many periods?", default=True)
    if lasting:
        question = "Budget of all reports of one value together, for ever (eps_inf)"
        _prompt(data, question, _key("eps_inf"), default="3", price=_price_of_eps_inf)
        question = "Budget of a single report (eps_1, below eps_inf)"
        _prompt(data, question, _key("eps_1"), default="1", price=_price_of_one_report)
        question = "Unique devices are counted in windows of up to so many periods, or of a day, week, month or year"
        _prompt(data, question, _visits, default="7", price=_price_of_visits)
    else:
        _prompt(data, "Budget of one report (eps)", _key("eps"), default="1", price=_price_of_one_report)
    _ask_attribute(data, [])
    while typer.confirm("Another attribute?", default=False):
        _ask_attribute(data, data["attributes"])
    if len(data["attributes"]) > 1:
        typer.echo("smp: a device answers one attribute. spl: all, each with a part of the budget.")
        typer.echo("rs+fd: all, one of them true and the others fake.")
        for line in _price_of_solutions(_draft(data, {})):
            typer.echo(f"  {line}")
        _prompt(data, "How are several attributes asked? (smp, spl, rs+fd)", _key("solution"), default="smp")
    if lasting:
        question = "How many values of an attribute may a device memoise at most? (0: no limit)"
        _prompt(data, question, _cap, default="3", price=_price_of_cap)
    question = "Results of fewer reports than this are not published"
    _prompt(data, question, _key("minimum"), default="50", price=_price_of_minimum)
    return parse_survey(json.dumps(data), "your answers")


def _ask_attribute(data: Data, before: list[Data]) -> None:
    def name(answer: str) -> Data:
        return {"attributes": [*before, {"name": answer.strip(), "values": ["yes", "no"]}]}

    def values(answer: str) -> Data:
        return {"attributes": [*before, {"name": data["attributes"][-1]["name"], **_values(answer)}]}

    def role(answer: str) -> Data:
        return {"attributes": [*before, {**data["attributes"][-1], "role": answer.strip()}]}

    _prompt(data, "Name of the attribute (such as favourite_colour)", name)
    _prompt(data, "Its values (red, green, blue; or whole numbers: 0..23)", values, price=_price_of_values)
    _prompt(data, "Its role in mobility reports (plain, area, dwell, amount, transition)", role, default="plain")


def _values(answer: str) -> Data:
    """Names separated by commas, or a range.

    >>> _values("red, green"), _values("0..23")
    ({'values': ['red', 'green']}, {'range': {'first': '0', 'last': '23'}})
    """
    span = re.fullmatch(r"\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*", answer)
    if span:
        return {"range": {"first": span[1], "last": span[2]}}
    return {"values": [name.strip() for name in answer.split(",")]}


def _key(name: str) -> Read:
    return lambda answer: {name: answer.strip()}


def _optional(name: str) -> Read:
    return lambda answer: {name: answer.strip()} if answer.strip() else {}


def _cap(answer: str) -> Data:
    return {} if answer.strip() == "0" else _key("memo_cap")(answer)


def _visits(answer: str) -> Data:
    if not answer.isalpha():
        return _key("horizon")(answer)
    return {"visitors": {"units": [answer, "ever"]}}


def _midnight(data: Data) -> str:
    """When tomorrow begins, in the survey's time zone; in UTC if it has none, or none that is known."""
    try:
        zone = ZoneInfo(data.get("time_zone", "UTC"))
    except (OSError, ValueError, KeyError):
        zone = ZoneInfo("UTC")
    tomorrow = datetime.combine(datetime.now(zone).date() + timedelta(days=1), time(), zone)
    return tomorrow.isoformat().replace("+00:00", "Z")


def _so_far(data: Data, found: Data) -> Data:
    given = data | found
    return UNASKED | {"start": _midnight(given)} | given


def _draft(data: Data, found: Data) -> Survey:
    """The survey so far, with an answer; raises ValidationError."""
    draft = _so_far(data, found)
    if "eps_inf" in draft:
        del draft["eps"]
    return Survey.model_validate(draft)


def _prompt(data: Data, question: str, read: Read, default: str | None = None, price: Price | None = None) -> None:
    """Ask until the answer, together with those before, is valid; then keep it, and show its price."""

    def checked(answer: str) -> Data:
        found = read(answer)
        try:
            _draft(data, found)
        except ValidationError as error:
            draft = _so_far(data, found)
            raise typer.BadParameter(explain(error, Document(draft))) from None
        return found

    data.update(typer.prompt(question, default=default, value_proc=checked))
    if price is not None:
        typer.echo(f"  {price(_draft(data, {}))}")


def _price_of_eps_inf(survey: Survey) -> str:
    """What all reports of a device reveal."""
    return (
        f"Price: whoever links all reports of a device guesses right which of two values it has in up to "
        f"{told_apart(survey.eps_inf or 0):.0%} of the cases (50% is chance)."
    )


def _price_of_one_report(survey: Survey) -> str:
    """What one report reveals, and what remains of precision."""
    return (
        f"Price: from one report the guess is right in up to {told_apart(survey.eps_1 or survey.eps or 0):.0%} of the "
        f"cases. With {DEVICES:,} devices, a yes/no question is answered to {_points(survey)}."
    )


def _price_of_visits(survey: Survey) -> str:
    """What gaps or flags reveal."""
    if survey.units:
        mean, rarest = visit_bits(survey)["flags"]
        return (
            f"Price: a report says whether it is its device's first of the {survey.units[0]}, and ever: "
            f"{mean:.1f} bits on average that help to link reports, the rarest {rarest:.1f}."
        )
    if survey.horizon == 1:
        return "Price: none. Reports of different periods are not connected."
    return (
        f"Price: a report says in which of the last {survey.horizon} periods its device reported before: up to "
        f"{log2(survey.horizon):.1f} bits that help to link reports."
    )


def _price_of_values(survey: Survey) -> str:
    """How precise the shares of the attributes so far will be."""
    return f"Price: with {DEVICES:,} devices, shares are known to {_points(survey)}. More values cost precision."


def _price_of_solutions(survey: Survey) -> Iterator[str]:
    """How precise shares will be with each solution that needs no priors."""
    for solution in get_args(Solution):
        if solution != "rs+rfd":
            try:
                shown = _points(survey.model_copy(update={"solution": solution}))
            except HearsayError as error:
                shown = error.message
            yield f"{solution}: {shown} with {DEVICES:,} devices"


def _price_of_cap(survey: Survey) -> str:
    """What a device reveals whose value changes."""
    each = survey.eps_inf or 0
    most = max(attribute.k for attribute in survey.attributes)
    held = min(most, survey.memo_cap or most)
    limit = "The store must keep its data for the cap to hold." if survey.memo_cap else "There is no limit below that."
    return (
        f"Price: each further value that a device memoises costs up to {each:g} more; {held} values of an attribute, "
        f"up to {held * each:g}. {limit}"
    )


def _price_of_minimum(survey: Survey) -> str:
    """How imprecise the smallest published result is."""
    if survey.minimum == 0:
        return "Price: results of very few people are published, with very wide intervals."
    return (
        f"Price: nothing is published about fewer, nor what would show their number. The smallest results are "
        f"known to {_points(survey, survey.minimum)}."
    )


def _points(survey: Survey, devices: int = DEVICES) -> str:
    return f"± {100 * widest_interval(Scheme(survey), devices):.2g} percentage points (95 %)"
