"""`hearsay dossier`: one page for the person who must answer for a collection, and its check."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hearsay.survey_files import MAX_BESIDE_BYTES, read_survey, read_text
from hearsay.terminal import console
from protocols.errors import ResultsError, counted

if TYPE_CHECKING:
    from pages.document import Element


def dossier(
    survey: console.SurveyFile,
    html: Path | None = None,
    data: Path | None = None,
    kafka: console.Kafka = None,
    verify: Path | None = None,
    as_json: console.AsJson = False,
) -> None:
    """Write a page in plain words for a data protection officer: what is asked, and who can learn what from it.

    It is made from the survey alone, or with --data or --kafka from what was collected, too. Every number is computed,
    and beside it is the command that prints it again. What an officer writes into the page's boxes is not compared.

    Ends with code 1 if --verify finds a difference.

    Example: hearsay dossier survey.yaml --html dossier.html
    """
    from pages.document import differences, document_page

    if html is None and verify is None and not as_json:
        raise typer.BadParameter("name a file with --html, or with --verify")
    with console.progress("computing the dossier"):
        title, found = _dossier(survey, data, kafka)
    page = document_page(title, found)
    said = console.err if as_json else console.out
    if as_json:
        console.print_json([element._asdict() for element in found])
    if verify is not None:
        differing = list(differences(read_text(verify, MAX_BESIDE_BYTES, "give a file that --html wrote"), page))
        for says, computed in differing:
            console.err.print(f"it says:  {says}\ncomputed: {computed}", soft_wrap=True, markup=False)
        if differing:
            raise ResultsError(
                f"{verify} differs from what is computed in {counted(len(differing), 'place')}",
                "make it again with --html, from the survey and the results that it is about",
            )
        said.print(f"{verify}: every number was computed again, and none differs", soft_wrap=True, markup=False)
    if html is not None:
        html.write_text(page, encoding="utf-8")
        said.print(f"wrote {html}", soft_wrap=True, markup=False)


def _dossier(file: Path, data: Path | None, kafka: str | None) -> tuple[str, list[Element]]:
    """The title and the elements."""
    from hearsay.data_directory import DataDirectory
    from hearsay.reports.dossier import dossier as dossier_of
    from hearsay.reports.files import chosen, open_results
    from protocols.scheme import Scheme
    from servers.settings import load
    from stream_app.kafka import Topics, retentions

    scheme = Scheme(read_survey(file))
    title = f"Dossier: {scheme.survey.title or scheme.survey.id}"
    if data is None and kafka is None:
        return title, list(dossier_of(scheme, file.name, retentions(None, Topics())))
    with open_results(scheme.survey.id, data, kafka) as (results, _):
        published, finals = chosen(results, scheme.survey.id), results.histograms(scheme.survey.id)
    if Scheme(published).fingerprint != scheme.fingerprint:
        what = f"{file} has other terms than survey {published.id!r} that was collected"
        raise ResultsError(what, "give the file that was published")
    if not finals:
        raise ResultsError("no period is final yet", "leave --data and --kafka out, or wait until one is closed")
    kept, settings = {"the data directory, with its log of all reports": "until it is deleted"}, load().at(kafka).kafka
    if kafka is not None:
        kept = retentions(settings, Topics(settings.prefix))
    lost = data is not None and DataDirectory(data).loss_note.exists()
    where = f" {shlex.join(console.where(data, kafka))}"
    return title, list(dossier_of(scheme, file.name, kept, finals, where, lost))
