"""The versions of a survey's terms: which keys their texts have, and what version 3 says about what is released."""

from protocols.survey.versions.keys import SINCE_3, as_written, field_of, foreign_keys, version_of_new_texts, with_fields
from protocols.survey.versions.keys import written as written
from protocols.survey.versions.keys import written_path as written_path
from protocols.survey.versions.released import Counted, Name, Released, Rolling, check_released, in_order, released
