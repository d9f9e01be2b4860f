"""Strings of a survey: names that are compared byte for byte, and text for people.

Both are brought to Unicode's composed form (NFC), so that an é typed in two ways is one é, and neither may hold
characters that no screen shows or no file can store.
"""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

MAX_NAME = 200
_UNFIT = {"Cc", "Cs", "Zl", "Zp"}  # controls, halves of surrogate pairs, line and paragraph separators


def as_text(value: Any) -> Any:
    """A number as text; a boolean is refused, because how it was written is unknown.

    >>> as_text(2017)
    '2017'
    """
    if type(value) is str:
        return value  # nearly all are, and a survey can have many
    if value is None or isinstance(value, bool):
        raise ValueError(f"{'nothing' if value is None else value} is not a name; put the name in quotes")
    return str(value) if isinstance(value, int | float) else value


def clean_name(text: str) -> str:
    """A name on one line, with no space around it.

    >>> clean_name("Cafe\\u0301") == "Caf\\u00e9"
    True
    """
    text = unicodedata.normalize("NFC", text)
    if not 0 < len(text) <= MAX_NAME:
        raise ValueError(f"a name of {len(text)} characters; write 1 to {MAX_NAME}")
    if text != text.strip():
        raise ValueError("a name with space around it; leave the space out")
    _refuse_unfit(text, allowed="")
    return text


def clean_words(text: str) -> str:
    text = unicodedata.normalize("NFC", text)
    _refuse_unfit(text, allowed="\n\t")
    return text


def _refuse_unfit(text: str, allowed: str) -> None:
    if text.isprintable():  # then it has none of them, and need not be looked at one by one
        return
    for character in text:
        if unicodedata.category(character) in _UNFIT and character not in allowed:
            raise ValueError(f"has the character U+{ord(character):04X}, which cannot be shown; leave it out")


Name = Annotated[
    str,
    BeforeValidator(as_text),
    AfterValidator(clean_name),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),  # as written in YAML: yes, 12:30 and 1.0 are names
]
Text = Annotated[str, Field(max_length=10_000), AfterValidator(clean_words)]
