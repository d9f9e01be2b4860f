"""`hearsay survey`: check, write and publish survey files."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from hearsay.terminal import console
from protocols.errors import SurveyError

if TYPE_CHECKING:
    from protocols.scheme import Scheme
    from protocols.survey import Survey

app = typer.Typer(help="Check, write and publish survey files.", no_args_is_help=True)

Data = dict[str, Any]

# Placeholders for keys that were not asked yet, so that each answer can be checked at once.
UNASKED: Data = {
    "id": "new",
    "start": "2026-01-01T00:00:00Z",
    "period": "1d",
    "eps": "1",
    "attributes": [{"name": "a", "values": ["yes", "no"]}],
}


@app.command()
def publish(
    file: Annotated[Path, typer.Argument(help="A survey file.", show_default=False)],
    kafka: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="The cluster, if not the one in HEARSAY_KAFKA_*.")
    ] = None,
    as_json: console.AsJson = False,
) -> None:
    """Publish a survey to a Kafka cluster, so that its workers count reports for it.

    Titles, descriptions, groups and roles may change afterwards. Terms may not: changed terms need a new id.

    Example: hearsay survey publish survey.yaml
    """
    from hearsay.survey_files import read_survey
    from protocols.scheme import Scheme
    from servers.settings import load
    from stream_app.kafka import existing
    from stream_app.kafka import publish as publish_survey

    scheme = Scheme(read_survey(file))
    survey = scheme.survey
    settings = (load() if kafka is None else load().at(kafka)).kafka
    with console.progress("publishing"):
        new = publish_survey(settings, existing(settings), survey)
    if as_json:
        console.print_json({"survey": survey.id, "fingerprint": scheme.fingerprint, "published": new})
    else:
        state = "published" if new else "is already published with these terms"
        console.out.print(f"[green]✓[/] [bold]{survey.id}[/] {state}, fingerprint {scheme.fingerprint}")


@app.command()
def terms(file: Annotated[Path, typer.Argument(help="A survey file.", show_default=False)]) -> None:
    """Write the resolved terms of a survey, byte for byte as devices get them, without a newline.

    Their SHA-256 begins with the fingerprint. An app that carries them needs to trust nobody for them.

    Example: hearsay survey terms survey.yaml > terms.json
    """
    from hearsay.survey_files import read_survey
    from protocols.scheme import Scheme

    sys.stdout.buffer.write(Scheme(read_survey(file)).terms)


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(help="Survey files (YAML or JSON).", show_default=False)],
    as_json: console.AsJson = False,
) -> None:
    """Check survey files against every rule. Errors name the line, the problem and the correction.

    Example: hearsay survey check survey.yaml
    """
    from hearsay.survey_files import read_survey
    from protocols.scheme import Scheme
    from stream_app.kafka import check_sizes

    schemes = [Scheme(read_survey(path)) for path in files]
    for scheme in schemes:
        check_sizes(scheme.survey)
    if as_json:
        console.print_json([_facts(scheme) for scheme in schemes])
        return
    for path, scheme in zip(files, schemes, strict=True):
        console.out.print(
            f"[green]✓[/] {escape(str(path))}: [bold]{scheme.survey.id}[/], fingerprint {scheme.fingerprint}"
        )
        table = Table("attribute", "values", "mechanism", "bytes in a report", box=None, padding=(0, 2))
        for name, facts in _facts(scheme)["attributes"].items():
            table.add_row(name, str(facts["values"]), facts["mechanism"], str(facts["bytes"]))
        console.out.print(table)


@app.command()
def schema(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the reference in Markdown instead.")] = False,
) -> None:
    """Print the JSON Schema of survey files, for editors that complete and check them.

    Example: hearsay survey schema > survey.schema.json
    """
    from protocols.survey_text import json_schema, reference

    if markdown:
        typer.echo(reference(), nl=False)
    else:
        console.print_json(json_schema())


@app.command()
def new(
    file: Annotated[Path, typer.Argument(help="The file to write.", show_default=False)],
    example: Annotated[
        str, typer.Option(help="Copy an annotated example instead: mobility-week, telemetry, demand-year.")
    ] = "",
) -> None:
    """Ask a few questions, and write a survey file in which every key is explained.

    Example: hearsay survey new survey.yaml
    """
    from hearsay.survey_files import example_text
    from protocols.survey_text import format_survey

    if file.exists():
        raise SurveyError(f"{file} exists already", "choose another name, or remove it first")
    text = example_text(example) if example else format_survey(_ask())
    file.write_text(text, "utf-8")
    console.out.print(f"Wrote {escape(str(file))}. Next: hearsay plan {escape(str(file))}", soft_wrap=True)


def _facts(scheme: Scheme) -> Data:
    return {
        "id": scheme.survey.id,
        "fingerprint": scheme.fingerprint,
        "attributes": {
            q.name: {"values": q.k, "mechanism": q.label, "bytes": q.mechanism.encoding.answer.bytes}
            for q in scheme.questions
        },
    }


def _ask() -> Survey:
    """A survey from answers, each checked as soon as it is given; keys that are not asked keep their defaults."""
    from protocols.survey_text import parse_survey

    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    data: Data = {}
    _prompt(data, "Id of the survey (lower-case letters, digits, - . _)", _key("id"))
    _prompt(data, "Title", _key("title"), default="")
    _prompt(data, "Start of the first period", _key("start"), default=midnight.strftime("%Y-%m-%dT%H:%M:%SZ"))
    _prompt(data, "Length of a period, in which a device reports once (15m, 1h, 1d, ...)", _key("period"), default="1d")
    if typer.confirm("Will the same devices report in many periods?", default=True):
        _prompt(data, "Budget of all reports of one value together, for ever (eps_inf)", _key("eps_inf"), default="4")
        _prompt(data, "Budget of a single report (eps_1, below eps_inf)", _key("eps_1"), default="2")
        _prompt(data, "Longest window in which unique devices are counted, in periods", _key("horizon"), default="7")
    else:
        _prompt(data, "Budget of one report (eps)", _key("eps"), default="1")
    _ask_attributes(data)
    if len(data["attributes"]) > 1:
        typer.echo("smp: a device answers one attribute. spl: all, each with a part of the budget.")
        typer.echo("rs+fd: all, one of them true and the others fake.")
        _prompt(data, "How are several attributes asked? (smp, spl, rs+fd)", _key("solution"), default="smp")
    return parse_survey(json.dumps(data), "your answers")


def _ask_attributes(data: Data) -> None:
    _ask_attribute(data, [])
    while typer.confirm("Another attribute?", default=False):
        _ask_attribute(data, data["attributes"])


def _ask_attribute(data: Data, before: list[Data]) -> None:
    def name(answer: str) -> Data:
        return {"attributes": [*before, {"name": answer.strip(), "values": ["yes", "no"]}]}

    def values(answer: str) -> Data:
        return {"attributes": [*before, {"name": data["attributes"][-1]["name"], **_values(answer)}]}

    _prompt(data, "Name of the attribute (such as favourite_colour)", name)
    _prompt(data, "Its values (red, green, blue; or whole numbers: 0..23)", values)


def _values(answer: str) -> Data:
    """Names separated by commas, or a range.

    >>> _values("red, green"), _values("0..23")
    ({'values': ['red', 'green']}, {'range': {'first': '0', 'last': '23'}})
    """
    span = re.fullmatch(r"\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*", answer)
    if span:
        return {"range": {"first": span[1], "last": span[2]}}
    return {"values": [name.strip() for name in answer.split(",")]}


def _key(name: str) -> Callable[[str], Data]:
    return lambda answer: {name: answer.strip()}


def _prompt(data: Data, question: str, read: Callable[[str], Data], default: str | None = None) -> None:
    """Ask until the answer, together with those before, is valid; then keep it."""
    from pydantic import ValidationError

    from protocols.survey import Survey
    from protocols.survey_text import Document, explain

    def checked(answer: str) -> Data:
        found = read(answer)
        draft = UNASKED | data | found
        if "eps_inf" in draft:
            del draft["eps"]
        try:
            Survey.model_validate(draft)
        except ValidationError as error:
            raise typer.BadParameter(explain(error, Document(draft))) from None
        return found

    data.update(typer.prompt(question, default=default, value_proc=checked))
