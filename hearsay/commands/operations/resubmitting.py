"""Reading the dead letters of a cluster, and sending them again."""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from hearsay.terminal.console import Step
from producers.kafka_sink import KafkaSink
from producers.stopping import Stop
from protocols.errors import Stopped
from protocols.wire import Reason
from servers.settings import KafkaSettings
from stream_app.kafka import RESUBMITTED, DeadLetter, Refusals, dead_letters, existing, last_finals, noted, records

AT_ONCE = 500
"""After how many records they are confirmed and noted: so many may be sent twice if the process is killed."""


@dataclass
class Group:
    """The dead letters of one reason and one survey ("" where it could not be read)."""

    reason: Reason
    survey: str
    oldest: datetime
    newest: datetime
    records: int = 0
    rows: int = 0
    resubmitted: int = 0  # of the records


def summarise(kafka: KafkaSettings, reason: Reason | None, survey: str | None, step: Step) -> list[Group]:
    """The dead letters by reason and survey, the largest group first."""
    resubmitted: set[str] = set()
    groups: dict[tuple[Reason, str], Group] = {}
    keys: dict[str, Group] = {}
    for letter in dead_letters(kafka, existing(kafka), resubmitted):
        if not _wanted(letter, reason, survey):
            continue
        place = letter.reason, letter.survey
        group = groups.setdefault(place, Group(*place, letter.at, letter.at))
        group.records += 1
        group.rows += 0 if letter.is_clock else letter.rows
        group.newest = max(group.newest, letter.at)
        keys[letter.key] = group
        step(len(keys), len(keys), "dead letters")
    for key in resubmitted & keys.keys():
        keys[key].resubmitted += 1
    return sorted(groups.values(), key=lambda group: -group.rows)


@dataclass
class Resubmission:
    """What was sent again; and what was not, because it would be refused again: rows by the reason, and the surveys."""

    records: int = 0
    rows: int = 0
    clocks: int = 0
    before: int = 0  # records that were sent again earlier
    kept: Counter[Reason] = field(default_factory=Counter)
    unknown: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return self.records > 0


def resubmit(kafka: KafkaSettings, reason: Reason, survey: str | None, step: Step, stop: Stop) -> Resubmission:
    """Send the dead letters of a reason to the reports topic again, each to its partition and in its order.

    Letters that would be refused again are not sent. Tokens see to it that no report is counted twice, also if the
    process is killed between sending letters and noting it.
    """
    topics = existing(kafka)
    resubmitted, done = set[str](), Resubmission()
    total = sum(_wanted(letter, reason, survey) for letter in dead_letters(kafka, topics, resubmitted))
    refusals = Refusals(records(kafka, topics), last_finals(kafka, topics))
    waiting: list[DeadLetter] = []
    with closing(KafkaSink(kafka, topics.reports)) as sink, closing(KafkaSink(kafka, topics.deadletters)) as notes:

        def confirm() -> None:
            sink.flush()
            if waiting:
                notes.send(0, RESUBMITTED, noted([letter.key for letter in waiting]))
                notes.flush()
            waiting.clear()

        wanted = (letter for letter in dead_letters(kafka, topics, set()) if _wanted(letter, reason, survey))
        # Letters that are written meanwhile are left for the next time: they may be answers to what is sent here.
        for number, letter in enumerate(islice(wanted, total), start=1):
            if stop():
                confirm()
                raise Stopped(f"stopped after {number - 1} of {total} dead letters", "run it again to continue there")
            if letter.key in resubmitted:
                done.before += 1
                continue
            refusal = refusals.of(letter)
            if refusal is not None:
                done.kept[refusal] += 0 if letter.is_clock else letter.rows
                if refusal is Reason.UNKNOWN_SURVEY:
                    done.unknown.add(letter.survey)
                continue
            # A period must not be closed before it is noted that its reports were sent: sent once more, they would be
            # late, and results would show them as missing.
            if len(waiting) >= AT_ONCE or (letter.is_clock and waiting and not waiting[-1].is_clock):
                confirm()
            sink.send(letter.partition, letter.content_type, letter.value)
            waiting.append(letter)
            done.records += 1
            done.clocks += letter.is_clock
            done.rows += 0 if letter.is_clock else letter.rows
            step(number, total, f"{done.rows:,} reports sent again")
        confirm()
    return done


def _wanted(letter: DeadLetter, reason: Reason | None, survey: str | None) -> bool:
    return reason in (None, letter.reason) and survey in (None, letter.survey)
