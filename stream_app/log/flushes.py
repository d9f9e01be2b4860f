"""What the pure code wants written: state records and messages, as the ordered stages of a flush.

And what followers of messages get. The results that are published as messages have a topic each, and a view that makes
them, which is loaded by name. A result of a period is published once, and the first record of a key holds. One of a
survey replaces the one before.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NewType

from protocols.errors import HearsayError
from protocols.survey import Survey

TopicName = NewType("TopicName", str)
"""A topic without its prefix."""
PARTIALS = TopicName("partials")
DEADLETTERS = TopicName("deadletters")
FINALS = TopicName("finals")
OPEN = TopicName("open")


@dataclass(frozen=True)
class Write:
    """A state record: the new value of a key; None deletes it."""

    key: bytes
    value: bytes | None


def state_key(*parts: str | int) -> bytes:
    """The key of a state record: whose state ("count" or "merge"), its partition, and what the record is.

    >>> state_key("count", 3, "tokens", "buttons", 12, 40)
    b'count/3/tokens/buttons/12/40'
    """
    return "/".join(map(str, parts)).encode()


@dataclass(frozen=True)
class Output:
    """A message for one of our topics."""

    topic: TopicName
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class Flush:
    """Everything that changed since the last flush.

    Each stage must be confirmed before the next begins, and the input acknowledged through `offset` only after the
    last. A crash between any two writes leaves a state that can be recovered. A failed write must end the
    process: the counts in memory are ahead of what was written.
    """

    offset: int
    stages: tuple[tuple[Write | Output, ...], ...]

    def __iter__(self) -> Iterator[Write | Output]:
        return (item for stage in self.stages for item in stage)

    def __bool__(self) -> bool:
        return any(self.stages)


@dataclass(frozen=True)
class Come:
    """What has come since the last look: surveys, and messages with the number of their log and their offset in it.

    A log is what has offsets of its own: a topic, or a data directory. `unread` are errors about records that are no
    surveys.
    """

    surveys: list[Survey] = field(default_factory=list)
    messages: list[tuple[int, int, Output]] = field(default_factory=list)
    unread: list[HearsayError] = field(default_factory=list)


class ResultTopic(NamedTuple):
    """A topic with one kind of result."""

    name: TopicName  # without the prefix
    key: Literal["survey/period", "survey"]
    view: str  # module:object

    @property
    def replaced(self) -> bool:
        """Whether a newer record replaces an older one with the same key."""
        return self.key == "survey"


RESULTS = (
    ResultTopic(TopicName("histograms"), "survey/period", "views.results.histogram:HISTOGRAMS"),
    ResultTopic(TopicName("mobility"), "survey/period", "views.results.mobility:MOBILITY"),
    ResultTopic(TopicName("nowcasts"), "survey/period", "views.results.nowcasts:NOWCASTS"),
    ResultTopic(TopicName("forecasts"), "survey/period", "views.forecasts:FORECASTS"),
    ResultTopic(TopicName("live"), "survey", "views.results.status:LIVE"),
)
