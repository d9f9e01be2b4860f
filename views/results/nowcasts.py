"""Nowcasts: the shares of a period, estimated with the help of earlier periods.

The state of the filters begins at a period number that is a multiple of 64, 192 to 255 periods before the newest. So a
nowcast is a function of these finals alone, and one that is made again after a restart has the same bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import compress
from math import sqrt
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from analytics.columns import Column
from analytics.estimation import CellNoise, norm_sub, shortened
from analytics.mobility import Answers, Part, Quantities
from analytics.nowcasting import UNEXPECTED, Nowcaster
from protocols.arrays import Floats, Mask
from protocols.question import Question
from protocols.scheme import Scheme
from protocols.survey import Survey
from stream_app.log import TopicName
from views.forecasts.observing import share_variances
from views.past import Past, PeriodAnswers
from views.results.tables import part_of
from views.view import Pieces, ResultModel, View

BLOCK, BLOCKS = 64, 4
REACH = BLOCK * BLOCKS
FEWEST_ERRORS = 4  # by which a number of answers with noise must exceed 0 for shares of them to be used
LEAST_FRESH = 1e-3  # of the variance: also where memos themselves are sent, no estimate counts as exact

_NOW, _PARTS = ("nowcast", "error", "low", "high"), ("value", "error", "low", "high")  # of Quantities and Estimates
_NUMBERS = ("value", *_NOW, "surprise")
_SAME = ("kind", "attribute", "periods", *_NUMBERS)  # in tables of results and for sinks
COLUMNS = pa.schema(
    {
        "begin": pa.timestamp("us", tz="UTC"),
        "end": pa.timestamp("us", tz="UTC"),
        **dict.fromkeys(["attribute", "kind", "name"], pa.string()),
        **dict.fromkeys(_NUMBERS, pa.float64()),
        "unexpected": pa.bool_(),
        "periods": pa.int64(),
    }
)


Kind = Literal["values", "groups"]


class NowcastTable(ResultModel):
    """Nowcasts of the values of an attribute, or of its groups. Columns have a number for each name."""

    kind: Kind
    attribute: str
    names: tuple[str, ...] = Field(description="the values or groups")
    periods: int = Field(description="how many periods with answers the nowcast knows, this one included")
    value: Column | None = Field(None, description="the shares from this period alone; null if nothing is published")
    nowcast: Column | None = Field(None, description="the shares in this period, from all these periods")
    error: Column | None = Field(None, description="standard errors of the nowcasts")
    low: Column | None = Field(None, description="lower ends of their 95 % intervals")
    high: Column | None = Field(None, description="upper ends of their 95 % intervals")
    surprise: Column | None = Field(None, description="p-values of `value`, given the earlier periods")
    unexpected: tuple[str, ...] = Field((), description="the names whose p-value is below 0.01")


class NowcastResult(ResultModel):
    """The nowcasts of one period of one survey."""

    schema_version: int = Field(1, description="of this shape; a reader refuses one that is newer than it knows")
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
            (self.period, table.attribute, table.kind): Quantities.model_validate(
                {part: getattr(table, name) for name, part in zip(_NOW, _PARTS, strict=True)}
            )
            for table in self.tables
            if table.nowcast is not None
        }


class _Series:
    """The values and groups of one attribute: what was published of them, and their filters."""

    def __init__(self, scheme: Scheme, question: Question) -> None:
        self._scheme, self._question = scheme, question
        self._names: dict[Kind, tuple[str, ...]] = {"values": question.attribute.values}
        self._members: dict[Kind, Mask | None] = {"values": None}
        if question.attribute.groups:
            self._names["groups"], self._members["groups"] = tuple(question.attribute.groups), question.members
        noise = CellNoise.of(scheme, question.name)
        self._fewest = max(scheme.survey.minimum, 1, 0 if noise is None else FEWEST_ERRORS * sqrt(noise.reports))
        self._history: deque[tuple[int, Answers | None]] = deque(maxlen=REACH)
        self._first = self._through = -1  # of what the filters know
        self._filters = Nowcaster(0)

    def take(self, period: int, known: PeriodAnswers) -> None:
        """Note what is published of the next period."""
        own, enough = known.answers.get(self._question.name), (known.total or 0) >= self._scheme.survey.minimum
        self._history.append((period, own if enough and own is not None and own.n >= self._fewest else None))

    def tables(self) -> Iterator[NowcastTable]:
        """The nowcasts of the newest period."""
        period, answers = self._history[-1]
        first = max(0, period // BLOCK - BLOCKS + 1) * BLOCK
        known = [entry for entry in self._history if entry[0] >= first]
        if (self._first, self._through) != (first, period - 1):
            survey = self._scheme.survey
            drift = survey.nowcast and survey.nowcast.drift
            series = sum(map(len, self._names.values()))
            self._filters = Nowcaster(series, survey.nowcast_season, drift / 100 if drift else np.inf)
            for earlier in known[:-1]:
                self._step(*earlier)
        self._first, self._through = first, period
        surprise, memo = self._step(period, answers)
        now, begin = None if answers is None else shortened(self._filters.now(memo)), 0
        about = {"attribute": self._question.name, "periods": sum(found is not None for _, found in known)}
        for kind, names in self._names.items():
            own, begin = slice(begin, begin + len(names)), begin + len(names)
            table = NowcastTable(kind=kind, names=names, **about)
            if answers is not None and now is not None:
                numbers = {
                    **{name: getattr(now, part)[own] for name, part in zip(_NOW, _PARTS, strict=True)},
                    "value": shortened(answers.of_groups(self._members[kind])).value,
                    "surprise": np.round(surprise[own], 6),
                    "unexpected": tuple(compress(names, surprise[own] < UNEXPECTED)),
                }
                table = table.model_copy(update=numbers)
            yield table

    def _step(self, period: int, answers: Answers | None) -> tuple[Floats, Floats]:
        """Let the filters take in a period; returns p-values, and the variances of memos."""
        predicted = self._filters.predict(period)
        if answers is None:
            nothing = np.full_like(predicted, np.nan)
            return self._filters.update(nothing, nothing), nothing
        # Noise depends on the share, and an estimate that is high by chance must not be taken for a noisier one.
        likely, about = norm_sub(predicted[: self._question.k]), (answers.n, int(answers.visitors.value))
        groupings, shares = self._members.values(), answers.shares.value
        parts = [share_variances(self._scheme, self._question, likely, *about, each) for each in groupings]
        fresh, memo = (np.concatenate(part) for part in zip(*parts, strict=True))
        values = np.concatenate([shares if each is None else shares @ each.T for each in groupings])
        return self._filters.update(values, np.maximum(fresh, LEAST_FRESH * (fresh + memo))), memo


def make(past: Past) -> NowcastResult | None:
    scheme, survey = past.scheme, past.scheme.survey
    if not survey.nowcasts:
        return None
    through, series = past.memory.get("nowcasts", (None, []))
    if through != past.period - 1:
        series = [_Series(scheme, question) for question in scheme.questions if not question.attribute.placed]
        for final in past.last(REACH)[:-1]:
            answers = PeriodAnswers.of(scheme, final)
            for one in series:
                one.take(final.period, answers)
    past.memory["nowcasts"] = past.period, series
    for one in series:
        one.take(past.period, past.answers)
    return NowcastResult(
        survey=survey.id,
        fingerprint=scheme.fingerprint,
        period=past.period,
        seasons=(survey.nowcast_season,) if survey.nowcast_season > 1 else (),
        tables=tuple(table for one in series for table in one.tables()),
    )


def nowcast_parts(result: NowcastResult, survey: Survey) -> Iterator[Part]:
    """The rows of a result, one for each name; none where nothing is published."""
    yield Part.without_rows(COLUMNS)
    begin, end = survey.bounds(result.period)
    for table in result.tables:
        if table.nowcast is not None:
            entries = {"begin": begin, "end": end, "name": table.names, **{n: getattr(table, n) for n in _SAME}}
            unexpected = [name in table.unexpected for name in table.names]
            yield part_of(COLUMNS, len(table.names), {**entries, "unexpected": unexpected})


NOWCASTS = View(
    TopicName("nowcasts"),
    "nowcast",
    NowcastResult,
    make,
    lambda scheme: REACH if scheme.survey.nowcasts else 1,
    lambda found, survey: {"nowcasts": nowcast_parts(found, survey)},
)
