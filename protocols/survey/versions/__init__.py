"""The versions of a survey's terms: which keys their texts have, and what version 3 says about what is released."""

from protocols.survey.versions.deciding import undecided
from protocols.survey.versions.keys import (
    as_written,
    foreign_keys,
    version_of_new_texts,
    with_fields,
    written,
    written_path,
)
from protocols.survey.versions.lists import MOST_WINDOWS, Counted, Rolling, check_released, in_order, released
