"""Replay: recorded events become reports, on a trusted machine of the operator."""

from producers.replay.choosing import Rule
from producers.replay.files import ColumnMapping, FileFormat, expand
from producers.replay.files.answers import UNKNOWN, cells, places
from producers.replay.inspecting import Inspection, inspect
from producers.replay.interpreting import ANY_ORDER, Options
from producers.replay.pace import Pace
from producers.replay.quality import Fault, Located
from producers.replay.run import Progress, Replay, Summary

__all__ = [
    "ANY_ORDER",
    "UNKNOWN",
    "ColumnMapping",
    "Fault",
    "FileFormat",
    "Inspection",
    "Located",
    "Options",
    "Pace",
    "Progress",
    "Replay",
    "Rule",
    "Summary",
    "cells",
    "expand",
    "inspect",
    "places",
]
