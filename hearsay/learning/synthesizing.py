"""Synthetic records of a survey: drawn from what is published about one window, and from nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.learning import Distance, Measured, Model, Pair, Records, Shares, distances, draw_records, fit
from analytics.mobility import MobilityReport, WindowReport
from analytics.mobility import Shares as PublishedShares
from protocols.errors import ResultsError
from protocols.survey import TIMES

NORMAL_95 = 1.959964


@dataclass(frozen=True, eq=False)
class Synthesis:
    """Records, as places of values by attribute, and all that is to be said about them."""

    report: MobilityReport
    window: WindowReport
    seed: int
    rows: int
    model: Model
    records: Records
    distances: dict[Pair, Distance]

    def table(self) -> pa.Table:
        """One row for each record, with the values as text; what they follow is metadata."""
        columns = {
            name: pa.DictionaryArray.from_arrays(
                pa.array(places, pa.int32()), pa.array(self.report.asked(name).values, pa.string())
            )
            for name, places in self.records.items()
        }
        return pa.table(columns, metadata={"hearsay": json.dumps(self.record()), "about": "\n".join(self.lines())})

    def record(self) -> dict[str, Any]:
        """What the records follow, as plain data."""
        names = list(self.records)
        return {
            "survey": self.report.survey,
            "fingerprint": self.report.fingerprint,
            "first_period": self.window.first,
            "last_period": self.window.last,
            "rows": self.rows,
            "seed": self.seed,
            "budget": 0,
            "attributes": names,
            "left_out": self.left_out,
            "measured_pairs": [self._pair(pair) for pair in self.distances],
            "independent_pairs": [
                list(pair) for pair in combinations(names, 2) if not {pair, pair[::-1]} & self.distances.keys()
            ],
        }

    @property
    def left_out(self) -> list[str]:
        """The attributes of which nothing is published."""
        return [asked.name for asked in self.report.attributes if not asked.axes and asked.name not in self.records]

    def lines(self) -> list[str]:
        """The same for people, in lines that can stand above the records."""
        end = "" if self.window.first == self.window.last else f" to {self.window.last}"
        said = [
            f"{self.rows:,} synthetic records of survey {self.report.survey}, period {self.window.first}{end}, seed "
            f"{self.seed}. Nobody's data: drawn from published tables, which costs no budget."
        ]
        for (a, b), far in self.distances.items():
            use = "followed" if (a, b) in self.model.edges else "not followed directly"
            if not self.model.associations[a, b].dependent:
                use = "not followed: not to be told from independent attributes"
            said.append(
                f"measured pair {a}{TIMES}{b}: total variation of records and table {far.records:.4f}; independent "
                f"{far.independent:.4f}; of the table's noise about {far.noise:.4f}; {use}"
            )
        said.append("all other pairs were not measured: their attributes are independent, or joined by measured pairs")
        if self.left_out:
            said.append(f"left out, because nothing is published about them: {', '.join(self.left_out)}")
        return said

    def _pair(self, pair: Pair) -> dict[str, Any]:
        found, far = self.model.associations[pair], self.distances[pair]
        return {
            "of": list(pair),
            "followed": pair in self.model.edges,
            "information": found.information,
            "noise_floor": found.floor,
            "chance_if_independent": found.chance,
            "total_variation": far.records,
            "total_variation_independent": far.independent,
            "total_variation_of_noise": far.noise,
        }


def synthesize(report: MobilityReport, window: WindowReport, rows: int, seed: int) -> Synthesis:
    """So many records that follow what is published about a window."""
    measured = published_tables(report, window)
    if not measured.ones and not measured.pairs:
        raise ResultsError(
            f"nothing is published about the answers of periods {window.first} to {window.last} of survey "
            f"{report.survey!r}",
            "too few devices answered, or none; choose another period, or a window",
        )
    model = fit(measured)
    records = draw_records(model, rows, seed)
    return Synthesis(report, window, seed, rows, model, records, distances(records, measured, model.tables.ones))


def published_tables(report: MobilityReport, window: WindowReport) -> Measured:
    """The published shares of a window, with their variances. What is suppressed is not among them."""
    asked = {one.name: one for one in report.attributes}
    published = {one.name: _shares(one.values) for one in window.attributes if one.values is not None}
    sizes = {name: len(one.values) for name, one in asked.items() if not one.axes}
    pairs = {}
    for name, shares in published.items():
        if asked[name].axes:
            a, b = (axis.name for axis in asked[name].axes)
            shape = sizes[a], sizes[b]
            pairs[a, b] = Shares(shares.value.reshape(shape), shares.variance.reshape(shape))
    return Measured(sizes, {name: shares for name, shares in published.items() if name in sizes}, pairs)


def _shares(published: PublishedShares) -> Shares:
    """The unbiased shares; of an ordered mechanism the smoothed ones, whose errors are far smaller."""
    low, high = published.consistent_low, published.consistent_high
    if published.adjusted is None and published.consistent is not None and low is not None and high is not None:
        return Shares(published.consistent, ((high - low) / (2 * NORMAL_95)) ** 2)
    return Shares(published.share.value, np.asarray(published.share.error**2))
