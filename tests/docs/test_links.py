"""Links lead somewhere, every page is found, what pages say and compute is true, and operators find everything."""

import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.service import Metrics
from hearsay.commands.operations.doctor import named_settings
from hearsay.survey_files import example
from hearsay.terminal.explaining import BROKEN, REFUSED, STOPPED, TRY_AGAIN
from protocols.mechanisms import SupportChannel
from protocols.scheme import Scheme
from protocols.wire import Reason
from servers.settings import Settings
from stream_app.faust_app import crash
from stream_app.faust_app import monitoring as metrics
from stream_app.kafka import Topics, roles
from tests.deploy_test.__main__ import STEPS
from tests.docs.pages import INLINE, ROOT, Page, pages

ROOMS = "protocols servers memo_store analytics producers stream_app hearsay lab deploy docs bench tests"
PLACE = re.compile(rf"({'|'.join(ROOMS.split())})/[\w./-]*")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
LONG = {"docs/forecasting.md": pytest.mark.long(part="pages")}
SHOWING = [
    pytest.param(page, marks=LONG.get(str(page), ()))
    for page in pages()
    if any(block.language == "python" for block in page.blocks)
]


def test_links_lead_somewhere() -> None:
    wrong = [f"{page}: {said}" for page in pages() for said in dead_links(page)]
    assert not wrong, "\n".join(wrong)


def dead_links(page: Page) -> Iterator[str]:
    for link in page.links:
        name, _, anchor = link.partition("#")
        target = (page.path.parent / name).resolve() if name else page.path
        if not target.exists():
            yield link
        elif not target.is_relative_to(ROOT):
            yield f"{link} leads out of the project"
        elif anchor and anchor not in Page(target).anchors:
            yield f"no heading #{anchor} in {target.name}"


def test_files_and_folders_that_a_page_names_exist() -> None:
    named = [(page, place) for page in pages() for place in filter(PLACE.fullmatch, INLINE.findall(page.prose))]
    wrong = [f"{page}: {place}" for page, place in named if not (ROOT / place).exists()]
    assert not wrong, "\n".join(wrong)


def test_every_page_can_be_found_from_the_readme() -> None:
    found, todo = set(), [ROOT / "README.md"]
    while todo:
        path = todo.pop()
        if path in found:
            continue
        found.add(path)
        if path.is_dir():
            todo += path.glob("*.md")
        elif path.suffix == ".md":
            page = Page(path)
            todo += [(path.parent / link.partition("#")[0]).resolve() for link in page.links if link[0] != "#"]
    assert [str(page) for page in pages() if page.path not in found] == []


@pytest.mark.parametrize("page", SHOWING, ids=str)
def test_examples_compute_what_the_page_says(page: Page) -> None:
    names: dict[str, object] = {}
    said: list[str] = []
    for block in page.blocks:
        if block.language == "python":
            parsed = doctest.DocTestParser().get_doctest(block.text, names, str(page), str(page.path), block.line - 1)
            assert parsed.examples, f"{page}, line {block.line}: no example; begin with >>>"
            doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(parsed, out=said.append, clear_globs=False)
            names |= parsed.globs
    assert not said, "".join(said)


@pytest.mark.parametrize("page", ["README.md", "docs/concepts.md"])
def test_pages_say_how_many_of_the_demos_answers_are_true(page: str) -> None:
    """In closed form: an answer names the true value with the floor and the gain of its channel."""
    channel = Scheme(example("mobility-week")).question("gender").channel
    assert isinstance(channel, SupportChannel)
    true = float(channel.gain + channel.floor[0])
    text = " ".join((ROOT / page).read_text().split())
    assert f"{true:.1%}".replace("%", " %") in text


FALSE = (
    "sees a true answer", "sees only noise", "it links nothing", "learns nothing about delivered reports",
    "has them in memory", "cannot lose, sell", "sends nothing before",
)  # fmt: skip
"""What pages have said, and attacks have shown to be false."""


def test_no_page_says_what_was_shown_to_be_false() -> None:
    found = [*ROOT.glob("*.md"), *ROOT.glob("clients/*/README.md")]
    found += [page for each in ("docs", "hearsay/serving/assets", "examples") for page in (ROOT / each).rglob("*")]
    texts = {
        page: " ".join(page.read_text().split()) for page in found if page.suffix in (".md", ".html", ".js", ".svg")
    }
    assert len(texts) > 50
    assert [(page.name, words) for page, text in texts.items() for words in FALSE if words in text] == []


PAGE = (ROOT / "docs" / "operations.md").read_text()
DEPLOYING = (ROOT / "docs" / "deploying.md").read_text()


def documented(names: set[str]) -> set[str]:
    return {name for name in names if f"`{name}`" in PAGE}


def test_every_metric_is_documented() -> None:
    source = re.findall(r'"(hearsay_\w+)"', Path(metrics.__file__).read_text())
    counted = (
        metrics.REPORTS,
        metrics.FINALS,
        metrics.FORECAST,
        metrics.UNEXPECTED,
        metrics.PASSED_OVER,
        metrics.REFUSED_RESULTS,
    )
    counters = {"hearsay_reports", "hearsay_finals", "hearsay_forecast_numbers", "hearsay_unexpected"}
    counters |= {"hearsay_passed_over_records", "hearsay_refused_results"}
    assert counters == {metric.describe()[0].name for metric in counted}
    names = {f"{name}_total" if name in counters else name for name in source}
    assert documented(names) == names
    assert set(re.findall(r"`(hearsay_\w+)`", PAGE)) == names


def test_every_metric_of_a_gateway_is_documented() -> None:
    page = (ROOT / "docs" / "gateway.md").read_text()
    families = [family for family in Metrics().registry.collect() if family.name.startswith("hearsay_")]
    names = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}
    assert set(re.findall(r"^\| `(hearsay_\w+)`", page, flags=re.MULTILINE)) == names


@pytest.mark.parametrize(
    "names",
    [
        {reason.value for reason in Reason},
        {topic.name for topic in Topics().all()},
        {name for name, _ in named_settings(Settings()) if not name.endswith("_FILE")},
    ],
    ids=["reasons", "topics", "settings"],
)
def test_every_one_is_documented(names: set[str]) -> None:
    assert documented(names) == names


def test_every_exit_code_is_documented() -> None:
    codes = re.findall(r"^\| (\d+) \|", PAGE, flags=re.MULTILINE)
    assert set(map(int, codes)) == {0, 2, REFUSED, TRY_AGAIN, STOPPED, BROKEN}
    assert crash.EXIT == BROKEN


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table under a heading, by the name in their first cell."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", DEPLOYING, re.MULTILINE | re.DOTALL)
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:3] == "| `"
    ]
    return {first.strip("`"): rest for first, *rest in cells}


def test_every_step_and_every_role_is_described_with_what_it_reads_and_writes() -> None:
    topics = Topics()
    short = {topic.name: topic.name.removeprefix(f"{topics.prefix}.") for topic in topics.all()}
    short |= dict.fromkeys((topics.counting_changelog, topics.merging_changelog), "changelogs")
    described = rows("Who may do what")
    assert list(described) == [role.name for role in roles(topics)]
    for role in roles(topics):
        for operation, cell in zip(("Read", "Write"), described[role.name][1:], strict=True):
            rights = [right for right in role.rights if right.resource == "topic" and operation in right.operations]
            allowed = {short[right.name] for right in rights}
            named = {re.sub(r" \(.*\)", "", name) for name in cell.split(", ") if name}
            assert named == allowed or (named == {"everything"} and allowed == set(short.values())), role.name
    assert list(rows("What is run, and how")) == list(STEPS)
