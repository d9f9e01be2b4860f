"""`hearsay survey`: check, write and publish survey files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from hearsay.terminal import console
from protocols.errors import SurveyError

if TYPE_CHECKING:
    from protocols.scheme import Scheme

app = typer.Typer(help="Check, write and publish survey files.", no_args_is_help=True)

Data = dict[str, Any]


@app.command()
def publish(
    file: console.SurveyFile,
    kafka: console.Kafka = None,
    as_json: console.AsJson = False,
) -> None:
    """Publish a survey to a Kafka cluster, so that its workers count reports for it.

    Titles, descriptions, groups and roles may change afterwards. Terms may not: changed terms need a new id.

    Example: hearsay survey publish survey.yaml
    """
    from hearsay.survey_files import counted_on, read_survey
    from protocols.scheme import Scheme
    from servers.settings import load
    from stream_app.kafka import Topics
    from stream_app.kafka import publish as publish_survey

    settings = load().at(kafka).kafka
    with console.progress("publishing"):
        scheme = Scheme(read_survey(file, counted_on(settings)))
        survey = scheme.survey
        new = publish_survey(settings, Topics(settings.prefix), survey)
    if as_json:
        console.print_json({"survey": survey.id, **scheme.names, "published": new})
    else:
        state = "published" if new else "is already published with these terms"
        console.out.print(f"[green]✓[/] [bold]{survey.id}[/] {state}, {_names(scheme)}", soft_wrap=True)
        console.print_next("worker")


@app.command()
def terms(file: console.SurveyFile, data: console.Data = None, kafka: console.Kafka = None) -> None:
    """Write the resolved terms of a survey, byte for byte as devices get them, without a newline.

    Their SHA-256 begins with the fingerprint, and is the pin. An app that carries them needs to trust nobody for them.

    Example: hearsay survey terms survey.yaml > terms.json
    """
    from hearsay.survey_files import counted_at, read_survey
    from protocols.scheme import Scheme

    sys.stdout.buffer.write(Scheme(read_survey(file, counted_at(data, kafka))).terms)


@app.command()
def sign(
    file: console.SurveyFile,
    key: Annotated[Path, typer.Option()],
    data: console.Data = None,
    kafka: console.Kafka = None,
    as_json: console.AsJson = False,
) -> None:
    """Sign the terms of a survey, so that devices accept them from whoever they get them.

    The signature becomes the line `signature:` of the file, which is no part of the terms. Devices are given the public
    key (`author`) instead of a fingerprint, and accept every survey that is signed with it.

    Example: hearsay survey sign survey.yaml --key author.key
    """
    from hearsay.signing import sign_file
    from hearsay.survey_files import counted_at

    scheme, author = sign_file(file, key, counted_at(data, kafka))
    if as_json:
        console.print_json({**scheme.names, "author": author})
    else:
        console.out.print(f"[green]✓[/] {escape(str(file))} is signed, {_names(scheme)}", soft_wrap=True)
        console.out.print(f"Devices accept it by its author: {author}", soft_wrap=True)


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(show_default=False)],
    data: console.Data = None,
    kafka: console.Kafka = None,
    as_json: console.AsJson = False,
) -> None:
    """Check survey files against every rule. Errors name the line, the problem and the correction.

    A report of each form is made and read, too. If one file is wrong, the others are checked all the same.

    Example: hearsay survey check survey.yaml
    """
    checked: dict[Path, Scheme] = {}
    codes = [0]
    for path in files:
        try:
            checked[path] = _checked(path, data, kafka)
        except SurveyError as error:
            if len(files) == 1:
                raise  # so that --debug shows where
            from hearsay.terminal.explaining import explain  # with what SQLite raises

            codes.append(explain(error))
    if as_json:
        console.print_json([_facts(scheme) for scheme in checked.values()])
    else:
        _show(checked)
    if max(codes):
        raise typer.Exit(max(codes))


def _checked(path: Path, data: Path | None, kafka: str | None) -> Scheme:
    from hearsay.survey_files import counted_at, read_survey
    from protocols.scheme import Scheme
    from protocols.wire import try_reports
    from stream_app.sizes import check_sizes

    survey = read_survey(path, counted_at(data, kafka))
    check_sizes(survey)
    scheme = Scheme(survey)
    try_reports(scheme)
    return scheme


def _names(scheme: Scheme) -> str:
    """By what the terms of a survey are known, in words."""
    return ", ".join(f"{what} {digits}" for what, digits in scheme.names.items())


def _show(checked: dict[Path, Scheme]) -> None:
    for path, scheme in checked.items():
        named = f"[bold]{scheme.survey.id}[/], {_names(scheme)}"
        console.out.print(f"[green]✓[/] {escape(str(path))}: {named}", soft_wrap=True)
        table = Table("attribute", "values", "mechanism", "bytes in a report", box=None, padding=(0, 2))
        for name, facts in _facts(scheme)["attributes"].items():
            table.add_row(name, str(facts["values"]), facts["mechanism"], str(facts["bytes"]))
        console.out.print(table)


@app.command()
def schema(
    markdown: Annotated[bool, typer.Option("--markdown")] = False,
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
    file: Annotated[Path, typer.Argument(show_default=False)],
    example: str = "",
    table: Annotated[Path | None, typer.Option("--from")] = None,
) -> None:
    """Ask a few questions, and write a survey file in which every key is explained.

    Each answer is checked at once, and its price is shown: what it reveals, or how precise results will be. With --from
    nothing is asked: values that fewer than ten rows have are not in the file, and columns of names are left out.

    Example: hearsay survey new survey.yaml
    """
    from hearsay.survey_files import example_text
    from hearsay.terminal.asking import ask_for_survey
    from protocols.survey_text import format_survey

    if file.exists():
        raise SurveyError(f"{file} exists already", "choose another name, or remove it first")
    if example and table:
        raise typer.BadParameter("choose one of --example and --from")
    if table:
        from hearsay.library.proposing import survey_from  # reading tables is an extra

        text = format_survey(survey_from(table))
    else:
        text = example_text(example) if example else format_survey(ask_for_survey())
    file.write_text(text, "utf-8")
    console.out.print(f"Wrote {file}.", soft_wrap=True, markup=False)
    console.print_next("plan", file)


def _facts(scheme: Scheme) -> Data:
    return {
        "id": scheme.survey.id,
        "fingerprint": scheme.fingerprint,
        "pin": scheme.pin,
        "attributes": {
            q.name: {"values": q.k, "mechanism": q.label, "bytes": q.mechanism.encoding.answer.bytes}
            for q in scheme.questions
        },
    }
