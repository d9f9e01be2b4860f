"""Survey, mechanisms, exact guarantees, randomness and wire formats: the foundation."""

from protocols.keystream import Keyring
from protocols.respondent import Respondent
from protocols.scheme import Question, Scheme
from protocols.survey import Attribute, Survey
from protocols.survey_text import parse_survey

__all__ = ["Attribute", "Keyring", "Question", "Respondent", "Scheme", "Survey", "parse_survey"]
