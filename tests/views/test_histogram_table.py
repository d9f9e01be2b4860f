"""Histograms as a table have the numbers of the published JSON."""

import json
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from protocols.randomness import Keyring
from protocols.scheme import Scheme
from stream_app.counting import Statistics
from tests.helpers.crowd import scheme_of
from tests.helpers.published import build_histogram
from views.results import Histogram, histogram_table
from views.results.histogram import Kind

KEYRING = Keyring(bytes(range(16)))
CONSISTENT = ("consistent", "consistent_low", "consistent_high")
ADJUSTED = ("adjusted_error", "adjusted_low", "adjusted_high")
NUMBERS = ("estimate", "error", "low", "high", *CONSISTENT, "adjusted", *ADJUSTED)
ATTRIBUTES = "{name: a, values: [x, y, z], mechanism: l-grr}, {name: b, values: [p, q]}"
SCHEME = scheme_of(ATTRIBUTES, "eps_inf: 4, eps_1: 3")
FEW = scheme_of(ATTRIBUTES, "eps_inf: 4, eps_1: 3, minimum: 40")
NOISED = scheme_of(ATTRIBUTES, "eps_inf: 4, eps_1: 3, minimum: 40, presence_epsilon: 5")


def histogram(kind: Kind, scheme: Scheme, period: int, a: list[int], b: list[int]) -> Histogram:
    """The result of reports that support the values of both attributes so often, all with gap 1."""
    counts = {"a": statistics(a), "b": statistics(b)}
    return build_histogram(kind, scheme, period, counts)


def statistics(supports: list[int]) -> Statistics:
    gaps = 1 if sum(supports) else 0  # without reports there is no gap
    n, N = np.array([sum(supports)]), np.array([supports])
    return Statistics(np.ones(gaps, dtype=np.uint16), n[:gaps], N[:gaps])


PUBLISHED = {
    "plain": histogram("final", SCHEME, 0, [70, 20, 10], [30, 25]),
    "provisional": histogram("provisional", SCHEME, 1, [7, 2, 1], [3, 2]),
    "empty": histogram("final", SCHEME, 2, [0, 0, 0], [0, 0]),
    "one attribute suppressed": histogram("final", FEW, 3, [70, 20, 10], [3, 2]),
    "all suppressed": histogram("final", FEW, 4, [1, 2, 0], [3, 2]),
    "noised": histogram("final", NOISED, 5, [70, 20, 10], [90, 2]),
}


@pytest.mark.parametrize("case", PUBLISHED)
def test_every_row_has_the_numbers_of_the_json(case: str) -> None:
    published = PUBLISHED[case].model_dump_json()
    rows = histogram_table([Histogram.model_validate_json(published)]).to_pylist()
    result = json.loads(published)
    expected = []
    for attribute in result["attributes"]:
        for place, value in enumerate(attribute["values"]):
            row = {name: attribute[name] and attribute[name][place] for name in NUMBERS}
            row |= {name: datetime.fromisoformat(result[name]) for name in ("begin", "end")}
            row |= {"period": result["period"], "kind": result["kind"], "attribute": attribute["name"], "value": value}
            expected.append(row | {name: attribute.get(name) for name in ("n", "suppressed", "row", "column")})
    assert rows == expected
    assert len(rows) == 5


def test_a_cross_has_a_row_for_each_pair_with_the_values_of_both_attributes() -> None:
    scheme = scheme_of(ATTRIBUTES, "eps_inf: 4, eps_1: 3, crosses: [{of: [a, b], share: 0.4}], minimum: 40")
    counts = {"a": statistics([70, 20, 10]), "b": statistics([50, 40]), "a*b": statistics([30, 20, 10, 20, 5, 5])}
    published = build_histogram("final", scheme, 0, counts).attribute("a*b")
    rows = [row for row in histogram_table([build_histogram("final", scheme, 0, counts)]).to_pylist() if row["row"]]
    assert [(row["row"], row["column"]) for row in rows] == [(a, b) for a in "xyz" for b in "pq"]
    assert [axis.values for axis in published.axes] == [("x", "y", "z"), ("p", "q")]
    assert [row["adjusted"] for row in rows] == list(published.adjusted)
    assert (published.adjusted_low < published.adjusted).all() and (published.adjusted < published.adjusted_high).all()
    assert (published.consistent_low <= published.consistent).all()
    assert (published.adjusted_error < published.error).all(), "three tables know more than one"
    few = build_histogram("final", scheme, 0, {**counts, "a": statistics([5, 5, 5])})
    alone = build_histogram("final", scheme, 0, {**counts, "a": statistics([9, 3, 3])})
    assert few.attribute("a").suppressed
    assert few.attribute("a*b").adjusted.tolist() == alone.attribute("a*b").adjusted.tolist()


def test_columns_have_the_same_types_without_any_histogram() -> None:
    none = histogram_table([])
    assert none.schema == histogram_table(PUBLISHED.values()).schema
    assert none.column_names == [
        "period", "begin", "end", "attribute", "value", "row", "column", "n", *NUMBERS, "suppressed", "kind",
    ]  # fmt: skip
    assert none.schema.field("begin").type == pa.timestamp("us", tz="UTC")
