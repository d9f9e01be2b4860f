"""What the page on deploying says of steps and rights is what there is."""

from __future__ import annotations

import re

from stream_app.kafka import Topics, roles
from tests.deploy_test.__main__ import STEPS
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "deploying.md").read_text()


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table under a heading, by the name in their first cell."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
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
