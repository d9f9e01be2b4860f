"""`hearsay dossier`: every number is computed, a changed one is found, and the first page needs no mathematics."""

import json
import re
import shlex
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from pypdf import PdfReader
from typer.testing import CliRunner

from hearsay.cli import app
from hearsay.reports.dossier import dossier
from hearsay.survey_files import EXAMPLES, example_text
from pages.document import YOURS, differences, document_page
from tests.pages.test_static_page import plain

DOCS = Path(__file__).parents[2] / "docs" / "dossiers"
MATHEMATICS = re.compile(r"[\u0370-\u03ff]|\bln\b|epsilon|logarithm", re.IGNORECASE)
SMALL = """{id: s, title: A <b> & c, start: 2026-01-01T00:00:00Z, period: 1d, clock: source, TERMS,
 attributes: [{name: colour, values: [red, green, blue]}]}"""


def call(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == code, result.output
    return result.stdout


def written(tmp_path: Path, terms: str) -> tuple[Path, Path]:
    """A survey, and its dossier."""
    survey, page = tmp_path / "survey.yaml", tmp_path / "dossier.html"
    survey.write_text(SMALL.replace("TERMS", terms))
    call("dossier", survey, "--html", page)
    return survey, page


def said(survey: Path, *words: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(call("dossier", survey, "--json", *words))
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_dossiers_in_docs_are_what_the_command_makes(tmp_path: Path, name: str) -> None:
    survey = tmp_path / f"{name}.yaml"
    survey.write_text(example_text(name))
    assert "none differs" in call("dossier", survey, "--verify", DOCS / f"{name}.html")


def test_every_changed_digit_is_found_and_what_the_officer_writes_is_not_compared(tmp_path: Path) -> None:
    survey, page = written(tmp_path, "eps_inf: 3, eps_1: 1, memo_cap: 3, central: {delta: 1e-8}")
    text = page.read_text()
    made = document_page(*dossier(survey, None, None))
    body, end = text.index("<body>"), text.index('<p class="versions">')
    digits = [found.start() for found in re.finditer(r"\d", text[:end]) if found.start() > body]
    assert len(digits) > 200
    for place in digits:
        changed = text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]
        assert len(list(differences(changed, made))) == 1, text[place - 40 : place + 40]
    assert list(differences(text.replace("</body>", "<p>Nobody can learn anything.</p></body>"), made)), "nor added"
    filled = re.sub(f"{YOURS}[^<]*", "We have 12 lawyers.<br>\nSigned.", text)
    assert filled != text and not list(differences(filled, made))
    page.write_text(text.replace("73.2", "73.1", 1))
    failed = CliRunner().invoke(app, ["dossier", str(survey), "--verify", str(page)])
    assert failed.exit_code == 1 and "73.1" in failed.stderr and "73.2" in failed.stderr
    assert "differs from what is computed in 1 place" in str(failed.exception)


def test_numbers_are_those_of_the_commands_beside_them(tmp_path: Path) -> None:
    """A command that names a key of its JSON prints what each number is made of."""
    survey, _ = written(tmp_path, "eps_inf: 4, eps_1: 2, devices: 3250, central: {delta: 1e-8}, minimum: 20")
    found = said(survey)
    commands = {element["command"] for element in found if element["command"]}
    assert {words.split()[1] for words in commands} == {"plan", "survey", "dossier", "topics"}
    drawn = json.loads(call("plan", survey, "--json"))
    for command in commands:
        words, _, key = command.partition(": ")
        assert not key or drawn[key] is not None, command
        words = words.replace("survey.yaml", str(survey)).replace("PAGE", str(tmp_path / "dossier.html"))
        assert call(*shlex.split(words)[1:]), command
    text = " ".join(element["text"] for element in found)
    assert "tables of a week" in text and "by a factor of at most 2.13 " in text, "e^0.756"
    assert "1 in 100,000,000" in text and "at least 3,250 honest devices" in text
    assert "a factor of 7.39 for one report, and of 54.6 for all reports" in text
    tables = {element["rows"][0][0]: element["rows"] for element in found if element["rows"]}
    assert [row[2] for row in tables["somebody sees"]][:3] == ["right, at most", "88.1", "98.3"]
    assert ["hearsay.reports", "30 days"] in tables["where"] and ["hearsay.finals", "for ever"] in tables["where"]


def test_a_dossier_says_what_holds_for_the_survey(tmp_path: Path) -> None:
    def text(terms: str) -> str:
        survey, page = written(tmp_path, terms)
        assert "A &lt;b&gt; &amp; c" in page.read_text(), "nothing of a survey is taken for a part of the page"
        return " ".join(element["text"] for element in said(survey))

    fresh = text("eps: 1, contact: ask@example.org")
    assert "adds fresh noise" in fresh and "of any size for all reports" in fresh
    assert "Whom to ask: ask@example.org" in fresh
    assert "no limit of their own (the survey does not declare `central`)" in fresh
    assert "That somebody took part, and when, is not protected." in fresh
    sent = text("eps_inf: 1, central: {delta: 1e-8}, presence_epsilon: 1")
    assert "sends it every time" in sent and "no limit of their own (memos are sent" in sent
    assert "makes anything published at most 2.72 times as likely" in sent and "whom to ask; the survey names" in sent
    assert "refuses the survey with its default limits (the share of a memo" in sent
    assert "takes part with its default limits" in text("eps_inf: 3, eps_1: 1, memo_cap: 3")


def test_after_a_collection_it_has_what_was_collected(tmp_path: Path) -> None:
    terms = "eps_inf: 3, eps_1: 1, memo_cap: 3, central: {delta: 1e-8}"
    survey, page = written(tmp_path, terms)
    data = tmp_path / "data"
    call("run", survey, "--devices", "300", "--periods", "3", "--data", data, "--scenario", "telemetry")
    after = " ".join(element["text"] for element in said(survey, "--data", data))
    report = json.loads(call("report", "s", "--data", data, "--json"))
    sizes = [window["visitors"]["value"] for window in report["windows"] if window["kind"] == "period"]
    days = "(Thu 2026-01-01 to Sat 2026-01-03)"
    assert f"3 periods are final {days}, 3 of them published, with {min(sizes):.0f}" in after
    assert f" to {max(sizes):.0f} reports each. 0 of 3 that were checked contradict" in after
    assert "tables of all periods so far" in after and f"at least {min(sizes):.0f} honest" in after
    call("dossier", survey, "--data", data, "--html", page)
    assert "none differs" in call("dossier", survey, "--data", data, "--verify", page)
    call("dossier", survey, "--verify", page, code=1)
    (data / "memo.lost").touch()
    lost = " ".join(element["text"] for element in said(survey, "--data", data))
    assert "were lost once" in lost and "were lost once" not in after
    survey.write_text(SMALL.replace("TERMS", terms.replace("eps_1: 1", "eps_1: 0.5")))
    failed = CliRunner().invoke(app, ["dossier", str(survey), "--data", str(data), "--html", str(page)])
    assert "has other terms than survey 's' that was collected" in str(failed.exception)


def test_a_dossier_must_go_somewhere_and_be_compared_with_one(tmp_path: Path) -> None:
    survey, _ = written(tmp_path, "eps: 1")
    call("dossier", survey, code=2)
    survey.write_text(survey.read_text().replace("1d", "30s"))
    assert "are shorter than 3600 s): it is for a trusted edge" in call("dossier", survey, "--json"), "and no example"
    failed = CliRunner().invoke(app, ["dossier", str(survey), "--verify", str(tmp_path / "none.html")])
    assert "cannot be read" in str(failed.exception)
    failed = CliRunner().invoke(app, ["dossier", str(survey), "--data", str(tmp_path / "data"), "--json"])
    assert failed.exit_code == 1 and str(tmp_path / "data") in str(failed.exception)


@pytest.mark.long(part="browser")
@pytest.mark.parametrize("name", EXAMPLES)
def test_all_of_it_is_on_paper_and_the_first_sheet_needs_no_mathematics(browser: Browser, name: str) -> None:
    page = browser.new_page(viewport={"width": 688, "height": 1000})
    page.goto((DOCS / f"{name}.html").as_uri())
    sheets = [sheet.extract_text() for sheet in PdfReader(BytesIO(page.pdf(prefer_css_page_size=True))).pages]
    page.emulate_media(media="print")
    parts = page.locator("h1, h2, p, td, th, pre, div, code").all_inner_texts()
    wide = page.evaluate("[...document.querySelectorAll('body *')].filter((one) => one.scrollWidth > 688).length")
    page.close()
    paper = plain("".join(sheets))
    assert len(parts) > 80 and wide == 0
    assert [part for part in parts if plain(part) not in paper] == []
    assert "In short" in sheets[0] and "whether a device reported" in sheets[0], "all six lines are there"
    assert MATHEMATICS.findall(sheets[0]) == []
    assert MATHEMATICS.search("a loss of \u03b5, the ln of it"), "the search finds what it must"
