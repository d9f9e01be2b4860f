"""Dead letters on a cluster: what was refused and why, which of it was sent again, and which would be refused again.

A dead letter has the refused record unchanged, so it can be sent again when the cause is gone. Only one that is too
large is cut, and is not sent again. What was sent again is noted on the same topic, by records of the content type
`RESUBMITTED`: a JSON list of the letters' keys. A note is younger than its letters, so retention removes it after them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from protocols.wire import CLOCK, CONTENT_TYPE_HEADER, Reason, ReportHeader, named
from servers.settings import KafkaSettings
from stream_app.kafka.reading import read_topic
from stream_app.kafka.registry import Published
from stream_app.kafka.topics import Topics

RESUBMITTED: Final = "application/vnd.hearsay.resubmitted+json"


@dataclass(frozen=True)
class DeadLetter:
    """A refused record (or refused rows, as a frame), where it was on the reports topic, and when it was refused."""

    key: str
    reason: Reason
    survey: str  # empty if it could not be read
    rows: int
    partition: int
    at: datetime
    content_type: str
    value: bytes = field(repr=False)
    size: int = 0  # of the refused record: more than is left of it, if it was cut

    @property
    def is_cut(self) -> bool:
        return self.size > len(self.value)

    @property
    def is_clock(self) -> bool:
        return self.content_type == CLOCK

    @property
    def named(self) -> ReportHeader | None:
        """The survey and the period that it names; None if it cannot be read."""
        return named(self.content_type, self.value)


def noted(letters: Sequence[str]) -> bytes:
    """The value of a note that the letters with these keys were sent again."""
    return json.dumps(letters).encode()


def dead_letters(kafka: KafkaSettings, topics: Topics, resubmitted: set[str]) -> Iterator[DeadLetter]:
    """Every dead letter of a cluster once, the letters of a partition in the order of their offsets.

    The keys of those that were sent again are added to `resubmitted`. A crash of a worker repeats letters, and never
    leaves one out before a later one of its partition. Only where the topic takes less than workers send, a letter that
    was cut for it may come after later ones.
    """
    return letters_in(read_topic(kafka, topics.deadletters), resubmitted)


def letters_in(records: Iterable[Any], resubmitted: set[str]) -> Iterator[DeadLetter]:
    """The same, of records that were read.

    A letter has the content type that its sender gave: one that looks like a note is a letter nevertheless.
    """
    seen: set[str] = set()
    for record in records:
        headers = {name: bytes(value or b"").decode("utf-8", "replace") for name, value in record.headers}
        letter = _letter(record, headers)
        if letter is None and headers.get(CONTENT_TYPE_HEADER) == RESUBMITTED:
            resubmitted.update(json.loads(record.value))
        if letter is not None and letter.key not in seen:
            seen.add(letter.key)
            yield letter


def _letter(record: Any, headers: Mapping[str, str]) -> DeadLetter | None:
    """The dead letter in a record; None if something other than a worker wrote it."""
    try:
        content_type, value = headers[CONTENT_TYPE_HEADER], record.value or b""
        about = named(content_type, value)
        return DeadLetter(
            key=record.key.decode(),
            reason=Reason(headers["reason"]),
            survey=headers["survey"] or (about.survey if about else ""),
            rows=int(headers["rows"]),
            partition=int(headers["partition"]),
            at=datetime.fromtimestamp(record.timestamp / 1000, UTC),
            content_type=content_type,
            value=value,
            size=int(headers["bytes"]),
        )
    except (KeyError, ValueError, AttributeError, TypeError):
        return None


@dataclass
class Refusals:
    """Why workers would refuse records again, as far as it can be known before they are sent.

    `finals` is the last final period of each survey. A period is closed a little before it is final, so a record that
    passes here may still be late.
    """

    published: Mapping[str, Published]
    finals: Mapping[str, int]
    _through: dict[tuple[str, int], int] = field(default_factory=dict)  # by survey and partition: clocks sent again

    def of(self, letter: DeadLetter) -> Reason | None:
        """Why a record would be refused if it came next. A clock record that would not be refused closes periods."""
        if letter.is_cut:
            return Reason.TOO_LARGE
        about = letter.named
        if about is None:
            return Reason.UNDECODABLE
        known = self.published.get(about.survey)
        if known is None:
            return Reason.UNKNOWN_SURVEY
        if not letter.is_clock and about.fingerprint != known.fingerprint:
            return Reason.WRONG_FINGERPRINT
        place = about.survey, letter.partition
        through = self._through.get(place, self.finals.get(about.survey, -1))
        if about.period <= through:
            return Reason.LATE
        if letter.is_clock:
            self._through[place] = about.period
            return None
        return Reason.TOO_FAR_AHEAD if about.period > through + known.survey.ahead else None
