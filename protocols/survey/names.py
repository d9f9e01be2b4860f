"""Strings of a survey: names that are compared byte for byte, text for people, and durations (`15m`, `1h`, `1d`).

Names and text are brought to Unicode's composed form (NFC), so that an é typed in two ways is one é, and neither may
hold characters that no screen shows or no file can store.

And the base of models. A new key of a survey needs a paragraph in keys.txt, from which the reference, the JSON Schema,
errors and new surveys have its meaning.
"""

import re
import unicodedata
from datetime import timedelta
from functools import cache
from importlib import resources
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

MAX_NAME = 200
_UNFIT = {"Cc", "Cs", "Zl", "Zp"}  # controls, halves of surrogate pairs, line and paragraph separators


def paragraphs(package: str, name: str) -> dict[str, str]:
    """The words of a text file beside the code: a paragraph each, after its key."""
    text = resources.files(package).joinpath(name).read_text("utf-8")
    return dict(" ".join(paragraph.split()).split(": ", 1) for paragraph in text.split("\n\n"))


@cache
def _meanings(package: str) -> dict[str, str]:
    there = package != "" and resources.files(package).joinpath("keys.txt").is_file()  # "": of a program
    return paragraphs(package, "keys.txt") if there else {}


def _tell_meanings(schema: dict[str, Any], model: type[BaseModel]) -> None:
    for name, entry in schema.get("properties", {}).items():
        if meaning := model.model_fields[name].description:
            entry["description"] = meaning


class Told(BaseModel):
    """A frozen model that takes no unknown keys.

    What its keys mean is in the file keys.txt of its folder, in its JSON Schema and in `model_fields`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=_tell_meanings)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        meanings = _meanings(cls.__module__.rpartition(".")[0])
        for name, field in cls.model_fields.items():
            field.description = field.description or meanings.get(f"{cls.__name__}.{name}")


class Strict(Told):
    """One that takes no numbers that are not numbers."""

    model_config = ConfigDict(allow_inf_nan=False)


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


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_PATTERN = r"^[0-9]{1,9}[smhdw]$"


def parse_duration(text: Any) -> timedelta:
    """A timedelta from text such as `90m`.

    >>> parse_duration("36h")
    datetime.timedelta(days=1, seconds=43200)
    """
    if isinstance(text, timedelta) and text >= timedelta(0) and not text % timedelta(seconds=1):
        return text
    if not isinstance(text, str) or not re.fullmatch(_PATTERN, text):
        raise ValueError("not a duration; write a whole number and s, m, h, d or w, such as 15m or 1d")
    seconds = int(text[:-1]) * _UNITS[text[-1]]
    if seconds > timedelta.max.total_seconds():
        raise ValueError("longer than time is counted; write less")
    return timedelta(seconds=seconds)


def format_duration(duration: timedelta) -> str:
    """The shortest text that parses back.

    >>> format_duration(timedelta(hours=36)), format_duration(timedelta(0))
    ('36h', '0s')
    """
    seconds = int(duration.total_seconds())
    for unit, size in reversed(_UNITS.items()):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _PATTERN, "examples": ["15m", "1h", "1d"]}),
]
