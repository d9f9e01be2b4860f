"""`hearsay dossier`: one page for the person who must answer for a collection, and its check."""

from pathlib import Path

import typer

from hearsay.survey_files import MAX_BESIDE_BYTES, read_text
from hearsay.terminal import console
from protocols.errors import ResultsError, counted


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
    from hearsay.reports.dossier import dossier as dossier_of
    from pages.document import differences, document_page

    if html is None and verify is None and not as_json:
        raise typer.BadParameter("name a file with --html, or with --verify")
    with console.progress("computing the dossier"):
        title, found = dossier_of(survey, data, kafka)
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
