"""Tables for a terminal of 80 columns."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from rich.console import Console

from analytics.mobility import AskedAttribute, AttributeReport, MobilityReport, Quantity, WindowReport
from analytics.mobility.model import Quantities, Shares
from hearsay.reports.tables import answers_table

EXACT = Quantity(value=23_427, error=0, low=23_427, high=23_427)
DAYS = MobilityReport.model_construct(
    start=datetime(2017, 5, 31, tzinfo=UTC), period_seconds=86400, time_zone=None, minimum=20, horizon=7, windows=()
)
SHARE = Quantities(value=[0.49255], error=[0.012], low=[0.46895], high=[0.51615])


def lines(value: str) -> list[str]:
    """What is shown of a day on which somebody answered with this value."""
    asked = AskedAttribute(name="visitor_category", role="plain", mechanism="l-grr", values=(value,))
    attribute = AttributeReport(
        name="visitor_category",
        counted="value in the period",
        n=3412,
        suppressed=None,
        values=Shares(share=SHARE, truth=[10_980]),
    )
    window = WindowReport.model_construct(
        first=6, last=6, kind="period", visitors=EXACT, suppressed=None, attributes=(attribute,)
    )
    console = Console(width=80, color_system=None)
    with console.capture() as shown:
        console.print(answers_table(DAYS.model_copy(update={"attributes": (asked,)}), window))
    return [line.rstrip() for line in shown.get().strip().splitlines()]


def test_a_heading_takes_one_line_and_the_table_below_it_no_more_than_80_columns() -> None:
    assert lines("French tourist") == [
        "Answers, Tue 2017-06-06: 23,427 visitors",
        "",
        "visitor_category  l-grr, 3,412 answers",
        "                              people  ± 95 %   truth",
        "French tourist                11,539     553  10,980  ████████████████",
    ]


@pytest.mark.parametrize("name", ["[under 18]", "[/red]", "[bold]"])
def test_a_name_in_brackets_is_a_name(name: str) -> None:
    assert lines(name)[-1].startswith(f"{name}  ")
