"""The results that are published as messages: a topic for each, and the view that makes them, which is loaded by name.

A result of a period is published once, and the first record of a key holds. One of a survey replaces the one before.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from stream_app.log.flushes import TopicName


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
    ResultTopic(TopicName("histograms"), "survey/period", "views.results.period:HISTOGRAMS"),
    ResultTopic(TopicName("mobility"), "survey/period", "views.results.mobility:MOBILITY"),
    ResultTopic(TopicName("forecasts"), "survey/period", "views.forecasts:FORECASTS"),
    ResultTopic(TopicName("live"), "survey", "views.results.status:LIVE"),
)
