"""The open periods of one partition: which there are, and which of them are to be written.

A counter is as large as its survey has values, however few reports came. So it is not written at every flush, but when
as many bytes came in as repay it. Until then the position lists the offset that the counter has in memory: recovery
finds that the record is older, and reads the log again from there.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from protocols.scheme import Scheme
from protocols.wire import Reason
from stream_app.counting.judging import Judged
from stream_app.counting.partials import Part, message
from stream_app.counting.state import OpenPeriod, Period
from stream_app.log.codec import RECORD_COST
from stream_app.log.flushes import Output, Write, state_key
from stream_app.log.recovery import check_size

SENT_BYTES = 64 << 10
"""What sending counts costs at least, with all that follows from it: a live result is made."""
SPARE = 17 / 16
"""Tables of tokens get some room beyond what is expected: to grow costs much."""
HEAD_BYTES = 512
"""About what a counter takes besides its counts."""


@dataclass(frozen=True)
class Saving:
    """When a counter is written: as soon as `repaid` times what came in since is as much as it takes; or before so
    many bytes of tokens wait, or so much of the log would have to be read again (each record costs `RECORD_COST` more).

    Its counts are sent to the merge by the same rule; also, a logarithmic number of times, whenever they have doubled.
    """

    repaid: float = 4.0
    token_bytes: int = 2 << 20
    read_again: int = 64 << 20

    def saves(self, period: OpenPeriod) -> bool:
        """Whether a period that changed must be written. One without a record must: the log may be long."""
        if period.saved_at is None or self.repaid * period.brought >= _size(period):
            return True
        waiting = sum(tokens.nbytes for tokens in period.new_tokens)
        return waiting >= self.token_bytes or period.changed_at - period.saved_at >= self.read_again

    def sends(self, period: OpenPeriod) -> bool:
        """Whether what a period has counted so far is to be sent."""
        size = max(_size(period), SENT_BYTES)
        return self.repaid * period.brought_unsent >= size or period.rows >= 2 * period.sent_rows


def _size(period: OpenPeriod) -> int:
    return HEAD_BYTES + period.counts.nbytes


class OpenPeriods:
    """The periods of all surveys that a partition counts. No record that is written has more than `limit` bytes."""

    def __init__(
        self,
        partition: int,
        periods: Mapping[Period, OpenPeriod],
        check_tokens: bool,
        limit: int,
        saving: Saving,
    ) -> None:
        self._partition = partition
        self._surveys: dict[str, dict[int, OpenPeriod]] = {}
        for (survey, number), period in periods.items():
            self._surveys.setdefault(survey, {})[number] = period
        self._check_tokens = check_tokens
        self._limit = limit
        self._saving = saving
        self._read = 0  # how much of the log was read
        self._expected: dict[str, int] = {}  # by survey: tokens in its last closed period

    @property
    def all(self) -> dict[Period, OpenPeriod]:
        return {(survey, number): period for survey, held in self._surveys.items() for number, period in held.items()}

    def surveys(self) -> list[str]:
        return sorted(self._surveys)

    def of(self, survey: str) -> list[tuple[Period, OpenPeriod]]:
        """The open periods of a survey, in order."""
        return [((survey, number), period) for number, period in sorted(self._surveys.get(survey, {}).items())]

    def get(self, key: Period) -> OpenPeriod | None:
        return self._surveys.get(key[0], {}).get(key[1])

    def open(self, key: Period, scheme: Scheme, offset: int) -> OpenPeriod:
        """An open period; the first record that changes it, at an offset, opens it."""
        survey, number = key
        held = self._surveys.setdefault(survey, {})
        if number not in held:
            held[number] = OpenPeriod.empty(scheme)
            held[number].tokens.reserve(self._expected.get(survey, 0))
        held[number].opened = min(held[number].opened, offset)
        return held[number]

    def close(self, survey: str, through: int) -> list[tuple[Period, OpenPeriod]]:
        """Take the periods of a survey that are closed through a period."""
        closed = [(key, period) for key, period in self.of(survey) if key[1] <= through]
        for (_, number), period in closed:
            del self._surveys[survey][number]
            self._expected[survey] = int(len(period.tokens) * SPARE)
        if not self._surveys.get(survey, True):
            del self._surveys[survey]
        return closed

    def note_read(self, size: int) -> None:
        """Note that so much of the log was read, of whatever survey."""
        self._read += size + RECORD_COST

    def change(self, period: OpenPeriod, offset: int, size: int) -> None:
        """Note that records of some bytes changed a period, the last of them at an offset."""
        period.offset = offset
        period.unsent = True
        period.brought += size
        period.brought_unsent += size
        period.changed_at = self._read

    def count(self, offset: int, period: OpenPeriod, judged: Judged, size: int) -> tuple[int, dict[Reason, int]]:
        """Count the good rows of records of some bytes. Returns how many were counted, and how many rows were refused.

        `offset` is that of the last record.
        """
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
        period.rows += len(good)
        self.change(period, offset, size)
        return len(good), refused

    def part(self, key: Period, period: OpenPeriod, closed: bool = False) -> Output:
        """What a period has counted so far as a message to the merge."""
        period.unsent = False
        period.brought_unsent, period.sent_rows = 0, period.rows
        refused = period.rejects.total() - period.rejects[Reason.REPEAT.value]
        counts, late = period.counts.snapshot(), dict(period.late)
        output = message(Part(*key, self._partition, period.offset, closed, counts, late, refused))
        check_size(key[0], f"what is counted of period {key[1]}", output.value, self._limit)
        return output

    def unsent(self, survey: str, everything: bool) -> list[Output]:
        """What the periods of a survey have counted so far, where that is to be sent now."""
        held = [(key, period) for key, period in self.of(survey) if period.unsent]
        return [self.part(key, period) for key, period in held if everything or self._saving.sends(period)]

    def writes(self, survey: str, everything: bool) -> tuple[list[Write], list[Write]]:
        """The token records and the counters of a survey that are to be written now, or all that changed."""
        tokens, counters = [], []
        for key, period in self.of(survey):
            if not (period.brought and (everything or self._saving.saves(period))):
                continue
            if period.new_tokens:
                tokens.append(
                    Write(state_key("count", self._partition, "tokens", *key, period.offset), period.take_tokens())
                )
            counters.append(Write(state_key("count", self._partition, "counter", *key), period.encode()))
            period.brought, period.saved_at = 0, period.changed_at
        for write in (*tokens, *counters):
            check_size(survey, "a record of its state", write.value or b"", self._limit)
        return tokens, counters

    def records_of(self, key: Period, period: OpenPeriod) -> list[bytes]:
        """The keys of the state records of a period."""
        tokens = [state_key("count", self._partition, "tokens", *key, offset) for offset in period.token_offsets]
        return [state_key("count", self._partition, "counter", *key), *tokens]

    def rejects(self, survey: str) -> Counter[str]:
        """Rows that the open periods of a survey refused, by reason."""
        return sum((period.rejects for _, period in self.of(survey)), Counter[str]())
