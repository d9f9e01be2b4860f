"""A survey, compiled."""

from protocols.question import Question
from protocols.scheme.defects import confined_to
from protocols.scheme.scheme import PRESENCE_ONLY, Scheme
