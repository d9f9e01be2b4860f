"""The open periods of one partition: which there are, and which of them are to be written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from protocols.scheme import Scheme
from protocols.wire import Reason
from stream_app.counting.judging import Judged
from stream_app.counting.partials import Part, message
from stream_app.counting.state import OpenPeriod, Period, counter_key, tokens_key
from stream_app.log.asides import check_size
from stream_app.log.flushes import Output, Write


class OpenPeriods:
    """The periods of all surveys that a partition counts. No record that is written has more than `limit` bytes."""

    def __init__(self, partition: int, periods: Mapping[Period, OpenPeriod], check_tokens: bool, limit: int) -> None:
        self._partition = partition
        self._surveys: dict[str, dict[int, OpenPeriod]] = {}
        for (survey, number), period in periods.items():
            self._surveys.setdefault(survey, {})[number] = period
        self._check_tokens = check_tokens
        self._limit = limit
        self._expected: dict[str, int] = {}  # by survey: tokens in its last closed period

    @property
    def all(self) -> dict[Period, OpenPeriod]:
        return {(survey, number): period for survey, held in self._surveys.items() for number, period in held.items()}

    def surveys(self) -> list[str]:
        return sorted(self._surveys)

    def of(self, survey: str) -> list[tuple[Period, OpenPeriod]]:
        """The open periods of a survey, in order."""
        return [((survey, number), period) for number, period in sorted(self._surveys.get(survey, {}).items())]

    def open(self, key: Period, scheme: Scheme) -> OpenPeriod:
        """An open period; the first frame of a period opens it."""
        survey, number = key
        held = self._surveys.setdefault(survey, {})
        if number not in held:
            held[number] = OpenPeriod.empty(scheme)
            held[number].tokens.reserve(self._expected.get(survey, 0))
        return held[number]

    def close(self, survey: str, through: int) -> list[tuple[Period, OpenPeriod]]:
        """Take the periods of a survey that are closed through a period."""
        closed = [(key, period) for key, period in self.of(survey) if key[1] <= through]
        for (_, number), period in closed:
            del self._surveys[survey][number]
            self._expected[survey] = len(period.tokens) * 17 // 16  # some spare room: growing the table costs much
        if not self._surveys.get(survey, True):
            del self._surveys[survey]
        return closed

    def forget(self, survey: str) -> None:
        self._surveys.pop(survey, None)

    def count(self, offset: int, period: OpenPeriod, judged: Judged) -> tuple[int, dict[Reason, int]]:
        """Count the good rows of a record. Returns how many were counted, and how many of the rows were refused."""
        good = judged.good
        refused = {reason: len(rows) for reason, rows in judged.bad.items()}
        if self._check_tokens and len(good):
            new = period.tokens.insert(good.tokens)
            if not new.all():
                refused[Reason.REPEAT] = int(len(good) - new.sum())
                good = good.take(new)
            if len(good):
                period.new_tokens.append(good.tokens)
        if len(good):
            period.counts.count(good)
        period.rejects.update({reason.value: rows for reason, rows in refused.items()})
        period.offset = offset
        period.unsaved = period.unsent = True
        return len(good), refused

    def part(self, key: Period, period: OpenPeriod, closed: bool = False) -> Output:
        """What a period has counted so far as a message to the merge."""
        period.unsent = False
        refused = period.rejects.total() - period.rejects[Reason.REPEAT.value]
        counts, late = period.counts.snapshot(), dict(period.late)
        output = message(Part(*key, self._partition, period.offset, closed, counts, late, refused))
        check_size(key[0], f"what is counted of period {key[1]}", output.value, self._limit)
        return output

    def writes(self, survey: str) -> tuple[list[Write], list[Write]]:
        """The token records and the counters of a survey that changed since they were last written."""
        tokens, counters = [], []
        for key, period in self.of(survey):
            if not period.unsaved:
                continue
            if period.new_tokens:
                tokens.append(Write(tokens_key(self._partition, key, period.offset), period.take_tokens()))
            counters.append(Write(counter_key(self._partition, key), period.encode()))
            period.unsaved = False
        for write in (*tokens, *counters):
            check_size(survey, "a record of its state", write.value or b"", self._limit)
        return tokens, counters

    def records_of(self, key: Period, period: OpenPeriod) -> list[bytes]:
        """The keys of the state records of a period."""
        tokens = [tokens_key(self._partition, key, offset) for offset in period.token_offsets]
        return [counter_key(self._partition, key), *tokens]

    def rejects(self, survey: str) -> Counter[str]:
        """Rows that the open periods of a survey refused, by reason."""
        return sum((period.rejects for _, period in self.of(survey)), Counter[str]())
