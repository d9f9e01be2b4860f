"""Replay: recorded events become reports, as an operator's trusted edge would make them."""

from producers.replay.choosing import Rule
from producers.replay.event_files import Columns
from producers.replay.pace import Pace
from producers.replay.run import Options, Progress, Replay, Summary

__all__ = ["Columns", "Options", "Pace", "Progress", "Replay", "Rule", "Summary"]
