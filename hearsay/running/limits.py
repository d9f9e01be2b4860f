"""What an edge may reveal about a person, whatever surveys ask: it does not take a survey over its limits.

As on a person's device (docs/device-protocol.md, "Limits"), and from terms alone: a survey that is taken reserves what
its answers of a year cost. The same question counts once about an attribute, and all else that is asked adds up.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from memo_store.ledger import memo_cost
from memo_store.registry import AttributeRecord, SurveyRecord, record_of
from protocols.errors import StoreError
from protocols.scheme import Scheme
from servers.settings import LimitSettings

SLACK = 1 + 1e-9


def require_within(limits: LimitSettings, scheme: Scheme, taken: Sequence[SurveyRecord]) -> None:
    """Refuse a survey that would exceed a limit, beside those that were taken before. Raises StoreError."""
    mine = record_of(scheme)
    if mine.id in (record.id for record in taken):
        return
    taken = [*taken, mine]
    told = [
        ("report", mine.report, "one report may reveal"),
        ("year", sum(map(_year, taken)), "with the surveys that were taken before, the charges of a year are"),
    ]
    names = sorted({name for attribute in mine.attributes for name in attribute.reads})
    told += [("value", _about(name, taken), f"what all surveys tell about {name!r} in a year is") for name in names]
    for name, spent, what in told:
        limit = getattr(limits, name)
        if spent > limit * SLACK:
            raise StoreError(
                f"survey {mine.id!r} is not taken: {what} {spent:.4g}, more than {limit:g}, this edge's limit of a "
                f"{name}",
                f"ask less, or raise HEARSAY_LIMITS_{name.upper()} if that may be told about the people",
            )


def _year(record: SurveyRecord) -> float:
    """What the answers of a year cost, if values change as often as they can."""
    if record.per_report is not None:
        return record.answers * record.report
    costs = [_cost(asked, record.answers) for asked in record.questions.values()]
    return max(costs) if record.sampled else sum(costs)


def _cost(asked: Sequence[AttributeRecord], answers: int) -> float:
    counts = {attribute.name: np.array(min(answers, attribute.most)) for attribute in asked}
    near = max(int(counts[attribute.name]) * attribute.constant for attribute in asked)  # places: 500 m apart
    return min(near, float(memo_cost(asked, counts)))


def _about(name: str, taken: Iterable[SurveyRecord]) -> float:
    """What all answers of a year tell about an attribute whose value stays as it is."""
    fresh, memos = 0.0, dict[str, float]()  # by question, or by the draw of one question among several
    for record in taken:
        reading = {
            question: max(attribute.constant for attribute in asked)
            for question, asked in record.questions.items()
            if any(name in attribute.reads for attribute in asked)
        }
        if record.per_report is not None:
            fresh += record.answers * (max if record.sampled else sum)(reading.values() or [0.0])
        elif record.sampled and len(reading) > 1:  # each person is asked one of these
            memos[record.sampled] = max(reading.values())
        else:
            memos |= reading
    return fresh + sum(memos.values())
