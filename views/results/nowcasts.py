"""Nowcasts: the shares of a period, estimated with the help of earlier periods.

Filters begin at every multiple of 192 periods, and a nowcast is that of filters which know the last 193 to 384 periods.
So it is a function of these finals alone, and one that is made again after a restart has the same bytes. The filters of
the next 192 periods already run beside those of the present ones, so that no period costs more than two steps.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import compress
from math import sqrt
from typing import Any, Literal

import numpy as np

from analytics.columns import Column, Part, ResultModel
from analytics.estimation import CellNoise, nearest, shortened
from analytics.mobility import Answers, Quantities
from analytics.nowcasting import UNEXPECTED, Nowcaster
from protocols.arrays import Mask
from protocols.question import Question
from protocols.scheme import Scheme
from protocols.survey import Survey
from stream_app.log import TopicName
from views.forecasts.observing import share_variances
from views.past import Past, PeriodAnswers
from views.view import Pieces, View

BLOCK = 192
REACH = 2 * BLOCK
FEWEST_ERRORS = 4  # by which a number of answers with noise must exceed 0 for shares of them to be used
LEAST_FRESH = 1e-3  # of the variance: also where memos themselves are sent, no estimate counts as exact

_NUMBERS = ("value", "nowcast", "error", "low", "high", "surprise")
COLUMNS = {
    **dict.fromkeys(["begin", "end"], datetime),
    **dict.fromkeys(["attribute", "kind", "name"], str),
    **dict.fromkeys(_NUMBERS, float),
    "unexpected": bool,
    "periods": int,
}

Kind = Literal["values", "groups", "sizes"]


class NowcastTable(ResultModel):
    """Nowcasts of the values of an attribute, its groups, or sizes of its sets. Columns have a number for each name."""

    kind: Kind
    attribute: str
    names: tuple[str, ...]
    periods: int
    value: Column | None = None
    nowcast: Column | None = None
    error: Column | None = None
    low: Column | None = None
    high: Column | None = None
    surprise: Column | None = None
    unexpected: tuple[str, ...] = ()


class NowcastResult(ResultModel):
    """The nowcasts of one period of one survey."""

    schema_version: int = 1
    survey: str
    fingerprint: str
    period: int
    seasons: tuple[int, ...]
    tables: tuple[NowcastTable, ...]
    pieces: Pieces = ()

    @property
    def shares(self) -> dict[tuple[int, str, str], Quantities]:
        """The nowcasts as mobility reports have them, by period, attribute and kind."""
        return {
            (self.period, table.attribute, table.kind): Quantities(
                value=table.nowcast, error=table.error, low=table.low, high=table.high
            )
            for table in self.tables
            if table.nowcast is not None
        }


class _Filters:
    """The filters of all series of a survey, from some period on. Give them every final in the order of periods."""

    def __init__(self, scheme: Scheme) -> None:
        survey, drift = scheme.survey, scheme.survey.nowcast and scheme.survey.nowcast.drift
        self._scheme, self._series = scheme, list(_all_series(scheme))
        self._periods: Counter[str] = Counter()  # with answers, by attribute
        self._filters = Nowcaster(survey.nowcasts, survey.nowcast_season, drift / 100 if drift else np.inf)
        self._memo = self._surprise = np.zeros(0)

    def take(self, period: int, known: PeriodAnswers) -> None:
        predicted = self._filters.predict(period)
        values, fresh, self._memo = np.full((3, len(predicted)), np.nan)
        for question, _, _, members, own in self._series:
            answers = _published(self._scheme, question, known)
            if answers is None:
                continue
            if members is None:
                # Noise depends on the share, and an estimate that is high by chance must not count as a noisier one.
                likely = nearest(predicted[own], question.channel)
                self._periods[question.name] += 1
            shares, people = answers.shares.value, int(answers.visitors.value)
            values[own] = shares if members is None else shares @ members.T
            fresh[own], self._memo[own] = share_variances(self._scheme, question, likely, answers.n, people, members)
        self._surprise = self._filters.update(values, np.maximum(fresh, LEAST_FRESH * (fresh + self._memo)))

    def tables(self, known: PeriodAnswers) -> Iterator[NowcastTable]:
        """The nowcasts of the newest period, whose answers these are."""
        every = self._filters.now(self._memo)
        for question, kind, names, members, own in self._series:
            answers, numbers = _published(self._scheme, question, known), dict[str, Any](names=names)
            if answers is not None:
                alone = answers.shown if members is None else shortened(answers.of_groups(members))
                now, surprise = shortened(every[own]), self._surprise[own]
                columns = (alone.value, now.value, now.error, now.low, now.high, surprise.round(6))
                numbers |= zip(_NUMBERS, columns, strict=True)
                numbers["unexpected"] = surprise < UNEXPECTED
            parts: list[tuple[Kind, slice]] = [(kind, slice(None))]
            if kind == "values" and question.several > 1:
                parts = [(kind, slice(question.items.k)), ("sizes", slice(question.items.k, None))]
            for part, some in parts[: 1 if question.numeric else None]:
                own_numbers = {column: found[some] for column, found in numbers.items()}
                own_numbers["unexpected"] = list(compress(names[some], own_numbers.get("unexpected", ())))
                yield NowcastTable(
                    kind=part, attribute=question.name, periods=self._periods[question.name], **own_numbers
                )


def _all_series(scheme: Scheme) -> Iterator[tuple[Question, Kind, tuple[str, ...], Mask | None, slice]]:
    """The values of every attribute, and its groups; the last part is where they are among all series."""
    begin = 0
    for question in scheme.questions:
        asked = question.attribute
        parts: list[tuple[Kind, tuple[str, ...], Mask | None]] = [("values", asked.values, None)]
        if asked.groups:
            parts.append(("groups", tuple(asked.groups), question.members))
        for kind, names, members in () if asked.placed else parts:
            yield question, kind, names, members, slice(begin, begin + len(names))
            begin += len(names)


def _published(scheme: Scheme, question: Question, known: PeriodAnswers) -> Answers | None:
    """The answers of a period, if they are published and enough for shares."""
    answers = known.answers.get(question.name)
    if answers is None or known.total is None:
        return None
    noise = CellNoise.of(scheme, question.name)
    fewest = 1.0 if noise is None else max(1.0, FEWEST_ERRORS * sqrt(noise.reports))
    return answers if answers.n >= fewest else None


def make(past: Past) -> NowcastResult | None:
    scheme, survey = past.scheme, past.scheme.survey
    if not survey.nowcasts:
        return None
    block, (through, before) = past.period // BLOCK, past.memory.pop("nowcasts", (None, {}))
    finals, before = (past.finals[-1:], before) if through == past.period - 1 else (past.finals[-REACH:], {})
    begins = [max(0, block - 1) * BLOCK, block * BLOCK]  # of the filters of this block, and of those of the next
    filters = {begin: before.get(begin) or _Filters(scheme) for begin in begins}
    for final in finals:
        answers = past.answers if final.period == past.period else PeriodAnswers.of(scheme, final)
        for begin, one in filters.items():
            if begin <= final.period:
                one.take(final.period, answers)
    past.memory["nowcasts"] = past.period, filters
    return NowcastResult(
        survey=survey.id,
        fingerprint=scheme.fingerprint,
        period=past.period,
        seasons=(survey.nowcast_season,) if survey.nowcast_season > 1 else (),
        tables=tuple(filters[begins[0]].tables(past.answers)),
    )


def tables(result: NowcastResult, survey: Survey) -> dict[str, list[Part]]:
    """The rows of a result, one for each name; none where nothing is published."""
    parts, (begin, end) = [Part.without_rows(COLUMNS)], survey.bounds(result.period)
    for table in result.tables:
        if table.nowcast is not None:
            entries = {column: getattr(table, column) for column in ("attribute", "kind", "periods", *_NUMBERS)}
            entries |= {"unexpected": [name in table.unexpected for name in table.names], "name": table.names}
            parts.append(Part.of(COLUMNS, len(table.names), {**entries, "begin": begin, "end": end}))
    return {"nowcasts": parts}


def reach(scheme: Scheme) -> int:
    return REACH if scheme.survey.nowcasts else 1


NOWCASTS = View(TopicName("nowcasts"), "nowcast", NowcastResult, make, reach, tables)
