"""All errors that hearsay raises on purpose, as classes below `HearsayError`.

`retriable` is an attribute of the class: callers that may retry check it instead of a list of types.
`message` is what was wrong and where; `hint` is what to do.
"""

# A device is a package of its own, and has the root of the tree: it needs nothing of the others.
from hearsay_device.errors import DeviceError as DeviceError
from hearsay_device.errors import HearsayError as HearsayError


class SurveyError(HearsayError):
    """The survey file: which key, which value, what to write instead."""


class SurveyDefect(SurveyError):
    """A survey at which this release itself fails, with the error. It concerns this survey alone."""


class InfeasibleError(HearsayError):
    """Budgets that a mechanism cannot meet, with the range it can."""


class WireError(HearsayError):
    """A value that cannot be put on the wire (decoding never raises: it returns a Reject)."""


class SettingsError(HearsayError):
    """A missing or contradictory setting."""


class StoreError(HearsayError):
    """The memo store refuses."""


class StoreUnavailable(StoreError):
    """Redis is down or slow."""

    retriable = True


class HistoryLost(StoreError):
    """The store has forgotten what devices were permitted."""


class FingerprintChanged(StoreError):
    """An id that was used for another survey."""


class NotAllowed(HearsayError):
    """A cluster does not give this user a right, with the right."""


class ClockError(HearsayError):
    """A clock of this machine that is not that of the cluster."""


class LogError(HearsayError):
    """A log is not what counting needs (gaps, compaction, transactions, damaged records)."""


class StateError(HearsayError):
    """Recorded state that cannot be used: unreadable, of other terms, or in use elsewhere."""


class AnotherRelease(StateError):
    """Recorded state is of a release that this one does not read."""


class TopicError(HearsayError):
    """A topic that is missing, or holds a record that does not belong there."""


class ResultsError(HearsayError):
    """Results that are not published, contradict each other, or cannot be read."""


class UnreadableRecord(ResultsError):
    """One record that is no result. Readers leave it out; `record` names it."""

    def __init__(self, message: str, hint: str = "", *, record: str) -> None:
        super().__init__(message, hint)
        self.record = record


class DeliveryError(HearsayError):
    """Reports that did not reach their sink, with where."""

    retriable = True


class ReplayError(HearsayError):
    """An event file that cannot be read, or a bad row under --strict."""


class ScenarioError(HearsayError):
    """A simulation that cannot be built: which name, option or count, and what would do."""


class ServerError(HearsayError):
    """A broker or Redis process that did not start, answer or stop."""


class ServerUnavailable(ServerError):
    """A cluster that does not answer, or without workers."""

    retriable = True


class Stopped(HearsayError):
    """The user asked to stop, with where to resume."""


def counted(number: int, noun: str) -> str:
    """A number of things, in words.

    >>> counted(1, "device"), counted(2000, "device")
    ('1 device', '2,000 devices')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
