"""Synthetic records of a survey: drawn from what is published about one window, and from nothing else."""

import json
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.mobility import MobilityReport, WindowReport
from analytics.mobility import Shares as PublishedShares
from lab.learning.model import LEVEL, Measured, Shares, distances, draw_records, fit
from protocols.errors import ResultsError
from protocols.survey import TIMES

NORMAL_95 = 1.959964


def synthetic_records(report: MobilityReport, window: WindowReport, rows: int, seed: int) -> pa.Table:
    """So many records that follow what is published about a window.

    One row for each, with the values as text. What they follow is metadata: `hearsay` as JSON, `about` in lines.
    """
    measured = published_tables(report, window)
    if not measured.ones and not measured.pairs:
        raise ResultsError(
            f"nothing is published about the answers of periods {window.first} to {window.last} of survey "
            f"{report.survey!r}",
            "too few devices answered, or none; choose another period, or a window",
        )
    model = fit(measured)
    records = draw_records(model, rows, seed)
    far = distances(records, measured, model.ones)
    independent = [list(pair) for pair in combinations(records, 2) if not {pair, pair[::-1]} & far.keys()]
    facts = {
        "survey": report.survey,
        "fingerprint": report.fingerprint,
        "first_period": window.first,
        "last_period": window.last,
        "rows": rows,
        "seed": seed,
        "budget": 0,
        "attributes": list(records),
        "left_out": [asked.name for asked in report.attributes if not asked.axes and asked.name not in records],
        "measured_pairs": [
            {"of": list(pair), "followed": pair in model.edges, **vars(model.associations[pair]), **vars(distance)}
            for pair, distance in far.items()
        ],
        "independent_pairs": independent,
    }
    columns = {
        name: pa.DictionaryArray.from_arrays(
            pa.array(places, pa.int32()), pa.array(report.asked(name).values, pa.string())
        )
        for name, places in records.items()
    }
    return pa.table(columns, metadata={"hearsay": json.dumps(facts), "about": "\n".join(_lines(facts))})


def _lines(facts: dict[str, Any]) -> list[str]:
    """What the records follow, for people, in lines that can stand above them."""
    end = "" if facts["first_period"] == facts["last_period"] else f" to {facts['last_period']}"
    said = [
        f"{facts['rows']:,} synthetic records of survey {facts['survey']}, period {facts['first_period']}{end}, seed "
        f"{facts['seed']}. Nobody's data: drawn from published tables, which costs no budget."
    ]
    for pair in facts["measured_pairs"]:
        use = "followed" if pair["followed"] else "not followed directly"
        if pair["chance_if_independent"] > LEVEL:
            use = "not followed: not to be told from independent attributes"
        said.append(
            f"measured pair {TIMES.join(pair['of'])}: total variation of records and table "
            f"{pair['total_variation']:.4f}; independent {pair['total_variation_independent']:.4f}; of the table's "
            f"noise about {pair['total_variation_of_noise']:.4f}; {use}"
        )
    said.append("all other pairs were not measured: their attributes are independent, or joined by measured pairs")
    if facts["left_out"]:
        said.append(f"left out, because nothing is published about them: {', '.join(facts['left_out'])}")
    return said


def published_tables(report: MobilityReport, window: WindowReport) -> Measured:
    """The published shares of a window, with their variances. What is suppressed is not among them."""
    asked = {one.name: one for one in report.attributes}
    published = {one.name: _shares(one.values) for one in window.attributes if one.values is not None}
    sizes = {name: len(one.values) for name, one in asked.items() if not one.axes}
    pairs = {}
    for name, shares in published.items():
        if asked[name].axes:
            first, second = asked[name].axes
            pairs[first.name, second.name] = shares.of_pair(sizes, (first.name, second.name))
    return Measured(sizes, {name: shares for name, shares in published.items() if name in sizes}, pairs)


def _shares(published: PublishedShares) -> Shares:
    """The unbiased shares; of an ordered mechanism the smoothed ones, whose errors are far smaller."""
    low, high = published.consistent_low, published.consistent_high
    if published.adjusted is None and published.consistent is not None and low is not None and high is not None:
        return Shares(published.consistent, ((high - low) / (2 * NORMAL_95)) ** 2)
    return Shares(published.share.value, np.asarray(published.share.error**2))
