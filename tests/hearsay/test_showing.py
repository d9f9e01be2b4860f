"""Tables for a terminal of 80 columns."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from rich.console import Console

from analytics.mobility import AttributeReport, Quantity, WindowReport
from analytics.mobility.model import ValueReport
from hearsay.reports.tables import answers_table

EXACT = Quantity(value=23_427, error=0, low=23_427, high=23_427)
SHARE = Quantity(value=0.5, error=0.01, low=0.48, high=0.52)
PEOPLE = Quantity(value=11_539, error=282, low=10_986, high=12_092)


def lines(value: str) -> list[str]:
    """What is shown of a day on which somebody answered with this value."""
    row = ValueReport(value=value, share=SHARE, people=PEOPLE, truth=10_980)
    attribute = AttributeReport(
        name="visitor_category",
        role="plain",
        mechanism="l-grr",
        counted="value in the period",
        n=3412,
        suppressed=None,
        values=(row,),
    )
    day = {"begin": datetime(2017, 6, 6, tzinfo=UTC), "end": datetime(2017, 6, 7, tzinfo=UTC)}
    window = WindowReport.model_construct(
        first=6, last=6, kind="period", visitors=EXACT, attributes=(attribute,), **day
    )
    console = Console(width=80, color_system=None)
    with console.capture() as shown:
        console.print(answers_table(window))
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
