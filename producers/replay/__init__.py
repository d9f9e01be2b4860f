"""Replay: recorded events become reports, as an operator's trusted edge would make them."""

from producers.replay.choosing import Rule
from producers.replay.event_files import Columns, open_events
from producers.replay.pace import Pace
from producers.replay.quality import Fault
from producers.replay.run import Options, Progress, Replay, Summary

__all__ = ["Columns", "Fault", "Options", "Pace", "Progress", "Replay", "Rule", "Summary", "open_events"]
