"""Replay: recorded events become reports, on a trusted machine of the operator."""

from producers.replay.choosing import Rule
from producers.replay.event_files import ColumnMapping
from producers.replay.pace import Pace
from producers.replay.run import Options, Progress, Replay, Summary

__all__ = ["ColumnMapping", "Options", "Pace", "Progress", "Replay", "Rule", "Summary"]
