"""Replay: recorded events become reports, on a trusted machine of the operator."""

from producers.replay.choosing import Rule
from producers.replay.inspecting import Inspection, inspect, refuse_faulty
from producers.replay.interpreting import ANY_ORDER, Options
from producers.replay.quality import Fault, Located
from producers.replay.run import Pace, Replay, Summary
