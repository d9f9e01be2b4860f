"""Values of an attribute in a file of their own: too many to be written in a survey, one in each line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from protocols.errors import SurveyError

ReadBeside = Callable[[str], str]  # the name of a file beside the survey's -> its text; raises SurveyError
KEY = "values_from"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,120}\.txt")


def fill_in_values(data: dict[str, Any], source: str, read_beside: ReadBeside | None) -> None:
    """Replace `values_from` of attributes by the values in the file. What is wrong otherwise is left to validation.

    >>> survey = {"attributes": [{"name": "a", "values_from": "names.txt"}]}
    >>> fill_in_values(survey, "survey.yaml", lambda name: "north\\nsouth\\n")
    >>> survey
    {'attributes': [{'name': 'a', 'values': ['north', 'south']}]}
    """
    attributes = data.get("attributes")
    for attribute in attributes if isinstance(attributes, list) else []:
        if not isinstance(attribute, dict) or KEY not in attribute:
            continue
        where, name = f"{source}: attribute {attribute.get('name')!r}: {KEY}", attribute.pop(KEY)
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise SurveyError(f"{where} is not the name of a file", "write a name such as names.txt, without a path")
        if "values" in attribute or "range" in attribute:
            raise SurveyError(f"{where} has other values beside it", "keep one of values, range and values_from")
        if read_beside is None:
            raise SurveyError(f"{where} is read from beside a survey's file", "write the survey to a file")
        attribute["values"] = read_beside(name).splitlines()
