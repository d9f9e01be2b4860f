"""The tree of all errors that hearsay raises on purpose.

    HearsayError
    ├── SurveyError           the survey file: which key, which value, what to write instead
    ├── InfeasibleError       budgets that a mechanism cannot meet, with the range it can
    ├── WireError             a value that cannot be put on the wire (decoding never raises: it returns a Reject)
    ├── SettingsError         a missing or contradictory setting
    ├── StoreError            the memo store refuses
    │   ├── StoreUnavailable  Redis is down or slow (retriable)
    │   ├── HistoryLost       the store has forgotten what devices were permitted
    │   └── FingerprintChanged  an id that was used for another survey
    ├── LogError              a log is not what counting needs (gaps, compaction, transactions, damaged records)
    ├── StateError            recorded state that cannot be used: unreadable, of other terms, or in use elsewhere
    ├── TopicError            a topic that is missing, or holds a record that does not belong there
    ├── ResultsError          results that are not published, contradict each other, or cannot be read
    ├── DeviceError           a person's device refuses: terms, limits, periods, a gateway, with a code for programs
    ├── DeliveryError         reports that did not reach their sink, with where (retriable)
    ├── ReplayError           an event file that cannot be read, or a bad row under --strict
    ├── ScenarioError         a simulation that cannot be built: which name, option or count, and what would do
    ├── NotAllowed            a cluster does not give this user a right, with the right
    ├── ServerError           a broker or Redis process that did not start, answer or stop
    │   └── ServerUnavailable  a cluster that does not answer, or without workers (retriable)
    └── Stopped               the user asked to stop, with where to resume

`retriable` is an attribute of the class: callers that may retry check it instead of a list of types.
`message` is what was wrong and where; `hint` is what to do.
"""

# A device is a package of its own, and has the root of the tree: it needs nothing of the others.
from hearsay_device.errors import DeviceError as DeviceError
from hearsay_device.errors import HearsayError as HearsayError


class SurveyError(HearsayError):
    """The survey file is wrong."""


class InfeasibleError(HearsayError):
    """No channel of the requested mechanism meets these budgets."""


class WireError(HearsayError):
    """A value cannot be put on the wire."""


class SettingsError(HearsayError):
    """A setting is missing or contradicts another."""


class StoreError(HearsayError):
    """The memo store refuses."""


class StoreUnavailable(StoreError):
    """Redis did not answer within the allowed retries."""

    retriable = True


class HistoryLost(StoreError):
    """The store no longer knows what devices were permitted."""


class FingerprintChanged(StoreError):
    """A survey id was used before with other terms."""


class NotAllowed(HearsayError):
    """A cluster does not give this user a right."""


class LogError(HearsayError):
    """A log is not plain, gapless and undamaged."""


class StateError(HearsayError):
    """Recorded state cannot be used."""


class AnotherRelease(StateError):
    """Recorded state is of a release that this one does not read."""


class TopicError(HearsayError):
    """A topic is missing, or holds a record that does not belong there."""


class ResultsError(HearsayError):
    """Results are not published, contradict each other, or cannot be read."""


class DeliveryError(HearsayError):
    """Reports did not reach their sink."""

    retriable = True


class ReplayError(HearsayError):
    """An event file cannot be replayed."""


class ScenarioError(HearsayError):
    """A scenario cannot be built from these options or counts."""


class ServerError(HearsayError):
    """A server process did not start, answer or stop."""


class ServerUnavailable(ServerError):
    """A cluster did not answer, or its workers did not."""

    retriable = True


class Stopped(HearsayError):
    """The user asked to stop."""


def counted(number: int, noun: str) -> str:
    """A number of things, in words.

    >>> counted(1, "device"), counted(2000, "device")
    ('1 device', '2,000 devices')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
