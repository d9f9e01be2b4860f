"""Thin collections: surveys of every kind with hardly any answers, from counters to published documents, in memory.

What is published of them must be readable, and must have neither NaN nor infinity in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic_core import from_json

from analytics.mobility import combine, tables, with_changes, with_nowcasts
from protocols.mechanisms import RECORDS
from protocols.mechanisms.record import MechanismRecord, Use
from protocols.randomness import Keyring
from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.survey import Survey
from protocols.wire import CLOCK, FRAME, Clock, Frame, encode_clock, encode_frame
from stream_app.counting.judging import Record
from stream_app.counting.partition_counter import PartitionCounter
from stream_app.log.codec import decompress
from stream_app.log.flushes import PARTIALS, Output
from stream_app.merging.merger import Merger
from tests.helpers.frames import random_answers
from tests.helpers.published import Memory
from tests.stream_app.worlds import KEY
from views.reading import Results
from views.results import NOWCASTS, histogram_table
from views.view import View, all_views

SIZES = (0, 1, 2, 5, 12)
"""How many answers the periods of a thin collection have."""
Terms = dict[str, Any]
TERMS: Terms = {"start": "2026-01-05T00:00:00Z", "period": "12h", "clock": "source", "horizon": 3}
ONE_SHOT: Terms = {"eps": 1.0}
MEMO_ONLY: Terms = {"eps_inf": 1.0}
TWO_ROUNDS: Terms = {"eps_inf": 2.0, "eps_1": 1.0}
BUDGETS: Mapping[Use, Terms] = {
    "one-shot": ONE_SHOT,
    "memo only": MEMO_ONLY,
    "two rounds": TWO_ROUNDS,
    "rs+fd": {**TWO_ROUNDS, "solution": "rs+fd"},
    "rs+rfd": {**TWO_ROUNDS, "solution": "rs+rfd"},
}
GRID = {"at": [50.0, 4.0], "cell": "500m", "columns": 3, "rows": 2}
FRESH, LASTING = {"level": 1.0, "radius": 600}, {"level": 2.0, "radius": 600}
REACHES: Mapping[Use, Terms] = {
    "one-shot": {"geo": FRESH},
    "memo only": {"geo_inf": FRESH},
    "two rounds": {"geo": FRESH, "geo_inf": LASTING},
}
FIVE: Terms = {"name": "a", "range": {"last": 4}}
GROUPED: Terms = {**FIVE, "groups": {"low": ["0", "1"], "high": ["2", "3", "4"]}}
OTHER: Terms = {"name": "b", "values": ["p", "q", "r"]}
SETS: Terms = {"name": "a", "values": list("wxyz"), "several": 2}
AMOUNT: Terms = {"name": "a", "range": {"last": 60}, "quantiles": [0.25, 0.5, 0.75], "role": "amount"}
THRESHOLDS: Terms = {**AMOUNT, "mechanism": "threshold", "parameter": 5}
CROSSED: Terms = {"crosses": [{"of": ["a", "b"], "share": 0.4}]}
UNITS: Terms = {"horizon": 1, "visitors": {"units": ["day", "week", "ever"]}}
LIKELIEST: Terms = {"correction": "likeliest"}

ROLES: Mapping[str, Terms] = {
    "area": {**TWO_ROUNDS, "attributes": [{**GROUPED, "role": "area"}]},
    "dwell": {**TWO_ROUNDS, "attributes": [{"name": "a", "values": ["1h", "2h", "3h-5h", "6h-9h"], "role": "dwell"}]},
    "amount": {**ONE_SHOT, "attributes": [{"name": "a", "values": ["1-2", "3-5", "6-9"], "role": "amount"}]},
    "range": {**TWO_ROUNDS, "attributes": [{**AMOUNT, "range": {"last": 9}, "mechanism": "l-geometric"}]},
    "transition": {
        **TWO_ROUNDS,
        "attributes": [{"name": "a", "values": ["x>y", "y>x", "x>x", "y>z"], "role": "transition"}],
    },
    "set": {**TWO_ROUNDS, "attributes": [SETS]},
    "threshold of 1": {**TWO_ROUNDS, "attributes": [{**THRESHOLDS, "parameter": 1}]},
    "threshold of 2": {**ONE_SHOT, "attributes": [{**THRESHOLDS, "parameter": 2}]},
    "threshold of 7": {**MEMO_ONLY, "attributes": [{**THRESHOLDS, "parameter": 7}]},
}
WAYS: Mapping[str, Terms] = {
    "cross": {**TWO_ROUNDS, **CROSSED, "attributes": [FIVE, OTHER]},
    "cross of groups": {**ONE_SHOT, **CROSSED, "attributes": [GROUPED, OTHER]},
    "spl": {**TWO_ROUNDS, "solution": "spl", "attributes": [GROUPED, OTHER]},
    "spl of thresholds": {**TWO_ROUNDS, "solution": "spl", "attributes": [THRESHOLDS, OTHER]},
    "one_in": {**ONE_SHOT, "one_in": 3, "attributes": [{**FIVE, "role": "amount"}, OTHER]},
    "one_in of thresholds": {**ONE_SHOT, "one_in": 2, "attributes": [THRESHOLDS]},
    "minimum": {**TWO_ROUNDS, "minimum": 3, "attributes": [{**FIVE, "role": "area"}, OTHER]},
    "minimum of thresholds": {**TWO_ROUNDS, "minimum": 2, "attributes": [THRESHOLDS, OTHER]},
    "presence": {**TWO_ROUNDS, "presence_epsilon": 1.0, "attributes": [GROUPED, OTHER]},
    "presence of thresholds": {**ONE_SHOT, "presence_epsilon": 1.0, "minimum": 2, "attributes": [THRESHOLDS, OTHER]},
    "presence of likeliest thresholds": {
        **ONE_SHOT,
        "presence_epsilon": 1.0,
        "attributes": [{**THRESHOLDS, **LIKELIEST}],
    },
    "presence of sets": {**ONE_SHOT, "presence_epsilon": 0.5, "attributes": [SETS]},
    "presence of likeliest sets": {**ONE_SHOT, "presence_epsilon": 0.5, "attributes": [{**SETS, **LIKELIEST}]},
    "presence of units": {**ONE_SHOT, **UNITS, "presence_epsilon": 1.0, "attributes": [FIVE, OTHER]},
    "units": {**ONE_SHOT, **UNITS, "attributes": [{**FIVE, "role": "area"}, {**THRESHOLDS, "name": "b"}]},
    "seasons": {
        **TWO_ROUNDS,
        "nowcast": {"seasons": [2], "drift": 5},
        "attributes": [FIVE, {**THRESHOLDS, "name": "b"}],
    },
    "forecast": {**TWO_ROUNDS, "forecast": {"ahead": 2, "seasons": [2]}, "attributes": [THRESHOLDS]},
    "likeliest": {**TWO_ROUNDS, "attributes": [{**GROUPED, **LIKELIEST}]},
    "likeliest set": {**ONE_SHOT, "attributes": [{**SETS, **LIKELIEST}]},
    "likeliest threshold": {**ONE_SHOT, "attributes": [{**THRESHOLDS, **LIKELIEST}]},
}


def _asked_with(record: MechanismRecord, use: Use) -> Terms:
    """A survey that asks with a mechanism, which can be used this way."""
    if record.needs_grid:
        return {"attributes": [{"name": "a", "grid": GRID, "mechanism": record.name, **REACHES[use]}]}
    first: Terms = {**FIVE, "mechanism": record.name}
    attributes = [first]
    if record.name == "dbitflip":
        first["parameter"] = 3
    if record.name == "threshold":
        first |= {"range": {"last": 60}, "parameter": 4}
    if use == "rs+fd":
        attributes.append(OTHER)
    if use == "rs+rfd":
        first["prior"] = {str(value): 0.2 for value in range(5)}
        attributes.append({**OTHER, "prior": {"p": 0.5, "q": 0.25, "r": 0.25}})
    return {**BUDGETS[use], "attributes": attributes}


def _every_kind() -> dict[str, Terms]:
    """A survey of each mechanism in each of its uses, of each role, and of each way to ask and to publish."""
    found: dict[str, Terms] = {}
    for record in RECORDS.values():
        for use in BUDGETS:
            if record.fits(use):
                found[f"{record.name}, {use}"] = _asked_with(record, use)
    return {**found, **ROLES, **WAYS}


KINDS: Mapping[str, Terms] = _every_kind()


@cache
def scheme_of(kind: str) -> Scheme:
    """A survey of a kind."""
    number = list(KINDS).index(kind)
    return Scheme(Survey.model_validate({"id": f"thin-{number}", **TERMS, **KINDS[kind]}))


@dataclass(frozen=True)
class ThinCollection:
    """A survey, how many reports each period has, and the seed of their answers."""

    scheme: Scheme
    reports: Sequence[int]
    seed: int

    @property
    def records(self) -> Iterator[tuple[str, bytes]]:
        """What goes to the reports topic: of each period its frames, and the clock record that closes it."""
        random, tokens = np.random.default_rng(self.seed), count(1)
        for period, reports in enumerate(self.reports):
            for kind in self.scheme.kinds:
                rows = self._rows(kind, reports, random)
                if rows:
                    yield FRAME, self._frame(kind, period, rows, random, tokens)
            yield CLOCK, encode_clock(Clock(self.scheme.survey.id, period), KEY)

    def _rows(self, kind: str, reports: int, random: np.random.Generator) -> int:
        """How many of the reports are of this kind: each question has about as many."""
        share = 1 / len(self.scheme.kinds)
        return int(random.binomial(reports, share))

    def _frame(self, kind: str, period: int, rows: int, random: np.random.Generator, tokens: Iterator[int]) -> bytes:
        survey = self.scheme.survey
        cells = survey.visits.cells
        possible = cells[survey.visits.good(cells, period)]
        gaps = random.choice(possible, rows).astype(survey.visits.wire.newbyteorder("="))
        drawn = np.array([next(tokens) for _ in range(rows)], dtype=np.uint64)
        answers = {
            name: random_answers(self.scheme.question(name).mechanism.encoding.answer, rows, random)
            for name in self._answered(kind)
        }
        return encode_frame(Frame(survey.id, self.scheme.fingerprint, period, drawn, gaps, answers), self.scheme)

    def _answered(self, kind: str) -> list[str]:
        if kind == PRESENCE_ONLY:
            return []
        return [kind] if self.scheme.discloses else [question.name for question in self.scheme.questions]

    def published(self) -> Memory:
        """Everything that is published: counted, merged and made by the code that workers run."""
        survey = self.scheme.survey
        lookup = {survey.id: self.scheme}.get
        counter, merger = PartitionCounter(0, 1, lookup, KEY), Merger(0, 1, lookup, Keyring(bytes(16)))
        messages: list[Output] = []
        for content_type, value in self.records:
            counter.apply(Record(counter.next_offset, content_type, value))
            if content_type == FRAME:
                continue
            for item in counter.flush(everything=True):
                if isinstance(item, Output) and item.topic == PARTIALS:
                    merger.apply(merger.next_offset, item.value)
            messages += [item for item in merger.flush(everything=True) if isinstance(item, Output)]
        assert not counter.failed, counter.failed
        assert not merger.failed, merger.failed
        return Memory(messages, survey)


def check_published(results: Results, survey: Survey) -> int:
    """Read everything that is published of a survey; returns of how many periods there are results.

    Each period with a final has its results. No document and no table has NaN or infinity.
    """
    finals = [key.period for key in results.finals(survey.id)]
    assert results.periods(survey.id) == finals, "a final has no results"
    for view in all_views():
        for message in results.store.messages(view.name):
            from_json(decompress(message.value), allow_inf_nan=False)
        read = results.read(view, survey.id)
        if not view.topic.replaced and read:
            _check_tables(view, read, survey)
    assert not results.unreadable, results.unreadable
    _check_report(results, survey)
    return len(finals)


def _check_tables(view: View[Any], read: Sequence[Any], survey: Survey) -> None:
    for result in read:
        for name, parts in (view.tables or _no_tables)(result, survey).items():
            for part in parts:
                check_numbers(part.table(), f"{view.name} {name}")


def _no_tables(result: Any, survey: Survey) -> Mapping[str, Any]:
    return {}


def _check_report(results: Results, survey: Survey) -> None:
    """The same of what readers of reports make of them."""
    reports = results.mobility(survey.id)
    if not reports:
        return
    check_numbers(histogram_table(results.histograms(survey.id)), "histograms")
    nowcasts = [found.shares for found in results.read(NOWCASTS, survey.id)]
    known = {place: shares for found in nowcasts for place, shares in found.items()}
    for name, table in tables(with_nowcasts(with_changes(combine(reports)), known)).items():
        check_numbers(table, name)


def check_numbers(table: pa.Table, name: str) -> None:
    """No NaN and no infinity in a table."""
    for column in table.column_names:
        if pa.types.is_floating(table.schema.field(column).type):
            numbers = table[column].drop_null().to_pylist()
            assert all(map(isfinite, numbers)), f"{name}: {column} has {numbers}"
