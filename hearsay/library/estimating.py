"""Histograms from reports or from counts, as Arrow tables."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from analytics.columns import Part
from analytics.estimation import consistent_shares
from analytics.estimation import estimate as shares_of
from protocols.errors import SurveyError, WireError
from protocols.mechanisms import MatrixRound, SupportChannel
from protocols.question import Question
from protocols.scheme import PRESENCE_ONLY, Scheme
from protocols.survey import Survey
from protocols.wire import ROW_REASONS, Frame, Reject, decode_frame, decode_report, row_faults
from stream_app.counting import Counts, PeriodCounts, add_counts

CONFIDENCE = 0.95
FIGURES = ("estimate", "error", "low", "high", "consistent", "consistent_low", "consistent_high")
TEXTS = ("attribute", "value", "row", "column")
ESTIMATES = {**dict.fromkeys(TEXTS, str), "n": int, **dict.fromkeys(FIGURES, float)}
HISTOGRAMS = {"period": int, "begin": datetime, "end": datetime, **ESTIMATES}


def estimate(survey: Survey, reports: bytes | Iterable[bytes], *, confidence: float = CONFIDENCE) -> pa.Table:
    """Histograms from reports: frames (Arrow) and single reports (JSON), mixed and in any order.

    One row for each period, attribute and value, and for each pair of a cross, whose values are in `row` and `column`:
    the unbiased `estimate` of its share with its standard `error` and the interval from `low` to `high`, and the
    `consistent` share, which is non-negative and sums to 1, by the attribute's `correction` (of an ordered mechanism
    with an interval from `consistent_low` to `consistent_high`). `n` is how many reports answered the attribute; where
    it is 0, nothing is estimated. A token counts once in a period. A report that does not fit the survey raises an
    error. `minimum` and `presence_epsilon` are not applied: they are for published results.
    """
    scheme = _compiled(survey, confidence)
    by_period: dict[int, list[Frame]] = {}
    if not isinstance(reports, bytes | Iterable) or isinstance(reports, str):
        raise WireError(f"reports are {type(reports).__name__}", "give bytes, or a list of them")
    for place, report in enumerate([reports] if isinstance(reports, bytes) else reports):
        if not isinstance(report, bytes):
            raise WireError(f"report {place} is {type(report).__name__}", "give bytes")
        frame = _decode(scheme, report, place)
        by_period.setdefault(frame.period, []).append(frame)
    tables = [Part.without_rows(HISTOGRAMS).table()]
    for period in sorted(by_period):
        begin, end = survey.bounds(period)
        counted = _count(scheme, by_period[period])
        counts = {name: found.supports for name, found in counted.items()}
        n = {name: found.total for name, found in counted.items()}
        silent = n.pop(PRESENCE_ONLY, 0)
        tables.append(_table(scheme, counts, n, confidence, silent, period=period, begin=begin, end=end))
    return pa.concat_tables(tables)


def estimate_counts(
    survey: Survey, counts: Mapping[str, ArrayLike], n: Mapping[str, int], *, confidence: float = CONFIDENCE
) -> pa.Table:
    """The same from counts: of `n[attribute]` reports, `counts[attribute]` support each value, in the survey's order.

    There is no period in it: the counts may be of one, or of any set of reports with at most one from each device. In a
    survey with one_in, `n` counts answers; they are taken as a sample of an unlimited population.
    """
    scheme, given = _compiled(survey, confidence), {}
    if not isinstance(counts, Mapping) or not isinstance(n, Mapping):
        raise SurveyError("counts and n are not by attribute", 'give them as {"attribute": ...}')
    for question in scheme.questions:
        if question.name not in counts or question.name not in n:
            raise SurveyError(
                f"attribute {question.name!r} has no counts or no n", "give both for every attribute of the survey"
            )
        given[question.name] = _whole(f"counts of attribute {question.name!r}", counts[question.name])
        reports = _whole(f"n of attribute {question.name!r}", n[question.name])
        if given[question.name].shape != (question.k,):
            raise SurveyError(
                f"attribute {question.name!r} has {question.k} values and {given[question.name].size} counts",
                "give one count for each value, in the survey's order",
            )
        _check_possible(question, given[question.name], int(reports))
    return _table(scheme, given, n, confidence)


def _compiled(survey: Survey, confidence: float) -> Scheme:
    if not isinstance(survey, Survey):
        raise SurveyError(f"the survey is {type(survey).__name__}", "give what hearsay.load_survey returns")
    if not isinstance(confidence, float) or not 0 < confidence < 1:
        raise SurveyError(f"a confidence of {confidence}", "give a share between 0 and 1, such as 0.95")
    return Scheme(survey)


def _whole(what: str, given: ArrayLike) -> NDArray[np.int64]:
    """Whole numbers that are not negative; raises SurveyError for anything else."""
    try:
        numbers = np.asarray(given, dtype=np.float64)
        if not (np.isfinite(numbers).all() and (numbers >= 0).all() and (numbers % 1 == 0).all()):
            raise ValueError
    except (TypeError, ValueError):
        raise SurveyError(f"{what}: not whole numbers from 0 on", "give numbers of reports") from None
    return numbers.astype(np.int64)


def _check_possible(question: Question, counts: NDArray[np.int64], n: int) -> None:
    """Refuse counts that no reports can have."""
    most, total, channel = int(counts.max()), int(counts.sum()), question.channel
    one = channel.exclusive if isinstance(channel, SupportChannel) else isinstance(channel, MatrixRound)
    if most > n or (one and total != n):
        raise SurveyError(
            f"attribute {question.name!r}: {n:,} reports, {most:,} for one value, {total:,} for all",
            "n is the number of reports, and a report supports a value at most once",
        )


def _decode(scheme: Scheme, report: bytes, place: int) -> Frame:
    lookup = {scheme.survey.id: scheme}.get
    frame = decode_report(report, lookup) if report[:1] == b"{" else decode_frame(report, lookup)
    if isinstance(frame, Reject):
        raise WireError(
            f"report {place}: {frame.reason}: {frame.detail}", "leave it out, or load the survey that it answers"
        )
    faults = row_faults(frame, scheme, partition=0, partitions=1)
    if faults.any():
        row = int(np.flatnonzero(faults)[0])
        raise WireError(f"report {place}, row {row}: {ROW_REASONS[faults[row] - 1]}", "leave it out")
    return frame


def _count(scheme: Scheme, frames: Sequence[Frame]) -> Counts:
    """The reports of one period, of which each token counts once."""
    counts = PeriodCounts(scheme)
    tokens = np.concatenate([frame.tokens for frame in frames])
    first = np.zeros(len(tokens), dtype=np.bool_)
    first[np.unique(tokens, return_index=True)[1]] = True
    ends = np.cumsum([len(frame) for frame in frames])
    for frame, counted in zip(frames, np.split(first, ends[:-1]), strict=True):
        counts.count(frame.take(counted))
    return add_counts([counts.snapshot()], scheme)


def _table(
    scheme: Scheme,
    counts: Mapping[str, NDArray[np.int64]],
    n: Mapping[str, int],
    confidence: float,
    presence_only: int | None = None,
    **period: Any,
) -> pa.Table:
    """One row for each attribute and value; with the columns of its `period`, if there is one.

    The estimates are about those who reported; where each device answers one attribute, about all of them together.
    With one_in, `presence_only` reports answered nothing; without it, answers are a sample of an unlimited population.
    """
    types, parts, everybody = (HISTOGRAMS if period else ESTIMATES), list[Part](), None
    if presence_only is not None or not scheme.takes_turns:
        everybody = sum({**n, PRESENCE_ONLY: presence_only or 0}[kind] for kind in scheme.kinds)
    for question in scheme.questions:
        name, values, figures = question.name, question.attribute.values, {}
        if n[name]:
            shares = shares_of(counts[name], n[name], question.channel, population=everybody, confidence=confidence)
            correction = question.attribute.correction
            consistent = consistent_shares(counts[name], n[name], question.channel, confidence, correction)
            found = shares.value, shares.error, shares.low, shares.high
            columns = zip(FIGURES, (*found, consistent.value, consistent.low, consistent.high), strict=True)
            figures = {figure: None if column is None else column[: len(values)] for figure, column in columns}
        pairs = list(product(*(axis.values for axis in question.axes))) if question.axes else ()
        row, column = zip(*pairs, strict=True) if pairs else (None, None)
        named = {"attribute": name, "value": values, "row": row, "column": column, "n": n[name]}
        parts.append(Part.of(types, len(values), period | named | figures))
    return pa.concat_tables([part.table() for part in parts])
