"""Surveys as text: reading YAML with errors that name the line, writing it, and the reference of every key."""

from protocols.survey_text.beside import ReadBeside, with_area_groups
from protocols.survey_text.parsing import CountedVersion, explain, format_survey, keys_of, parse_survey
from protocols.survey_text.plain_yaml import Document, NotPlain, read_yaml
from protocols.survey_text.reference import json_schema, reference
