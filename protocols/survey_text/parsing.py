"""Surveys from text and back, with errors that name the line, the key, the value and the fix."""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from protocols.errors import SurveyError
from protocols.scheme import Scheme, confined_to
from protocols.survey.attribute import Attribute
from protocols.survey.model import ID_PATTERN, Survey
from protocols.survey.names import format_duration
from protocols.survey.versions import foreign_keys, version_of_new_texts, written, written_path
from protocols.survey_text.beside import ReadBeside, fill_in_cells, fill_in_values
from protocols.survey_text.plain_yaml import Document, NotPlain, read_yaml

KINDS = {
    "tuple_type": "should be a list",
    "string_pattern_mismatch": "not written as it must be",
    "float_parsing": "should be a number",
    "int_parsing": "should be a whole number",
    "zoneinfo_str": "there is no such time zone",
} | dict.fromkeys(
    ("dict_type", "model_type", "model_attributes_type"), "should be keys and values"
)  # by pydantic's names, which are those of Python
PYTHON = re.compile("^(Input|Tuple|String) | after validation")  # parts of its other messages that are left out
WIDTH = 110
MOST_PROBLEMS = 20


CountedVersion = Callable[[str], int | None]
"""The version of the terms under which a survey of this id is counted already; None if nobody counts it."""


def counted_nowhere(survey: str) -> None:
    """Where nothing is counted, every text is that of a new survey."""


class _Dumper(yaml.SafeDumper):
    """Keys below each other, lists in one line."""


_Dumper.add_representer(list, lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, True))


def parse_survey(
    text: str,
    source: str = "survey",
    read_beside: ReadBeside | None = None,
    *,
    counted: CountedVersion = counted_nowhere,
    version: int | None = None,
) -> Survey:
    """A survey from YAML (or JSON) text. Raises SurveyError, and nothing else, whatever the text.

    `read_beside` reads a file of values beside the survey's; None if the text is not that of a file.

    A survey that is `counted` already keeps the version of its terms. Other texts are of `version`, by default the one
    of new texts.

    >>> survey = parse_survey('''
    ... id: buttons
    ... start: 2026-01-01T00:00:00Z
    ... period: 1d
    ... eps_inf: 2
    ... eps_1: 1
    ... attributes:
    ...   - {name: colour, values: [red, green, blue]}
    ... ''')
    >>> survey.attributes[0].k, survey.longitudinal
    (3, True)
    """
    try:
        document = read_yaml(text)
    except NotPlain as error:
        raise SurveyError(f"{source}: {error}", error.hint) from None
    if not isinstance(document.data, dict):
        raise SurveyError(f"{source}: expected keys and values", "start from `hearsay survey new`")
    version = _counted_version(document.data, counted) or version or version_of_new_texts()
    _refuse_foreign_keys(document, source, version)
    fill_in_values(document.data, source, read_beside)
    fill_in_cells(document.data, source, read_beside)
    with confined_to(source):
        try:
            survey = Survey.model_validate(document.data | {"version": version})
            Scheme(survey)  # what mechanisms cannot do is found by compiling
        except ValidationError as error:
            raise SurveyError(
                f"{source}: {explain(error, document, version=version)}", "docs/survey-reference.md explains every key"
            ) from None
        except SurveyError as error:
            raise SurveyError(f"{source}: {error.message}", error.hint) from None
    return survey


def _counted_version(data: dict[str, Any], counted: CountedVersion) -> int | None:
    """The version of a survey that is counted already. Only an id is asked for: it becomes part of a path."""
    survey = data.get("id")
    named = isinstance(survey, str) and re.fullmatch(ID_PATTERN, survey) is not None
    return counted(str(survey)) if named else None


def _refuse_foreign_keys(document: Document, source: str, version: int) -> None:
    """Refuse a text with keys that its version does not have."""
    if "version" in document.data:
        line = document.line(("version",))
        what = f"{source}: line {line}: version: unknown key; a text does not say which version it is"
        raise SurveyError(what, "leave it out")
    problems = list(foreign_keys(document.data, version))[:MOST_PROBLEMS]
    if problems:
        lines = [f"line {document.line(path)}: {problem}" for path, problem in problems]
        raise SurveyError(f"{source}: " + "\n".join(lines), "docs/survey-reference.md explains every key")


def explain(
    error: ValidationError, document: Document, model: type[BaseModel] = Survey, version: int | None = None
) -> str:
    """The problems that validation found in a document of a model, one a line."""
    version = version or version_of_new_texts()
    problems = _shown_problems(error.errors(include_url=False))
    lines = [_explain(problem, document, model, version) for problem in problems[:MOST_PROBLEMS]]
    return "\n".join([*lines, *([f"and {len(problems) - MOST_PROBLEMS:,} more"] if problems[MOST_PROBLEMS:] else [])])


def format_survey(survey: Survey) -> str:
    """A survey as YAML in which every key is explained, those left out too.

    >>> text = format_survey(parse_survey('{id: s, start: 2026-01-01T00:00:00Z, period: 1h, eps: 1, '
    ...                                   'attributes: [{name: on, values: [yes, no]}]}'))
    >>> print(*text.splitlines()[:4], sep="\\n")
    # its name for ever: lower-case letters, digits, . _ -; new terms need a new id
    id: s
    # for people; may change at any time
    # title: ''
    """
    given = survey.model_dump(mode="json", exclude_defaults=True, exclude={"attributes"})
    if "minimum" in survey.model_fields_set:
        given["minimum"] = survey.minimum  # 0 as well: hearsay serve wants it written
    if survey.time_zone is not None:
        given["time_zone"] = survey.time_zone.name
    lines = []
    for key, field in keys_of(Survey, survey.version).items():
        lines.append(f"# {field.description}")
        if key == "attributes":
            attributes = (_attribute(attribute, survey.version) for attribute in survey.attributes)
            lines += [*_about_attributes(survey.version), "attributes:", *attributes]
        else:
            lines.append(_yaml({key: given[key]}) if key in given else f"# {_yaml({key: _default(field)})}")
    return "\n".join(lines) + "\n"


def keys_of(model: type[BaseModel], version: int) -> dict[str, FieldInfo]:
    """The keys of a model in texts of a version, each with its field."""
    fields = model.model_fields.items()
    keys = ((written(model.__name__, name, version), field) for name, field in fields)
    return {key: field for key, field in keys if key is not None}


def _about_attributes(version: int) -> list[str]:
    return [f"#   {key}: {field.description}" for key, field in keys_of(Attribute, version).items()]


def _attribute(attribute: Attribute, version: int) -> str:
    implied = {"values"} if attribute.ordered or attribute.grid is not None else set()
    given = attribute.model_dump(mode="json", exclude_defaults=True, exclude=implied)
    text = _yaml({written("Attribute", name, version): value for name, value in given.items()})
    return "  - " + text.replace("\n", "\n    ")


def _yaml(data: Mapping[Any, Any]) -> str:
    text: str = yaml.dump(dict(data), Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=WIDTH)
    return text.rstrip("\n")


def _default(field: FieldInfo) -> Any:
    return format_duration(field.default) if isinstance(field.default, timedelta) else field.default


def _shown_problems(problems: list[ErrorDetails]) -> list[ErrorDetails]:
    """All problems, except that there are no attributes, where each of them has problems of its own."""
    if any(problem["loc"][0] == "attributes" for problem in problems if len(problem["loc"]) > 1):
        return [problem for problem in problems if (problem["loc"], problem["type"]) != (("attributes",), "too_short")]
    return problems


def _explain(problem: ErrorDetails, document: Document, root: type[BaseModel], version: int) -> str:
    """One problem: where, what was given, what is wrong, what would be right."""
    path = written_path(problem["loc"], version) if root is Survey else problem["loc"]
    message = KINDS.get(problem["type"], problem["msg"].removeprefix("Value error, "))
    line = document.line(path[:-1] if problem["type"] == "missing" else path)
    where = f"line {line}: " if line is not None else ""
    if problem["type"] == "value_error" and (not path or (path[0] == "attributes" and len(path) == 2)):
        return where + message  # our messages about a whole survey or attribute name their keys
    key = where + _key(path, document.data)
    model, field = _field(problem["loc"], root)
    meaning = f" ({field.description})" if field is not None else ""
    if problem["type"] == "extra_forbidden":
        known = list(keys_of(model, version))
        near = get_close_matches(str(path[-1]), known, n=1)
        return f"{key}: unknown key; " + (f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}")
    if problem["type"] == "missing":
        return f"{key}: missing{meaning}"
    given = problem["input"]
    shown = f" = {given}" if isinstance(given, str | int | float) and len(str(given)) <= 80 else ""
    return f"{key}{shown}: {PYTHON.sub('', message)}{meaning}"


def _key(path: tuple[str | int, ...], data: Any) -> str:
    """A path for people: attributes by their names where they have one."""
    parts = [str(part) for part in path]
    if path[:1] == ("attributes",) and len(path) > 1:
        entry = data["attributes"][path[1]]
        name = entry.get("name") if isinstance(entry, dict) else None
        parts[1] = name if isinstance(name, str) else parts[1]
    return ".".join(parts)


def _field(path: tuple[str | int, ...], model: type[BaseModel]) -> tuple[type[BaseModel], FieldInfo | None]:
    """The model that a path leads into, and its field that the path leads to or through."""
    field = None
    for part in path:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part)
        held = () if field is None else (field.annotation, *get_args(field.annotation))
        inside = [each for each in held if isinstance(each, type) and issubclass(each, BaseModel)]
        if not inside:
            break
        model = inside[0]
    return model, field
