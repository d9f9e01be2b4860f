"""Devices in memory: they answer a survey as real ones do, without a server and without a store.

For simulations and tests. A real device (`hearsay.Device`) writes each period's report to disk before it sends it, so
that a retry sends the same bytes; these devices forget everything with the process.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from secrets import token_bytes
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from protocols.arrays import Devices, Values
from protocols.errors import ScenarioError, SurveyError, counted
from protocols.randomness import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Scheme
from protocols.survey import NEVER, Attribute, Survey, table_of_sets
from protocols.wire import Frame, encode_frame

ROWS_PER_FRAME = 4096


class Fleet:
    """Simulated devices of one secret, numbered from 0, that answer a survey.

    The same secret gives the same reports. Without one, a random secret is made.
    """

    def __init__(self, survey: Survey, devices: int, secret: bytes | None = None) -> None:
        if survey.memo_cap is not None:
            raise SurveyError(
                f"survey {survey.id!r} has a memo_cap, which needs a memo store to enforce it",
                "use hearsay.run, or leave memo_cap out",
            )
        self._scheme = Scheme(survey)
        self._respondent = Respondent(self._scheme, Keyring(token_bytes(32) if secret is None else secret))
        self._last = np.full(devices, NEVER, dtype=np.int64)

    def report(self, period: int, values: Mapping[str, ArrayLike], devices: ArrayLike | None = None) -> list[bytes]:
        """The reports of a period as frames, Arrow IPC streams of at most 4,096 rows, fewer if answers are wide.

        `values` has each attribute's true values, one per device, as the survey names them; of sets, a list of values
        per device. `devices` are the numbers
        of these devices; all of them if left out. A device reports once in a period, and periods ascend.
        """
        return [encode_frame(frame, self._scheme) for frame in self.frames(period, values, devices)]

    def frames(self, period: int, values: Mapping[str, ArrayLike], devices: ArrayLike | None = None) -> Iterator[Frame]:
        """The same before it is encoded."""
        chosen = self._choose(period, devices)
        places = {a.name: _places(a, values, len(chosen)) for a in self._scheme.survey.attributes}
        gaps = self._scheme.visits.of(self._last[chosen], period)  # or flags
        self._last[chosen] = period
        tokens = self._respondent.tokens(chosen, period)
        for questions, members in self._respondent.asked(chosen, period):
            by_token = members[np.argsort(tokens[members])]
            for first in range(0, len(by_token), ROWS_PER_FRAME):
                rows = by_token[first : first + ROWS_PER_FRAME]
                some = {name: column[rows] for name, column in places.items()}
                scheme, answers = self._scheme, {}
                for question in questions:
                    asked = self._respondent.values(question, chosen[rows], some, period)
                    answers[question.name] = self._respondent.answers(question, chosen[rows], period, asked)
                whole = Frame(scheme.survey.id, scheme.fingerprint, period, tokens[rows], gaps[rows], answers)
                yield from whole.parts()

    def _choose(self, period: int, devices: ArrayLike | None) -> Devices:
        """The devices that report, checked: each one exists, is named once, and has not reported this period."""
        count = len(self._last)
        chosen = np.arange(count) if devices is None else np.asarray(devices, dtype=np.int64)
        if not 0 <= period <= self._scheme.survey.calendar.last:
            raise ScenarioError(f"there is no period {period}", "periods are counted from 0")
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < count:
            raise ScenarioError("devices has a number that is not in the fleet", f"its devices are 0 to {count - 1}")
        if len(np.unique(chosen)) != len(chosen):
            raise ScenarioError("devices names a device twice", "a device reports once in a period")
        if (self._last[chosen] >= period).any():
            raise ScenarioError(
                f"a device has reported in period {period} or a later one", "report periods in ascending order, once"
            )
        return chosen.astype(np.uint64)


def _elements(attribute: Attribute, row: Any, number: int) -> list[Any]:
    """The values of one device's set: any iterable but a text, whose letters would be taken for values."""
    if isinstance(row, str | bytes) or not isinstance(row, Iterable):
        raise ScenarioError(
            f"attribute {attribute.name!r}: row {number} is {type(row).__name__}, and no set of values",
            "give a list, a set or another iterable of values for each device",
        )
    return list(row)


def _places(attribute: Attribute, values: Mapping[str, ArrayLike], count: int) -> Values:
    """The place of each value in the survey's list. Errors name the row and not the value, which is personal data."""
    if attribute.name not in values:
        raise ScenarioError(f"no values of attribute {attribute.name!r} are given", "give one for each device")
    given: Any = values[attribute.name]
    sizes = np.ones(count, dtype=np.int64)
    if attribute.several is not None:
        sets = [_elements(attribute, row, number) for number, row in enumerate(given)]
        sizes = np.array([len(elements) for elements in sets], dtype=np.int64)
        given = list(chain.from_iterable(sets))
    column = np.asarray(given)  # of any type: values are compared as text
    if column.shape != (sizes.sum(),) or len(sizes) != count:
        given = column.size if attribute.several is None else len(sizes)
        raise ScenarioError(
            f"attribute {attribute.name!r} has {counted(given, 'value')} for {counted(count, 'device')}",
            "give one for each device",
        )
    named, which = np.unique(column.astype(str) if column.dtype == object else column, return_inverse=True)
    listed = {value: place for place, value in enumerate(attribute.values)}
    found: Values = np.array([listed.get(str(name), -1) for name in named], dtype=np.int64)[which]
    rows = np.repeat(np.arange(count), sizes)
    unknown = rows[found < 0]
    if len(unknown):
        raise ScenarioError(
            f"attribute {attribute.name!r}: the value in row {unknown[0]} is not one of the survey's",
            f"the survey has {', '.join(attribute.values[:12])}{', ...' if attribute.k > 12 else ''}",
        )
    return found if attribute.several is None else table_of_sets(rows, found, count)
