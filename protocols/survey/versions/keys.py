"""Which keys a survey has, by the version of its terms.

A survey keeps the version under which it was first read: its fingerprint depends on it. In version 3 some keys have
other names than the fields of the model, which are those of version 2. Texts, stored surveys, declared terms and errors
have the names of the version.

Version 1 is version 2 without the keys that came with it (`Survey.has_new_keys`), so texts of both are read alike.
"""

from collections.abc import Iterator
from typing import Any

NEW_TEXTS = 2
"""The version as which a text is read whose survey nobody counts yet: the only place that decides it.

Devices refuse terms of a version that they do not know. So this is 3 once both device libraries know version 3.
"""

Data = dict[str, Any]
Path = tuple[str | int, ...]

SINCE_3 = ("publish_from", "numbers", "new", "tables", "rolling")
"""The fields that only version 3 has."""
UNTIL_2 = ("minimum",)
"""The fields that version 3 does not have."""
RENAMED = {"horizon": "lookback"}
"""Fields of a survey, and their names in version 3."""
RENAMED_OF_ATTRIBUTES = {"several": "multi_select"}
"""The same of attributes."""
NO_MINIMUM = (
    "`minimum` promised more than it kept: published numbers tell how many stayed away. Write `presence_epsilon: 1` "
    "(numbers with noise) or `publish_from: 20` (exact numbers, few are not shown), and a new id."
)


def version_of_new_texts() -> int:
    """The version of a text whose survey nobody counts yet."""
    return NEW_TEXTS


def written(model: str, field: str, version: int) -> str | None:
    """The key of a field of a model in texts of a version; None where the version has no such key.

    >>> written("Survey", "horizon", 3), written("Survey", "horizon", 2), written("Survey", "minimum", 3)
    ('lookback', 'horizon', None)
    """
    if model == "Survey" and field in ("version", *_absent(version)):
        return None
    return _names_of(model, version).get(field, field)


def field_of(model: str, key: str, version: int) -> str:
    """The field of a model that has this key in texts of a version.

    >>> field_of("Attribute", "multi_select", 3)
    'several'
    """
    fields = {name: field for field, name in _names_of(model, version).items()}
    return fields.get(key, key)


def written_path(path: Path, version: int) -> Path:
    """The path to a part of a text, from the path of fields to it.

    >>> written_path(("attributes", 0, "several"), 3)
    ('attributes', 0, 'multi_select')
    """
    models = {0: "Survey", 2: "Attribute"} if path[:1] == ("attributes",) else {0: "Survey"}
    return tuple(
        _names_of(models[place], version).get(part, part) if place in models and isinstance(part, str) else part
        for place, part in enumerate(path)
    )


def foreign_keys(data: Data, version: int) -> Iterator[tuple[Path, str]]:
    """The keys of a text that belong to another version: where each is, and what to write instead."""
    whose = f"survey {data.get('id')}"
    for key in sorted(data.keys() & set(UNTIL_2 if version == 3 else ())):
        yield (key,), f"{whose}: {NO_MINIMUM}"
    yield from ((path, f"{whose}: {what}") for path, what in _former_names(data, version))
    for key in (key for key in SINCE_3 if version != 3 and key in data):
        yield (key,), f"{whose} has terms of version {version}, without `{key}`; leave it out{_or_new_id(version)}"


def with_fields(data: Data, version: int) -> Data:
    """A text's data with the names of the model's fields."""
    if version != 3:
        return data
    found = {field_of("Survey", key, version): value for key, value in data.items()}
    attributes = found.get("attributes")
    if isinstance(attributes, list | tuple):
        found["attributes"] = [_attribute_fields(attribute, version) for attribute in attributes]
    return found


def as_written(dumped: Data, version: int) -> Data:
    """A survey's fields and their values, with the keys of its version."""
    found = {_names_of("Survey", version).get(field, field): value for field, value in dumped.items()}
    for field in _absent(version):
        found.pop(field, None)
    if version != 3:
        found.pop("version", None)  # stored surveys of versions 1 and 2 never had it
    elif "attributes" in found:
        names = _names_of("Attribute", version)
        found["attributes"] = [
            {names.get(field, field): value for field, value in attribute.items()} for attribute in found["attributes"]
        ]
    return found


def _attribute_fields(attribute: Any, version: int) -> Any:
    if not isinstance(attribute, dict):
        return attribute
    return {field_of("Attribute", key, version): value for key, value in attribute.items()}


def _former_names(data: Data, version: int) -> Iterator[tuple[Path, str]]:
    """Keys that another version calls so, and what this one calls them."""
    listed = data.get("attributes")
    attributes = listed if isinstance(listed, list | tuple) else ()
    parts: list[tuple[Path, str, Any, dict[str, str]]] = [((), "", data, RENAMED)]
    for place, attribute in enumerate(attributes):
        if isinstance(attribute, dict):
            whose = f"attribute {attribute.get('name')!r}: "
            parts.append((("attributes", place), whose, attribute, RENAMED_OF_ATTRIBUTES))
    for path, whose, part, renamed in parts:
        for field, name in renamed.items():
            other, own = (field, name) if version == 3 else (name, field)
            if other in part:
                told = f"terms of version {version} have `{own}` in place of `{other}`; write `{own}`"
                yield (*path, other), f"{whose}{told}{_or_new_id(version)}"


def _or_new_id(version: int) -> str:
    """What helps if somebody wants a later version for a survey that is counted already."""
    return ", or give the survey a new id" if version < version_of_new_texts() else ""


def _absent(version: int) -> tuple[str, ...]:
    return UNTIL_2 if version == 3 else SINCE_3


def _names_of(model: str, version: int) -> dict[str, str]:
    """The fields of a model that have another name in texts of a version."""
    named = {"Survey": RENAMED, "Attribute": RENAMED_OF_ATTRIBUTES}
    return named.get(model, {}) if version == 3 else {}
