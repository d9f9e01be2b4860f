"""Rows of nowcasts: each number of a result, beside the name that it is about."""

from typing import Any

import numpy as np
import pyarrow as pa

from tests.views.test_nowcasts import SHARES, TURNS, final, make, scheme_of
from views.results.nowcasts import NOWCASTS

NUMBERS = ("value", "nowcast", "error", "low", "high", "surprise")


def test_a_row_has_what_the_result_says_about_its_name() -> None:
    scheme = scheme_of(TURNS)
    finals = [final(scheme, period, SHARES) for period in range(12)]
    result = make(scheme, [*finals, final(scheme, 12, SHARES[::-1])])
    assert NOWCASTS.tables is not None
    parts = NOWCASTS.tables(result, scheme.survey)["nowcasts"]
    rows = pa.concat_tables([part.table() for part in parts]).to_pylist()

    begin, end = scheme.survey.bounds(12)
    expected: list[dict[str, Any]] = []
    for table in result.model_dump()["tables"]:
        for place, name in enumerate(table["names"]):
            about = {"begin": begin, "end": end, "name": name, "unexpected": name in table["unexpected"]}
            same = {key: table[key] for key in ("attribute", "kind", "periods")}
            expected.append({**about, **same, **{number: table[number][place] for number in NUMBERS}})
    assert rows == expected
    assert {row["name"] for row in rows} == {"free", "paid", "trial", "open"}
    assert {row["unexpected"] for row in rows} == {True, False}
    assert all(row[number] is not None for row in rows for number in NUMBERS)


def test_a_period_without_nowcasts_has_no_rows() -> None:
    scheme = scheme_of(TURNS)
    result = make(scheme, [final(scheme, 0, SHARES, devices=300)])
    assert NOWCASTS.tables is not None
    parts = NOWCASTS.tables(result, scheme.survey)["nowcasts"]
    assert sum(part.rows for part in parts) == 0


def test_reports_get_the_nowcasts_of_each_attribute_and_its_groups_by_period() -> None:
    scheme = scheme_of(TURNS)
    finals = [final(scheme, period, SHARES) for period in range(3)]
    result = make(scheme, finals)
    shares = result.shares
    assert shares.keys() == {(2, "plan", "values"), (2, "plan", "groups")}
    for table in result.tables:
        own = shares[2, "plan", table.kind]
        for shown, published in (
            (own.value, table.nowcast),
            (own.error, table.error),
            (own.low, table.low),
            (own.high, table.high),
        ):
            np.testing.assert_array_equal(shown, published)
    assert make(scheme, [*finals, final(scheme, 3, SHARES, devices=300)]).shares == {}, "nothing is published"
