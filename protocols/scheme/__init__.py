"""A survey, compiled."""

from protocols.question import Question
from protocols.scheme.scheme import PRESENCE_ONLY, Scheme
