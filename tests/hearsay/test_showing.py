"""Tables for a terminal of 80 columns."""

from datetime import UTC, datetime

import numpy as np
import pytest
from rich.console import Console

from analytics.mobility import AskedAttribute, AttributeReport, Axis, MobilityReport, Quantity, WindowReport
from analytics.mobility.model import Changes, Quantities, Shares
from hearsay.reports.tables import answers_table, visitors_table

EXACT = Quantity(value=23_427, error=0, low=23_427, high=23_427)
DAYS = MobilityReport.model_construct(
    start=datetime(2017, 5, 31, tzinfo=UTC), period_seconds=86400, time_zone=None, minimum=20, horizon=7, windows=(),
    attributes=(AskedAttribute(name="town", role="area", mechanism="l-grr", values=("Ashford", "Brook")),),
)  # fmt: skip
SHARE = Quantities(value=[0.49255], error=[0.012], low=[0.46895], high=[0.51615])


def lines(value: str, baseline: Changes | None = None, role: str = "area") -> list[str]:
    """What is shown of a day on which somebody answered with this value."""
    asked = AskedAttribute(name="visitor_category", role=role, mechanism="l-grr", values=(value,))
    return answers(asked, Shares(share=SHARE, truth=[10_980], baseline=baseline), 3412)


def answers(asked: AskedAttribute, shares: Shares, n: int) -> list[str]:
    attribute = AttributeReport(name=asked.name, counted="value in the period", n=n, suppressed=None, values=shares)
    window = WindowReport.model_construct(
        first=6, last=6, kind="period", visitors=EXACT, suppressed=None, attributes=(attribute,)
    )
    return drawn(answers_table(DAYS.model_copy(update={"attributes": (asked,)}), window))


def drawn(what: object) -> list[str]:
    console = Console(width=80, color_system=None)
    with console.capture() as shown:
        console.print(what)
    return [line.rstrip() for line in shown.get().strip().splitlines()]


def test_a_heading_takes_one_line_and_the_table_below_it_no_more_than_80_columns() -> None:
    assert lines("French tourist") == [
        "Answers, Tue 2017-06-06: 23,427 visitors",
        "",
        "visitor_category  l-grr, 3,412 answers",
        "                              people  ± 95 %   truth",
        "French tourist                11,539     553  10,980  ████████████████",
    ]


def test_words_follow_the_survey_and_without_places_there_are_no_visitors() -> None:
    head, _, _, columns, _ = lines("French tourist", role="plain")
    assert head == "Answers, Tue 2017-06-06: 23,427 devices"
    assert columns.split() == ["devices", "±", "95", "%", "truth"]
    plain = AskedAttribute(name="colour", role="plain", mechanism="l-grr", values=("red",))
    both = (window(0, 0, visitors=EXACT, new=EXACT, returning=EXACT), window(1, 1, suppressed="minimum"))
    shown = printed(visitors_table(DAYS.model_copy(update={"attributes": (plain,), "windows": both})))
    assert shown.startswith("Devices period devices new returning")
    assert "fewer than 20 devices" in shown and "visitor" not in shown


def test_answers_are_compared_with_the_baseline() -> None:
    percent = Quantities(value=[12.34], error=[1], low=[10], high=[14])
    *_, head, row = lines("French tourist", Changes(percent=percent, against="the comparable window", first=0, last=0))
    assert head.endswith("vs baseline") and "+12.3 ± 2.0 %" in row


def test_pairs_are_a_table_with_intervals_whose_columns_fit() -> None:
    first, second = Axis(name="age", values=("young", "old")), Axis(name="area", values=("N", "E", "S", "W", "[far]"))
    asked = AskedAttribute(
        name="age*area", role="cross", mechanism="l-grr", values=tuple(map(str, range(10))), axes=(first, second)
    )
    shares = np.arange(10) / 45
    share = Quantities(value=shares, error=np.full(10, 0.01), low=shares - 0.02, high=shares + 0.02)
    *_, head, north, _, _, _, far = [" ".join(line.split()) for line in answers(asked, Shares(share=share), 900)]
    assert head == "area \\ age young old"
    assert north == "N 0 ± 469 2,603 ± 469"
    assert far == "[far] 2,082 ± 469 4,685 ± 469"


@pytest.mark.parametrize("name", ["[under 18]", "[/red]", "[bold]"])
def test_a_name_in_brackets_is_a_name(name: str) -> None:
    assert lines(name)[-1].startswith(f"{name}  ")


def window(first: int, last: int, **facts: object) -> WindowReport:
    kind = "period" if first == last else "cumulative"
    day = {"begin": DAYS.start, "end": DAYS.start}
    return WindowReport(**{"first": first, "last": last, **day, "kind": kind, "suppressed": None, **facts})


def printed(what: object) -> str:
    return " ".join(" ".join(drawn(what)).split())


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("minimum", "Numbers of fewer than 20 visitors are not shown, because they say little."),
        ("difference", "Together with a window inside it, this one would show a number of fewer than 20 visitors"),
    ],
)
def test_a_window_without_answers_says_why_it_shows_nothing(why: str, said: str) -> None:
    shown = printed(answers_table(DAYS, window(0, 3, suppressed=why)))
    assert "Wed 2017-05-31 to Sat 2017-06-03: suppressed" in shown and said in shown
    assert "No answers are published for this window" in printed(answers_table(DAYS, window(0, 3, visitors=EXACT)))


def test_the_table_of_visitors_explains_what_is_not_there() -> None:
    both = (window(0, 0, visitors=EXACT, new=EXACT, returning=EXACT), window(1, 1, suppressed="minimum"))
    hidden = printed(visitors_table(DAYS.model_copy(update={"windows": both})))
    assert "– is not shown: fewer than 20 visitors" in hidden
    shown = printed(visitors_table(DAYS.model_copy(update={"windows": both[:1]})))
    assert "–" not in shown
    alone = printed(visitors_table(DAYS.model_copy(update={"windows": both[:1], "horizon": 1})))
    assert "returning" not in alone, "with a horizon of one period, nobody is known to return"
    never = printed(visitors_table(DAYS.model_copy(update={"windows": (window(0, 0, visitors=EXACT),)})))
    assert "–" not in never and "not published for any period: new, returning" in never
