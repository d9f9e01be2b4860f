"""What operators look up is complete: metrics, reasons, exit codes, settings, topics, steps and roles."""

import re
from pathlib import Path

import pytest

from gateway.service import WATCHED, Metrics
from hearsay.commands.operations.doctor import named_settings
from hearsay.terminal import exits
from protocols.wire import Reason
from servers.settings import Settings
from stream_app.faust_app import crash
from stream_app.faust_app import monitoring as metrics
from stream_app.kafka import Topics, roles
from tests.deploy_test.__main__ import STEPS
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "operations.md").read_text()
DEPLOYING = (ROOT / "docs" / "deploying.md").read_text()


def documented(names: set[str]) -> set[str]:
    return {name for name in names if f"`{name}`" in PAGE}


def test_every_metric_is_documented() -> None:
    source = re.findall(r'"(hearsay_\w+)"', Path(metrics.__file__).read_text())
    counted = (metrics.REPORTS, metrics.FINALS, metrics.FORECAST, metrics.UNEXPECTED, metrics.PASSED_OVER)
    counters = {"hearsay_reports", "hearsay_finals", "hearsay_forecast_numbers", "hearsay_unexpected"}
    counters |= {"hearsay_passed_over_records"}
    assert counters == {metric.describe()[0].name for metric in counted}
    names = {f"{name}_total" if name in counters else name for name in source}
    assert documented(names) == names
    assert set(re.findall(r"`(hearsay_\w+)`", PAGE)) == names


def test_every_metric_of_a_gateway_is_documented() -> None:
    page = (ROOT / "docs" / "gateway.md").read_text()
    gateway = Metrics()
    for name in WATCHED:
        gateway.watch(name, lambda: 0.0)
    families = [family for family in gateway.registry.collect() if family.name.startswith("hearsay_")]
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
    assert set(map(int, codes)) == {0, 2, exits.REFUSED, exits.TRY_AGAIN, exits.STOPPED, exits.BROKEN}
    assert crash.EXIT == exits.BROKEN


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table under a heading, by the name in their first cell."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", DEPLOYING, re.MULTILINE | re.DOTALL)
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:3] == "| `"
    ]
    return {first.strip("`"): rest for first, *rest in cells}


def test_every_step_is_described() -> None:
    assert list(rows("What is run, and how")) == list(STEPS)


def test_every_role_is_described_with_what_it_reads_and_writes() -> None:
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
